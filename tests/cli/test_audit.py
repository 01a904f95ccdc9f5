"""What `twinlake audit` prints: it reads the lake itself, so that it answers while no server runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.answers import Answers, lines
from twinlake.base.job import Asker, Job
from twinlake.config.settings import Settings
from twinlake.lake.catalog.audit_log import AuditLog

Twinlake = Callable[..., Result]
REBUILD = Job(id="j1", kind="rebuild", params={"table": "sales", "repair": True, "reason": "[bold]lost"})
PAUSE = Job(id="j2", kind="pause", params={"name": "orders", "by": "ben"})


@pytest.fixture
def acts(home: Path) -> None:
    """A repair that has ended, and a pause that has not."""
    log = AuditLog(Settings(home=home).lake)
    log.asked(REBUILD, Asker(by="anna", via="console"), "2026-01-31T12:00:00Z")
    log.ended(replace(REBUILD, state="succeeded", ended_at="2026-01-31T12:00:09Z"))
    log.asked(PAUSE, Asker(via="airflow"), "2026-01-31T12:01:00Z")


def test_each_act_has_a_line_with_who_why_and_how_it_ended(acts: None, twinlake: Twinlake) -> None:
    header, pause, rebuild = lines(twinlake(Answers(), "audit"))

    assert header.split("  ")[0] == "at"
    assert pause.split("  ")[0] == "2026-01-31T12:01:00" and "not ended" in pause
    for part in ("anna", "console", "rebuild", "table=sales", "[bold]lost", "succeeded", "j1"):
        assert part in rebuild


def test_an_act_without_a_job_shows_none(home: Path, twinlake: Twinlake) -> None:
    log, anna = AuditLog(Settings(home=home).lake), Asker(by="anna", via="cli")
    log.users_changed({"change": "add", "user": "ben"}, anna, "2026-01-31T12:00:00Z")
    log.secrets_rotated(["api_token", "sql_password"], anna, "2026-01-31T12:01:00Z")

    _, *shown = lines(twinlake(Answers(), "audit"))

    assert [one.rstrip().endswith("asked for") for one in shown] == [True, True]
    assert "secrets=api_token, sql_password" in shown[0] and "change=add, user=ben" in shown[1]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("--who", "anna"), ["j1"]),
        (("--act", "pause"), ["j2"]),
        (("--table", "orders"), ["j2"]),
        (("--table", "sales", "--who", "ben"), []),
        (("--limit", "1"), ["j2"]),
        (("--table", "nothing"), []),
        ((), ["j2", "j1"]),
    ],
)
def test_acts_are_chosen_by_person_kind_and_table(
    acts: None, twinlake: Twinlake, asked: tuple[str, ...], found: list[str]
) -> None:
    done = twinlake(Answers(), "audit", "--json", *asked)
    assert [one["job"] for one in json.loads(done.stdout)] == found


def test_a_lake_in_which_nobody_has_done_anything_says_so(twinlake: Twinlake) -> None:
    assert lines(twinlake(Answers(), "audit")) == ["the audit log is empty"]


def test_a_folder_without_a_lake_is_told_from_one_without_acts(twinlake: Twinlake, tmp_path: Path) -> None:
    done = twinlake(Answers(), "--home", str(tmp_path / "none"), "audit")
    assert done.exception is not None and "there is no lake in" in str(done.exception)


def test_a_process_that_has_read_the_log_ends_well(acts: None, home: Path) -> None:
    """Threads that read for it would abort it at its end, one time in two."""
    command = [sys.executable, "-m", "twinlake", "--home", str(home), "audit", "--json"]
    ends = [subprocess.run(command, capture_output=True, text=True, timeout=60) for _ in range(4)]
    assert [(one.returncode, one.stderr) for one in ends] == [(0, "")] * 4
