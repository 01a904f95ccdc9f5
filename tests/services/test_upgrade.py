"""An upgrade by its files: what is kept, what is put back, and that a kill at any step loses nothing.

What runs is a stand-in that does to a data directory what services of another version do: it writes small
files again in place, adds and deletes data files, and keeps a database.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services.upgraded import BACKWARD, FORWARD, NEVER_RAN, World, content, kill_at, world_in
from tests.world import Killed
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, DifferenceError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.version import VERSION
from twinlake.services.upgrade import kept, starter, state
from twinlake.services.upgrade.state import Step


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_in(tmp_path)


def test_data_files_are_kept_by_links_and_all_that_is_written_again_as_copies(world: World) -> None:
    before = world.lake

    ended = world.upgrade.forward()

    assert (ended.step, world.machine.does) == (Step.UPGRADED, ["down", "down", "up", "note upgrade"])
    assert content(world.lakes.before) == before and world.lake != before
    assert "1 data files by links, 6 files copied" in "\n".join(world.said)


def test_an_upgrade_that_is_taken_back_later_leaves_every_byte_of_before_and_keeps_what_came(
    world: World,
) -> None:
    lake, home = world.lake, world.home
    world.upgrade.forward()
    (world.folders.home / "kafka/data/orders-0/0.log").write_text("records and more")
    (world.folders.home / "access/users").write_text("anna without ben")
    after, of_kafka = world.lake, "kafka/data/orders-0/0.log"

    ended = world.upgrade.back()

    assert (ended.step, ended.started) == (Step.RETURNED, True)
    assert world.lake == lake
    assert world.home == {**home, of_kafka: b"records and more"}
    assert content(world.lakes.after) == after
    assert (world.folders.upgrade / "after" / "airflow/airflow.db-wal").read_text() == "of the new version"
    assert world.machine.does[-3:] == ["down", f"up by {VERSION}", "note back"]
    assert world.machine.runs == ["broker", "lake"]
    assert stat.S_IMODE(world.lakes.lake.stat().st_mode) == 0o755
    (said,) = [line for line in world.said if line.startswith("changed since")]
    assert "access/users;" in said and "services.json" not in said  # which the upgrade itself has changed


@pytest.mark.parametrize("point", FORWARD)
def test_killed_at_any_step_it_goes_on_to_the_same_end(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    before = world.lake
    left = kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.upgrade.forward()
    assert not left
    with pytest.raises(UsageError, match=r"an upgrade of 2026-01-31T12:00:00Z was not finished") as refused:
        state.refuse_start(world.folders)
    assert refused.value.remedy == state.BOTH_WAYS

    ended = world.upgrade.forward()

    assert (ended.step, ended.services) == (Step.UPGRADED, ["broker", "lake"])
    assert content(world.lakes.before) == before
    assert json.loads((world.lakes.lake / "lake.json").read_text())["format"] == 6
    assert world.machine.runs == ["broker", "lake"]
    state.refuse_start(world.folders)


@pytest.mark.parametrize("point", FORWARD)
def test_killed_at_any_step_it_goes_back_to_every_byte_of_before(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point
) -> None:
    lake, home = world.lake, world.home
    kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.upgrade.forward()

    ended = world.upgrade.back()

    assert (ended.step, ended.started) == (Step.RETURNED, True)
    assert (world.lake, world.home) == (lake, home)
    assert not world.lakes.before.exists() and not world.lakes.making.exists()
    assert world.lakes.after.exists() is (point not in NEVER_RAN)
    assert world.step is (None if point in NEVER_RAN else Step.RETURNED)
    assert world.machine.runs == ["broker", "lake"]


@pytest.mark.parametrize("again", ["forward", "back"])
@pytest.mark.parametrize("point", BACKWARD)
def test_killed_on_the_way_back_it_goes_on_going_back(
    world: World, monkeypatch: pytest.MonkeyPatch, point: Point, again: str
) -> None:
    lake, home = world.lake, world.home
    world.upgrade.forward()
    after = world.lake
    kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        world.upgrade.back()

    ended = world.upgrade.back() if again == "back" else world.upgrade.forward()

    assert ended.step is Step.RETURNED
    assert (world.lake, world.home, content(world.lakes.after)) == (lake, home, after)


@pytest.mark.parametrize(
    "fails", [{"fails": UnreachableError("lake does not get ready", "its process ended", "see its log")},
              {"differs": DifferenceError("the lake is not as it was before the upgrade", "release 1", "")}],
)  # fmt: skip
def test_where_the_new_version_fails_everything_is_put_back_and_the_reason_said(
    world: World, fails: dict[str, Any]
) -> None:
    lake, home = world.lake, world.home
    world.machine = replace(world.machine, **fails)
    (error,) = fails.values()

    with pytest.raises(TwinlakeError, match="failed, and everything is back as it was") as failed:
        world.upgrade.forward()

    assert failed.value.why == f"{error.what}; {error.why}"
    assert failed.value.remedy.startswith(f"Twinlake {VERSION} runs again.")
    assert (world.lake, world.home, world.step) == (lake, home, Step.RETURNED)
    assert world.machine.does[-3:] == ["down", f"up by {VERSION}", "note back"]


def test_where_keeping_fails_nothing_but_a_restart_has_happened(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, home = world.lake, world.home

    def no_links(*places: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)

    with pytest.raises(TwinlakeError, match="everything is back as it was"):
        world.upgrade.forward()

    assert (world.lake, world.home, world.step) == (lake, home, None)
    assert kept.kept_lakes(world.lakes) == [] and world.machine.does[-2] == f"up by {VERSION}"


def test_what_would_fail_is_said_first_and_changes_nothing(world: World) -> None:
    before = content(world.folders.home)
    world.machine.in_the_way = UsageError("no Java is here", "", "install one")

    with pytest.raises(UsageError, match="no Java"):
        world.upgrade.forward()

    assert (content(world.folders.home), world.machine.does, world.step) == (before, [], None)


def test_one_that_runs_is_not_said_to_have_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state.error_seen(world.folders) is None
    kill_at(monkeypatch, FORWARD[-1])
    with pytest.raises(Killed):
        world.upgrade.forward()

    with state.alone(world.folders):
        running = state.error_seen(world.folders)
    ended = state.error_seen(world.folders)

    assert isinstance(running, BusyError) and running.what.endswith("is running")
    assert running.remedy == "wait for its end" and "checking what the new version" in running.why
    assert ended is not None and ended.what.endswith("was not finished")


def test_a_second_upgrade_waits_until_the_first_is_ended(world: World) -> None:
    world.upgrade.forward()

    with pytest.raises(UsageError, match="has not been ended") as refused:
        world.upgrade.forward()
    assert "`twinlake upgrade --done`" in refused.value.remedy and "--back" in refused.value.remedy

    world.upgrade.let_go()

    assert kept.kept_lakes(world.lakes) == [] and not world.folders.upgrade.exists()
    assert world.upgrade.forward().step is Step.UPGRADED


def test_after_the_way_back_the_same_new_version_is_not_started_by_mistake(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace(starter.this(), version="0.0.9").save(world.folders)
    world.upgrade.forward()

    ended = world.upgrade.back()

    assert ended.started is False and not any(one.startswith("up by") for one in world.machine.does)
    assert world.upgrade.after_return(ended).startswith("Install Twinlake 0.0.9 where")
    with pytest.raises(UsageError, match="was put back from Twinlake") as refused:
        state.refuse_start(world.folders)
    assert refused.value.remedy.startswith("install Twinlake 0.0.9 and run `twinlake up`")
    monkeypatch.setattr(state, "VERSION", "0.0.9")  # which is installed now
    state.refuse_start(world.folders)


def test_what_did_not_run_before_is_not_started_by_a_failure(world: World) -> None:
    world.machine.runs, world.machine.fails = [], UnreachableError("lake does not get ready")

    with pytest.raises(TwinlakeError) as failed:
        world.upgrade.forward(["lake"])

    assert world.machine.runs == [] and not any(one.startswith("up by") for one in world.machine.does)
    assert "run `twinlake up`" in failed.value.remedy


def test_going_back_without_an_upgrade_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="no upgrade to go back from"):
        world.upgrade.back()
    world.upgrade.forward()
    world.upgrade.back()
    with pytest.raises(UsageError, match="is back already"):
        world.upgrade.back()
