"""Watch: looks at everything every few seconds, keeps the book, and sends what is in it until it is accepted;
once a minute it adds what it has seen to the history.

It is a process of its own, so that it outlives what it watches, and opens no file of the lake.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from twinlake.alarms import book, silences
from twinlake.alarms.alarm import Alarm, Condition, Message
from twinlake.alarms.book import Book
from twinlake.alarms.conditions import Disk, Figures, conditions, freshness
from twinlake.alarms.history import History, Minute, TablePoint, history_folder
from twinlake.alarms.receivers import Notifier
from twinlake.base.errors import TwinlakeError, first_lines
from twinlake.base.times import Clock, parse_moment
from twinlake.config.settings import Services, Settings
from twinlake.server.client import LakeClient
from twinlake.services.alarms import BOOK, LATE_S
from twinlake.services.folders import folders_of
from twinlake.services.sql import nobody_let_in
from twinlake.services.supervise import control, record
from twinlake.topics.contract_file import load_promise
from twinlake.topics.promises import Promise
from twinlake.topics.verdict import records_in

journal = structlog.get_logger(__name__)

LOOK_S = 2.0
SERVICES_EVERY_S = 10.0
"""To ask every service costs Airflow and the broker more than this process."""
STATUS_S = 5.0
"""A lake server that hangs keeps a look waiting so long."""
CONTRACTS_EVERY_S = 30.0
WINDOW_S = 600.0
KEPT_EVERY_S = 10.0
"""What has grown is known of the last ten minutes, by counts that are kept so often."""
AGAIN_S = (2.0, 5.0, 15.0, 60.0)
"""A receiver that has not accepted is tried again after so long; then always after the last."""
STARTING = ("waiting", "preparing", "starting", "not ready")
"""States of a part that was not ready yet; "not ready" is all that one in a container has."""


def book_file(settings: Settings) -> Path:
    """Where the alarms of a data directory are kept."""
    return settings.run_dir / BOOK


class Watch:
    """`receivers` are by name; `ask` gives the lake server's status, `parts` what the services say."""

    def __init__(
        self, settings: Settings, receivers: Mapping[str, Notifier], clock: Clock,
        ask: Callable[[], dict[str, Any]] | None = None,
        parts: Callable[[], list[dict[str, Any]]] | None = None,
    ) -> None:  # fmt: skip
        self._settings, self._receivers, self._clock = settings, receivers, clock
        self._ask = ask or _Status(settings)
        self._parts = parts or (lambda: control.describe(settings))
        self._file = book_file(settings)
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._book = Book.load(self._file, clock())
        self._book.keep_receivers(receivers)
        self._history, self._minute = History(history_folder(settings)), Minute()
        self._known: list[dict[str, Any]] = []
        self._begun, self._answered = time.monotonic(), set[str]()
        """Since when this watch looks, and which parts have answered since."""
        self._unasked: TwinlakeError | None = None
        """Why the services could not be asked the last time."""
        self._parts_at = self._contracts_at = float("-inf")
        self._promises: dict[str, Promise] = {}
        self._restarts, self._counts = Window(), Window()
        self._senders = [
            threading.Thread(target=self._send, args=(name,), name=f"to {name}", daemon=True)
            for name in receivers
        ]

    def run(self) -> None:
        """Until `stop`."""
        for sender in self._senders:
            sender.start()
        while not self._ending.is_set():
            began = time.monotonic()
            try:
                self.look()
            except Exception:
                journal.exception("a look has failed; the next one comes in a moment")
            self._ending.wait(max(0.0, LOOK_S - (time.monotonic() - began)))

    def stop(self) -> None:
        """What is not sent stays in the book."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()

    def look(self) -> None:
        """One look: what is not well goes into the book, and what is new to the receivers."""
        seen = self._figures()
        self._read_contracts()
        self._remember(seen)
        bounds = self._settings.values.alarms
        found = [
            one for one in conditions(seen, self._promises, bounds, self._clock()) if not self._begins(one)
        ]
        owners = {name: promise.owners for name, promise in self._promises.items()}
        with self._changed:
            messages = self._book.look(
                found, owners, silences.load(self._settings), self._clock(), seen.status is not None
            )
            if messages:
                console = self._console()
                self._book.put(self._receivers, [replace(one, console=console) for one in messages])
            self._changed.notify_all()  # a full disk keeps nobody from being sent what it makes an alarm
            self._book.save(self._file)

    def _begins(self, one: Condition) -> bool:
        """Whether it is a service that has not been ready yet since this watch began: `twinlake up` waits for
        it, and says what it waits for. One that was an alarm before stays one."""
        if time.monotonic() - self._begun > self._settings.values.limits.start_seconds:
            return False
        starting = {part["part"] for part in self._known if part["state"] in STARTING}
        is_first = one.title in starting - self._answered and one.key not in self._book.alarms
        return one.kind == "service" and is_first

    def _figures(self) -> Figures:
        now = time.monotonic()
        if now - self._parts_at >= SERVICES_EVERY_S:
            self._parts_at, self._unasked = now, None
            try:
                self._known = self._parts()
            except TwinlakeError as known:
                self._unasked = known
        self._answered |= {part["part"] for part in self._known if part["answers"]}
        status, error = None, None
        try:
            status = self._ask()
        except TwinlakeError as known:
            error = known
        if status and not status["ready"]:  # it starts, and does not know yet what it will say
            status = None
        disk = shutil.disk_usage(self._settings.home)
        counted = self._restarts.grown({part["part"]: (part["restarts"],) for part in self._known}, now)
        restarts = {name: times for name, (times,) in counted.items()}
        return Figures(
            parts=self._known, supervisor=record.supervisor_error(self._settings),
            disk=Disk(free=disk.free, total=disk.total), status=status, error=error, restarts=restarts,
            unasked=self._unasked, nobody_let_in=nobody_let_in(folders_of(self._settings)),
            refused=self._refused(status, now) if status else {},
        )  # fmt: skip

    def _refused(self, status: Mapping[str, Any], now: float) -> dict[str, tuple[int, int]]:
        """By topic, how many records were refused lately, of how many."""
        counts = {
            topic["name"]: (topic["counts"].get("invalid", 0), records_in(topic["counts"]))
            for topic in status["topics"]
            if topic["counts"]
        }
        grown = self._counts.grown(counts, now)
        return {name: (refused, of) for name, (refused, of) in grown.items()}

    def _remember(self, seen: Figures) -> None:
        """Into the history, which is for pictures: whatever is wrong with it, alarms go on."""
        try:
            bounds = self._settings.values.alarms
            tables = freshness(seen.status, self._promises, bounds) if seen.status else {}
            point = self._minute.add(
                seen.status, {name: TablePoint(*one) for name, one in tables.items()}, seen.disk.free,
                self._clock(),
            )  # fmt: skip
            if point:
                self._history.append(point)
        except Exception:
            journal.exception("a minute is missing in the history")

    def _read_contracts(self) -> None:
        if time.monotonic() - self._contracts_at < CONTRACTS_EVERY_S:
            return
        self._contracts_at = time.monotonic()
        found: dict[str, Promise] = {}
        for project in self._settings.sources:
            for file in sorted(project.contracts.glob("*.yaml")):
                try:
                    found[file.stem] = load_promise(file)
                except TwinlakeError as error:  # `twinlake check` says so, too; what it promised before holds
                    journal.warning("a contract is not understood", file=str(file), why=str(error))
                    if file.stem in self._promises:
                        found[file.stem] = self._promises[file.stem]
        self._promises = found

    def _console(self) -> str:
        try:
            return self._settings.services().console_url
        except TwinlakeError:
            return ""

    def _send(self, name: str) -> None:
        """Everything that waits for one receiver, until it has accepted; in order while it accepts, so that a
        message that it never takes keeps no other waiting."""
        failures = 0
        while not self._ending.is_set():
            with self._changed:
                waiting = self._book.unsent.get(name)
                if not waiting:
                    self._changed.wait(60.0)
                    continue
                message: Message = waiting[0]
            try:
                self._receivers[name].send(message)
            except Exception as error:  # a network, another's code
                tell = journal.warning if failures == 0 else journal.info
                tell("a receiver has not accepted an alarm; it is tried again", receiver=name, id=message.id,
                     why=f"{type(error).__name__}: {first_lines(error)}")  # fmt: skip
                with self._changed:
                    self._book.later(name, message.id)
                self._ending.wait(AGAIN_S[min(failures, len(AGAIN_S) - 1)])
                failures += 1
                continue
            failures = 0
            self._accepted(name, message)

    def _accepted(self, name: str, message: Message) -> None:
        with self._changed:
            self._book.sent(name, message.id)
            try:
                self._book.save(self._file)
            except Exception:  # a full disk: the next look saves it
                journal.exception("it is not noted yet that a receiver has accepted an alarm", receiver=name)


Counts = tuple[int, ...]


class Window:
    """Counts by name, several of each; those of a name that is new begin there, and all those of a name of
    which one has become smaller, as a replay makes those that were refused."""

    def __init__(self) -> None:
        self._kept: dict[str, deque[tuple[float, Counts]]] = {}

    def grown(self, counts: Mapping[str, Counts], at: float) -> dict[str, Counts]:
        """By name, how much it has grown in the last ten minutes; `at` is a clock's that never goes back."""
        for name in self._kept.keys() - counts.keys():
            del self._kept[name]
        return {name: self._grown(name, count, at) for name, count in counts.items()}

    def _grown(self, name: str, count: Counts, at: float) -> Counts:
        kept = self._kept.setdefault(name, deque())
        if kept and any(now < before for now, before in zip(count, kept[-1][1], strict=True)):
            kept.clear()
        if not kept or at - kept[-1][0] >= KEPT_EVERY_S or count != kept[-1][1]:
            kept.append((at, count))
        while len(kept) > 1 and kept[1][0] <= at - WINDOW_S:
            kept.popleft()
        return tuple(now - before for now, before in zip(count, kept[0][1], strict=True))


class _Status:
    """Asks the lake server, by one client for as long as its address is the same."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: tuple[Services, LakeClient] | None = None

    def __call__(self) -> dict[str, Any]:
        services = self._settings.services()
        if self._client is None or self._client[0] != services:
            self._client = (services, LakeClient.of(services, timeout_s=STATUS_S))
        return self._client[1].status()


def alarms_now(settings: Settings, now: datetime) -> list[Alarm]:
    """Those in the book; none where nobody has looked lately, which the probe of the service says."""
    found = book.read(book_file(settings))
    if is_old(found.get("looked_at", ""), now):
        return []
    return [Alarm.from_json(one) for one in found["alarms"]]


def is_old(looked_at: str, now: datetime) -> bool:
    """Whether the last look of the book was too long ago to say anything of now, or is of a time to come."""
    return not looked_at or abs((now - parse_moment(looked_at)).total_seconds()) > LATE_S
