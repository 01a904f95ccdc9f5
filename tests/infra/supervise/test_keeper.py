"""A keeper without a supervisor process: what it does while it waits."""

import threading
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import cast

import pytest

from infra.parts.folders import Folders
from infra.parts.part import Context, Part
from infra.supervise import keeper as keeper_module
from infra.supervise import record
from infra.supervise.keeper import Keeper, say
from jobs.waiting import wait_for


class NothingReady:
    """A home in which no part ever gets ready."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.environ: Mapping[str, str] = {}
        self.ending = threading.Event()

    def is_ready(self, name: str) -> bool:
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


class OnePart(NothingReady):
    def is_ready(self, name: str) -> bool:
        return True

    def context(self) -> Context:
        return cast(Context, None)  # the part below asks nothing of it

    def renew_ports(self, part: Part) -> None:
        """It has none."""


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
