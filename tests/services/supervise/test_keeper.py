"""A keeper without a supervisor process: what it does while it waits."""

import sys
import threading
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import cast

import pytest

from tests.project import PROJECT
from twinlake.base.waiting import wait_for
from twinlake.services.folders import Folders
from twinlake.services.part import Command, Context, Part
from twinlake.services.supervise import keeper as keeper_module
from twinlake.services.supervise import record
from twinlake.services.supervise.keeper import Keeper, say
from twinlake.services.supervise.record import Record


class NothingReady:
    """A home in which no part ever gets ready."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.environ: Mapping[str, str] = {}
        self.ending = threading.Event()

    def is_ready(self, name: str) -> bool:
        return False

    def is_starting(self, name: str) -> bool:
        return False

    def context(self) -> Context:
        raise AssertionError("nothing may be started here")

    def renew_ports(self, part: Part) -> None:
        raise AssertionError("nothing may be started here")


def test_a_part_that_waits_for_another_is_left_at_once_when_the_supervisor_ends(tmp_path: Path) -> None:
    home = NothingReady(Folders(home=tmp_path))
    home.folders.make()
    keeper = Keeper(home, Part(name="second", service="second", needs=("first",)))
    keeper.start()
    wait_for("the keeper to wait", lambda: record.load(home.folders, "second").state == "waiting" or None, 10)

    home.ending.set()
    keeper.join(10)

    assert not keeper.is_alive()
    assert record.load(home.folders, "second").state == "waiting"


def test_what_the_supervisor_says_ends_nothing_when_its_log_has_no_room() -> None:
    with suppress(OSError), open("/dev/full", "w") as full, redirect_stdout(full):
        say("a part ended")
        said = True

    assert said


def test_why_a_server_gave_up_is_told_until_it_is_ready_again(tmp_path: Path) -> None:
    """And of one that never got ready nothing is: `up` waits for its next start."""
    home = OnePart(Folders(home=tmp_path))
    home.folders.make()
    program = (
        "import time; from twinlake.base import service_log; from twinlake.spark import jvm;"
        "from twinlake.base.errors import TwinlakeError;"
        "service_log.start(); time.sleep(1);"
        "jvm.give_up(TwinlakeError('Spark runs nothing any more', 'its executor has ended', 'wait'))"
    )
    ready = threading.Event()

    def probe(context: Context) -> str:
        if not ready.is_set():
            raise ConnectionError("not yet")
        return "here"

    command = Command(arguments=(sys.executable, "-c", program), environ={"PYTHONPATH": str(PROJECT)})
    keeper = Keeper(home, Part(name="kept", service="kept", command=lambda context: command, probe=probe))
    keeper.start()

    def ended(times: int) -> Record:
        def found() -> Record | None:
            now = record.load(home.folders, "kept")
            return now if now.state == "failed" and now.restarts >= times else None

        return wait_for("its end", found, 60, every_s=0.02)

    never_ready = ended(1)
    ready.set()
    wait_for("it to be ready", lambda: keeper.ready.is_set() or None, 60, every_s=0.02)
    after = ended(never_ready.restarts + 1)
    home.ending.set()
    keeper.join(10)

    assert never_ready.error is None
    assert after.error is not None and after.error["why"] == "its executor has ended"


class OnePart(NothingReady):
    def is_ready(self, name: str) -> bool:
        return True

    def context(self) -> Context:
        return cast(Context, None)  # the part below asks nothing of it

    def renew_ports(self, part: Part) -> None:
        """It has none."""


class FirstStarting(OnePart):
    def __init__(self, folders: Folders) -> None:
        super().__init__(folders)
        self.over = threading.Event()

    def is_starting(self, name: str) -> bool:
        return not self.over.is_set()


@pytest.mark.parametrize("ends", ["it is over", "the time is over"])
def test_a_part_lets_others_go_first_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr(keeper_module, "AFTER_S", 3600.0 if ends == "it is over" else 2.0)
    home = FirstStarting(Folders(home=tmp_path))
    home.folders.make()
    keeper = Keeper(home, Part(name="second", service="second", after=("first",)))
    keeper.start()

    assert not keeper.ready.wait(1.0)
    if ends == "it is over":
        home.over.set()

    assert keeper.ready.wait(30)
    home.ending.set()
    keeper.join(10)


def test_a_part_is_tidied_again_and_again_and_lives_on_when_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "_TIDY_S", 0.01)
    monkeypatch.setattr(keeper_module, "_TIDY_FIRST_S", 0.01)
    home, tidied = OnePart(Folders(home=tmp_path)), []
    home.folders.make()

    def tidy(context: Context) -> None:
        tidied.append(context)
        raise OSError("disk full")

    keeper = Keeper(home, Part(name="kept", service="kept", tidy=tidy))
    keeper.start()
    wait_for("two clean-ups", lambda: len(tidied) >= 2 or None, 20)

    assert record.load(home.folders, "kept").state == "ready" and keeper.is_alive()
    home.ending.set()
    keeper.join(10)


@pytest.mark.parametrize("steady_s", [0.0, 1e9])
def test_what_was_steady_is_started_again_at_once_and_anything_else_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steady_s: float
) -> None:
    monkeypatch.setattr(keeper_module, "_STEADY_S", steady_s)
    monkeypatch.setattr(keeper_module, "BACKOFF_S", (keeper_module.BACKOFF_S[0], 3600))
    home, started = OnePart(Folders(home=tmp_path)), []
    home.folders.make()

    def command(context: Context) -> Command:
        started.append(context)
        return Command(arguments=(sys.executable, "-c", ""), environ={})

    keeper = Keeper(home, Part(name="kept", service="kept", command=command))
    keeper.start()
    wanted = 1 if steady_s else 4
    wait_for("its starts", lambda: len(started) >= wanted or None, 30, every_s=0.02)
    wait_for(
        "its end", lambda: record.load(home.folders, "kept").restarts >= wanted or None, 30, every_s=0.02
    )
    home.ending.wait(1.0 if steady_s else 0.0)
    home.ending.set()
    keeper.join(10)

    assert not keeper.is_alive() and (len(started) == 1) == bool(steady_s)
