"""Watch: from figures to receivers, by what contracts promise; nothing is lost by receivers that are away."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.alarms.figures import NOW, PART, STATUS, TOPIC, VERSION
from tests.project import OURS
from twinlake.alarms import watch as watch_module
from twinlake.alarms.alarm import Message
from twinlake.alarms.receivers import Notifier
from twinlake.alarms.watch import KEPT_EVERY_S, WINDOW_S, Watch, Window, alarms_now, book_file
from twinlake.base.errors import UnreachableError
from twinlake.base.waiting import wait_for
from twinlake.config import users
from twinlake.config.project import Project
from twinlake.config.settings import Settings

LATE = {**STATUS, "versions": [{**VERSION, "lag_seconds": 1_000.0}]}


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Receiver:
    """One that accepts nothing while it is away."""

    def __init__(self) -> None:
        self.is_away = False
        self.tries = 0
        self.got: list[Message] = []

    def send(self, message: Message) -> None:
        self.tries += 1
        if self.is_away:
            raise OSError("nobody is here")
        self.got.append(message)

    def events(self) -> list[tuple[str, str]]:
        return [(one.event, one.alarm.title) for one in self.got]


class World:
    """A watch over figures that a test changes."""

    def __init__(self, home: Path, receivers: dict[str, Notifier], project: Project = OURS) -> None:
        home.mkdir(exist_ok=True)
        self.settings = Settings(home=home, in_project=project)
        self.status: dict[str, Any] | None = STATUS
        self.clock = Clock()
        self.watch = Watch(self.settings, receivers, self.clock, self._ask, lambda: [PART])

    def _ask(self) -> dict[str, Any]:
        if self.status is None:
            raise UnreachableError("the lake server does not answer", "no route", "look")
        return self.status

    def _unasked(self) -> list[dict[str, Any]]:
        raise UnreachableError("services.json cannot be read", "it is torn", "look")

    def look(self, *seconds: float) -> None:
        """A look at each of these seconds from the beginning."""
        for one in seconds:
            self.clock.now = NOW + timedelta(seconds=one)
            self.watch.look()


@contextmanager
def running(watch: Watch) -> Iterator[None]:
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.stop()
        thread.join(10)


@pytest.fixture(autouse=True)
def well(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a supervisor, and room on the disk; a receiver is tried again soon."""
    monkeypatch.setattr(watch_module.record, "supervisor_error", lambda settings: None)
    room = SimpleNamespace(total=1 << 40, free=1 << 39)
    monkeypatch.setattr(watch_module.shutil, "disk_usage", lambda folder: room)
    monkeypatch.setattr(watch_module, "AGAIN_S", (0.01,))


def until(true: Callable[[], Any]) -> None:
    wait_for("it", lambda: true() or None, 20, every_s=0.01)


def test_an_alarm_comes_to_each_receiver_once_and_its_end_too(tmp_path: Path) -> None:
    receivers = {"log": Receiver(), "webhook": Receiver()}
    world = World(tmp_path / "home", dict(receivers))
    senders = world.watch._senders
    for one in senders:
        one.start()
    world.status = LATE
    world.look(0, 2, 4)
    world.status = STATUS
    world.look(6, 30)

    expected = [("raised", "sales"), ("over", "sales")]
    until(lambda: all(one.events() == expected for one in receivers.values()))
    until(lambda: json.loads(book_file(world.settings).read_text())["unsent"] == {"log": [], "webhook": []})
    world.watch.stop()


def test_a_receiver_that_is_away_keeps_no_other_waiting_and_gets_all_after_a_restart(tmp_path: Path) -> None:
    here, away = Receiver(), Receiver()
    away.is_away = True
    world = World(tmp_path / "home", {"log": here, "webhook": away})
    world.status = LATE
    with running(world.watch):
        until(lambda: world.watch._book.looked_at)
        world.clock.now += timedelta(seconds=5)
        until(lambda: here.events() == [("raised", "sales")])
        until(lambda: away.tries > 2)
    assert away.got == []

    again = World(tmp_path / "home", {"log": here, "webhook": away})
    away.is_away, again.status = False, LATE
    with running(again.watch):
        until(lambda: away.events() == [("raised", "sales")])
        until(lambda: json.loads(book_file(again.settings).read_text())["unsent"]["webhook"] == [])
    assert here.events() == [("raised", "sales")]


def test_the_death_of_the_lake_server_is_an_alarm_and_ends_no_other(tmp_path: Path) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    world.status = LATE
    world.look(0, 2)
    world.status = None
    world.look(4, 30)

    assert {one.title for one in alarms_now(world.settings, world.clock())} == {"sales", "lake server"}
    assert alarms_now(world.settings, world.clock() + timedelta(minutes=1)) == []


def test_contracts_say_what_is_late_and_whose_it_is_and_a_broken_one_keeps_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "CONTRACTS_EVERY_S", 0.0)
    contracts = tmp_path / "project" / "contracts"
    contracts.mkdir(parents=True)
    file = contracts / "sales.yaml"
    file.write_text(
        "name: sales\nteam: {name: data, members: [{username: anna@example.com}]}\n"
        "slaProperties: [{property: latency, value: 5, unit: seconds}]\n"
    )
    world = World(tmp_path / "home", {"log": Receiver()}, Project(root=tmp_path / "project"))
    world.status = {**STATUS, "versions": [{**VERSION, "lag_seconds": 6.0}]}
    world.look(0, 2)
    (alarm,) = alarms_now(world.settings, world.clock())
    file.write_text("name: sales\nslaProperties: [{property: latency, value: soon, unit: seconds}]\n")
    world.look(4, 30)

    assert (alarm.kind, alarm.owners) == ("freshness", ("anna@example.com",))
    assert [one.kind for one in alarms_now(world.settings, world.clock())] == ["freshness"]


def test_records_that_were_refused_before_the_watch_began_count_for_nothing(tmp_path: Path) -> None:
    def counts(valid: int, invalid: int) -> dict[str, Any]:
        return {**STATUS, "topics": [{**TOPIC, "counts": {"valid": valid, "invalid": invalid}}]}

    world = World(tmp_path / "home", {"log": Receiver()})
    world.status = counts(0, 10_000)
    world.look(0, 2, 4)
    assert alarms_now(world.settings, world.clock()) == []
    late = {"valid": 91, "invalid": 10_009, "late": 91, "replayed": 500}  # late ones are among the valid
    world.status = {**STATUS, "topics": [{**TOPIC, "counts": late}]}
    world.look(6, 8)
    (alarm,) = alarms_now(world.settings, world.clock())
    assert alarm.kind == "quarantine"
    assert alarm.what == "9% of its records of the last ten minutes were refused"


def test_a_window_knows_what_has_grown_in_the_last_ten_minutes_and_begins_again_after_a_reset() -> None:
    window = Window()
    assert window.grown({"a": (5,)}, 0) == {"a": (0,)}
    assert window.grown({"a": (7,)}, KEPT_EVERY_S) == {"a": (2,)}
    assert window.grown({"a": (7,)}, WINDOW_S + KEPT_EVERY_S + 1) == {"a": (0,)}
    assert window.grown({"a": (1,), "b": (3, 9)}, WINDOW_S + 30) == {"a": (0,), "b": (0, 0)}
    assert window.grown({"a": (2,), "b": (4, 19)}, WINDOW_S + 31) == {"a": (1,), "b": (1, 10)}
    assert window.grown({"b": (2, 20)}, WINDOW_S + 32) == {"b": (0, 0)}  # a replay: all of it begins again


def test_a_message_that_a_receiver_never_takes_keeps_no_other_waiting(tmp_path: Path) -> None:
    class Choosy(Receiver):
        def send(self, message: Message) -> None:
            self.is_away = message.alarm.title == "sales"
            super().send(message)

    receiver = Choosy()
    world = World(tmp_path / "home", {"mail": receiver})
    world.status = {**LATE, "damaged": [{"what": "gone", "why": "", "remedy": "", "file": "f"}]}
    with running(world.watch):
        until(lambda: world.watch._book.looked_at)
        world.clock.now += timedelta(seconds=5)
        until(lambda: receiver.events() == [("raised", "lake")])
        until(lambda: receiver.tries > 4)
    kept = json.loads(book_file(world.settings).read_text())["unsent"]["mail"]
    assert [one["alarm"]["title"] for one in kept] == ["sales"]


def test_a_lake_server_that_starts_ends_no_alarm(tmp_path: Path) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    world.status = LATE
    world.look(0, 2)
    (before,) = alarms_now(world.settings, world.clock())
    world.status = None
    world.look(4, 34)
    world.status = {**STATUS, "ready": False, "topics": [], "versions": [], "release": None}
    world.look(36, 60)
    world.status = LATE
    world.look(62)

    found = alarms_now(world.settings, world.clock())
    assert [one.id for one in found if one.kind == "freshness"] == [before.id]


def test_a_service_that_starts_for_the_first_time_is_no_alarm_until_it_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "SERVICES_EVERY_S", 0.0)
    sql = {**PART, "part": "sql", "service": "sql", "state": "starting", "answers": False, "answer": "no"}
    world = World(tmp_path / "home", {"log": Receiver()})
    users.add(tmp_path / "home" / "access" / "users", "ann", "analyst")

    def alarms(part: dict[str, Any], *seconds: float) -> list[str]:
        world.watch._parts = lambda: [PART, part]
        world.look(*seconds)
        return [one.title for one in alarms_now(world.settings, world.clock())]

    assert alarms(sql, 0, 30, 60) == []
    assert alarms({**sql, "state": "failed"}, 70, 95) == ["sql"]
    assert alarms(sql, 100) == ["sql"], "it was one before"
    assert alarms({**sql, "state": "ready", "answers": True}, 110, 130) == []
    assert alarms(sql, 140, 165) == ["sql"], "it has been ready"


def test_a_service_that_does_not_start_in_its_time_is_an_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    world.watch._parts = lambda: [{**PART, "state": "starting", "answers": False}]
    world.look(0, 30)
    assert alarms_now(world.settings, world.clock()) == []
    world.watch._begun -= world.settings.values.limits.start_seconds + 1
    world.look(40, 65)
    assert [one.title for one in alarms_now(world.settings, world.clock())] == ["lake"]


def test_services_that_cannot_be_asked_are_an_alarm_and_stop_no_other(tmp_path: Path) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    world.watch._parts = world._unasked
    world.status = LATE
    world.look(0, 2, 30)
    assert {one.title for one in alarms_now(world.settings, world.clock())} == {"sales", "services"}


def test_a_disk_that_is_full_stops_no_look_and_loses_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    world = World(tmp_path / "home", {"log": receiver})
    world.status = LATE

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with running(world.watch):
        until(lambda: world.watch._book.looked_at)
        monkeypatch.setattr(type(world.watch._book), "save", full)
        world.clock.now += timedelta(seconds=5)
        until(lambda: receiver.events() == [("raised", "sales")])


def test_a_users_file_that_is_damaged_is_an_alarm_until_it_is_right(tmp_path: Path) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    file = tmp_path / "home" / "access" / "users"
    users.add(file, "ann", "analyst")
    whole = file.read_text()
    world.watch._parts = lambda: [PART, {**PART, "part": "sql", "service": "sql"}]
    world.look()
    assert alarms_now(world.settings, world.clock()) == []

    file.write_text("torn:\n" + whole)
    world.look(0, 30)
    (one,) = alarms_now(world.settings, world.clock())
    assert one.title == "users" and "line 1" in one.why and "from a backup" in one.remedy
    file.write_text(whole)
    world.look(2, 30)
    assert alarms_now(world.settings, world.clock()) == []
