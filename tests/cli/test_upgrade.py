"""`twinlake upgrade` as somebody types it: what it refuses, what it asks, who says that one is half made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.json_shapes import wrong
from tests.small_lake.small import unpack
from twinlake.base.errors import TwinlakeError, UnreachableError, UsageError
from twinlake.base.version import VERSION
from twinlake.cli.app import build_app
from twinlake.cli.upgrading import behind
from twinlake.reference.json_output import COMMANDS
from twinlake.services.folders import Folders
from twinlake.services.upgrade import kept
from twinlake.services.upgrade.kept import Lakes
from twinlake.services.upgrade.state import State, Step

Run = Callable[..., Result]


@pytest.fixture
def run(home: Path, environment: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("TWINLAKE_HOME", str(home))

    def run(*words: str) -> Result:
        return CliRunner().invoke(build_app(words[0]), [*words])

    return run


def refused(done: Result) -> TwinlakeError:
    assert isinstance(done.exception, TwinlakeError), done.output
    return done.exception


def half_made(home: Path, step: Step) -> None:
    made = State(step=step, was="0.0.9", lake=str(home / "lake"), began_at="2026-01-31T12:00:00Z")
    made.save(Folders(home=home))


def test_a_lake_in_hdfs_is_refused_with_the_other_way(run: Run, home: Path) -> None:
    (home / "twinlake.toml").write_text('[lake]\nuri = "hdfs://name:8020/lake"\n')

    error = refused(run("upgrade"))

    assert isinstance(error, UsageError) and "cannot be upgraded by this command" in error.what
    assert "`twinlake backup DIR`" in error.remedy and "`twinlake up`" in error.remedy


def test_two_ways_at_once_and_a_folder_that_is_none_are_refused(run: Run, home: Path) -> None:
    assert "two ways" in refused(run("upgrade", "--back", "--done")).what
    assert "nothing of an upgrade is kept" in refused(run("upgrade", "--done")).what
    assert "no upgrade to go back from" in refused(run("upgrade", "--back")).what


@pytest.mark.parametrize(
    ("step", "remedy"),
    [
        (Step.STOP, "`twinlake upgrade` goes on with it, `twinlake upgrade --back` goes back"),
        (Step.START, "`twinlake upgrade` goes on with it, `twinlake upgrade --back` goes back"),
        (Step.RETURN, "`twinlake upgrade --back` goes on with it"),
    ],
)
def test_up_refuses_half_an_upgrade_and_status_and_doctor_name_it(
    run: Run, home: Path, step: Step, remedy: str
) -> None:
    half_made(home, step)

    for done in (run("up"), run("status")):
        error = refused(done)
        assert "an upgrade of 2026-01-31T12:00:00Z was not finished" in error.what
        assert error.remedy.startswith(remedy)
    assert isinstance(refused(run("status")), UnreachableError)
    checks = json.loads(run("doctor", "--json").stdout)["checks"]
    (said,) = [one["error"] for one in checks if one["checked"] == "the last upgrade"]
    assert said["remedy"].startswith(remedy)


def test_half_an_upgrade_is_not_let_go(run: Run, home: Path) -> None:
    half_made(home, Step.START)
    kept.keep(Lakes.of(home / "lake"), Folders(home=home))

    assert "was not finished" in refused(run("upgrade", "--done", "--yes")).what
    assert (home / "lake.before").is_dir()


def test_what_is_let_go_is_shown_and_asked_first(run: Run, home: Path) -> None:
    half_made(home, Step.UPGRADED)
    kept.keep(Lakes.of(home / "lake"), Folders(home=home))

    asked = run("upgrade", "--done")
    assert "--done asks first" in refused(asked).what and "this frees" in asked.stdout
    assert (home / "lake.before").is_dir()
    done = json.loads(run("upgrade", "--done", "--yes", "--json").stdout)

    assert wrong(COMMANDS["upgrade --done"], done) == []
    assert done["deleted"] == [str(home / "lake.before")] and done["freed_bytes"] > 0
    assert not (home / "lake.before").exists() and not (home / "upgrade").exists()


def test_a_lake_that_is_not_as_it_was_is_said_with_names_and_numbers() -> None:
    before = {
        "release": {"number": 2, "tables": {"sales": "a-1"}}, "logs": {"orders": 7, "clicks": 3},
        "positions": {"sales a-1": {"orders": 7}, "old b-1": {"orders": 6}},
    }  # fmt: skip
    ahead = {**before, "logs": {"orders": 9, "clicks": 3, "more": 1},
             "positions": {"sales a-1": {"orders": 9}, "old b-1": {"orders": 6}}}  # fmt: skip
    now = {
        "release": {"number": 2, "tables": {"sales": "a-2"}}, "logs": {"orders": 6},
        "positions": {"sales a-1": {"orders": 5}},
    }  # fmt: skip

    assert behind(before, before) == behind(before, ahead) == []
    assert behind(before, now) == [
        "live was release 2 (sales a-1), and now release 2 (sales a-2)",
        "the log of orders was at batch 7, and now at 6",
        "the log of clicks was at batch 3, and now is not there",
        "sales a-1 was at batch 7 of orders, and now at 5",
        "old b-1 was at batch 6 of orders, and now is not there",
    ]


def test_status_after_the_way_back_says_why_up_would_be_refused(run: Run, home: Path) -> None:
    State(
        step=Step.RETURNED, was="0.0.9", now=VERSION, lake=str(home / "lake"), began_at="2026-01-31T12:00:00Z"
    ).save(Folders(home=home))

    error = refused(run("status"))

    assert f"the lake of before was put back from Twinlake {VERSION}" in error.what
    assert error.remedy == refused(run("up")).remedy and "install Twinlake 0.0.9" in error.remedy


def test_status_of_an_older_lake_names_the_way_that_keeps_it(run: Run, home: Path) -> None:
    assert refused(run("status")).remedy == "run `twinlake up`"
    unpack(0, home)

    remedy = refused(run("status")).remedy

    assert remedy.startswith("the lake has format 0") and "`twinlake upgrade` takes it on and keeps" in remedy


def test_a_folder_that_no_upgrade_has_made_is_not_let_go(run: Run, home: Path) -> None:
    (home / "lake.before").mkdir()
    (home / "lake.before" / "mine").write_text("a copy")

    error = refused(run("upgrade", "--done", "--yes"))

    assert error.what == "nothing was deleted" and "lake.before" in error.why
    assert (home / "lake.before" / "mine").read_text() == "a copy"
