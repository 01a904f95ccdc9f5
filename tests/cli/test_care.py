"""What `twinlake status` says of backups and of the users file, and `twinlake doctor` of the latter."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.test_services import NOTHING, PART
from twinlake.base.times import format_moment, utc_now
from twinlake.cli import doctor, status
from twinlake.cli.app import build_app
from twinlake.config import users
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.sql import users_file

FAILED = {
    "error": "UsageError",
    "what": "/mnt/b has the backups of another lake",
    "why": "",
    "remedy": "look",
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), list(arguments))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: None) -> Path:
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.fixture
def running(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`running("sql", backup={...})`: these parts run, and the lake server says this."""

    def begin(*parts: str, **lake: Any) -> None:
        described = [{**PART, "part": part} for part in ("lake", *parts)]
        monkeypatch.setattr(status.control, "describe", lambda settings: described)
        monkeypatch.setattr(status.record, "supervisor_alive", lambda settings: True)
        monkeypatch.setattr(status, "_lake_status", lambda settings, parts: {**NOTHING, **lake})

    return begin


def ago(hours: float) -> str:
    return format_moment(utc_now() - timedelta(hours=hours))


@pytest.mark.parametrize(
    ("newest", "since", "failed", "line", "wrong"),
    [
        (47, None, None, "backup: in time, the newest is of ", None),
        (None, None, None, "backup: in time, there is none yet", None),
        (None, 47, None, "backup: in time, there is none yet", None),
        (49, None, None, "backup: late, the newest is of ", "none has been taken lately"),
        (None, 49, None, "backup: late, there is none yet", "none has been taken lately"),
        (1, None, FAILED, "backup: failed, the newest is of ", "the last one failed"),
        (49, None, FAILED, "backup: failed, the newest is of ", "the last one failed"),
    ],
)
def test_status_says_of_when_the_newest_backup_is_and_whether_it_is_late_or_failed(
    running: Callable[..., None], newest: float | None, since: float | None, failed: Any, line: str,
    wrong: str | None,
) -> None:  # fmt: skip
    backup = {"newest": newest and ago(newest), "since": since and ago(since), "failed": failed}
    running(backup=backup)

    done, told = run("status"), run("status", "--json")

    assert [one for one in done.stdout.splitlines() if one.startswith(line)], done.stdout
    assert (backup["newest"] or "there is none yet") in done.stdout
    found = json.loads(told.stdout)["backup"]
    assert {name: found[name] for name in backup} == backup
    assert (found["error"] or {}).get("what") == wrong
    assert done.exit_code == told.exit_code == (1 if wrong else 0)
    if wrong:
        assert f"backup: {wrong}" in done.stdout and "`twinlake backup` takes one now" in done.stdout


def test_how_old_a_backup_may_be_is_what_the_alarm_says(home: Path, running: Callable[..., None]) -> None:
    (home / "twinlake.toml").write_text("[alarms]\nbackup_hours = 2\n")
    running(backup={"newest": ago(3), "since": None, "failed": None})

    done = run("status")

    assert "backup: late" in done.stdout and "backup_hours allows 2 hours" in done.stdout


@pytest.mark.parametrize("lake", [{}, {"backup": None}])
def test_where_no_folder_is_set_nothing_is_said_of_backups(
    running: Callable[..., None], lake: dict[str, Any]
) -> None:
    running(**lake)

    assert "backup" not in run("status").stdout
    assert json.loads(run("status", "--json").stdout)["backup"] is None


@pytest.mark.parametrize("wrong", ["a line that is none", "gone"])
def test_a_damaged_users_file_is_named_with_what_to_do(
    home: Path, running: Callable[..., None], wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_prerequisites", lambda settings: "are here")  # this machine's own matter
    monkeypatch.setattr(doctor, "_confinement", lambda settings: "a view")
    file = users_file(folders_of(Settings(home=home)))
    file.parent.mkdir()
    users.add(file, "anna", "operator")
    running("sql", "console")
    well = run("status")
    looked = json.loads(run("doctor", "--json").stdout)
    whole = file.read_text()
    if wrong == "gone":
        file.unlink()
    else:
        file.write_text(f"{whole}mallory\n")

    ill, examined = run("status"), run("doctor")
    file.write_text(whole)

    assert (well.exit_code, run("status").exit_code) == (0, 0)
    assert [one["found"] for one in looked["checks"] if one["service"] == "users"] == ["1 may sign in"]
    assert ill.exit_code == 1 and f"users: the users in {file} cannot be read" in ill.stdout
    if wrong == "gone":
        assert "why: there is no such file" in ill.stdout and "put it back from a backup" in ill.stdout
    else:
        for said in (ill.stdout, examined.stdout):
            assert "line 2 has not the form" in said and "correct the line" in said
        assert examined.exit_code == 1


def test_where_nothing_runs_that_people_sign_in_to_no_users_file_is_missed(
    running: Callable[..., None],
) -> None:
    running()

    assert run("status").exit_code == 0
