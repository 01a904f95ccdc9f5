"""The parts of a run as processes: started, killed, frozen, asked; each event is told with its second."""

from __future__ import annotations

import math
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.faults.disk import Disk, small_disk
from tests.kill.server import LakeProcess, lake_process
from tests.processes import killed
from tests.reading.conftest import SqlServer
from twinlake.base.errors import (
    BusyError,
    DifferenceError,
    FullDiskError,
    TimedOutError,
    TwinlakeError,
    UnreachableError,
)
from twinlake.base.waiting import wait_for
from twinlake.lake.delta import delta

TOPIC = "orders"
MEGABYTES = 800
LOST_FOR_A_WHILE = (UnreachableError, FullDiskError, TimedOutError, BusyError)
WAIT_S = 900.0
START_S = 600.0
ATTEMPTS = 4
LAKE, SQL = "lake server", "SQL server"
SOON_S = 120.0
"""So long after a kill, a freeze or a full disk a part that it reaches may end for it."""
COMPARES = ("verify", "rebuild", "build")
"""Jobs that fail where speed and batch differ; a release may also be refused for what passes."""


@dataclass(kw_only=True)
class Journal:
    """One line an event, and how many there were of each sort."""

    began: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    """What the run was, told at its end."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def now_s(self) -> float:
        return time.monotonic() - self.began

    def say(self, line: str, sort: str = "", times: int = 1) -> None:
        with self._lock:
            if sort:
                self.counts[sort] += times
            print(f"{self.now_s:7.1f} s  {line}", flush=True)

    def fault(self, line: str) -> None:
        """Something that must not be: the run goes on, and has failed."""
        self.wrong.append(line)
        self.say(f"WRONG: {line}")


@dataclass(kw_only=True)
class World:
    server: LakeProcess
    sql: SqlServer
    disk: Disk
    journal: Journal
    project: Path
    up: threading.Lock = field(default_factory=threading.Lock)
    """Held by whoever ends or starts a part."""
    disturbed: dict[str, float] = field(default_factory=dict)
    """By part, when something that reaches it was last done, in seconds since the start."""

    def do(self, kind: str, key: str, /, **params: Any) -> dict[str, Any]:
        """A job to its end, whoever dies meanwhile: asked again with its key, it goes on."""
        failed, until = 0, time.monotonic() + WAIT_S
        while True:
            try:
                return self.server.do(kind, key=key, **params)
            except LOST_FOR_A_WHILE as error:
                self.journal.counts["jobs that were asked for again"] += 1
                if time.monotonic() > until:
                    raise
                last: TwinlakeError = error
            except TwinlakeError as error:
                if isinstance(error, DifferenceError) and kind in COMPARES:
                    raise  # speed and batch differ, which no second look mends
                last = error
                if "interrupted" in error.what:
                    self.journal.counts["jobs that a kill interrupted"] += 1
                else:
                    failed += 1
                    self.journal.say(f"{kind} failed: {error}"[:600], "jobs that failed and were asked again")
                if failed >= ATTEMPTS or time.monotonic() > until:
                    raise
            time.sleep(2 if isinstance(last, LOST_FOR_A_WHILE) else 5)

    @contextmanager
    def disturbing(self, part: str) -> Iterator[None]:
        """What is done in it may end the part, for a while after it, too."""
        self.disturbed[part] = math.inf
        try:
            with self.up:
                yield
        finally:
            self.disturbed[part] = self.journal.now_s

    def kill(self, victim: str, down_s: float) -> None:
        with self.disturbing(_reached(victim)):
            if victim == "broker":
                self.server.broker.kill()
                time.sleep(down_s)
                self.server.broker.start()
            elif victim.startswith("SQL"):
                self._kill_sql(jvm_alone="JVM" in victim)
                time.sleep(down_s)
                self.start_sql()
            else:
                self._kill_lake(victim)
                time.sleep(down_s)
                self.server.start(START_S)

    def start_sql(self) -> None:
        """However long it takes on a host with other work."""
        try:
            self.sql.start()
        except TimedOutError:
            self.sql.wait_until(lambda status: bool(status["ready"]))

    def start_again(self) -> None:
        """A part that has ended by itself, as its supervisor would; what does not start is tried again."""
        with self.up:
            ended = [part for part in (LAKE, SQL) if self._has_ended(part)]
            for part in ended:
                self._judge_end(part)
            for part in ended:
                try:
                    self.server.start(START_S) if part == LAKE else self.start_sql()
                except (AssertionError, RuntimeError, TwinlakeError) as error:
                    self.journal.say(f"the {part} did not start: {error}"[:600])

    def _has_ended(self, part: str) -> bool:
        if part == LAKE:
            return not self.server.running
        return self.sql._process is not None and self.sql._process.poll() is not None

    def _judge_end(self, part: str) -> None:
        log = self.server.home / "lake.log" if part == LAKE else self.sql.scratch / "sql.log"
        self.journal.say(f"the {part} has ended by itself", f"times that the {part} ended by itself")
        for line in log.read_text().splitlines()[-5:]:
            self.journal.say(f"  {line[:400]}")
        if self.journal.now_s > self.disturbed.get(part, -math.inf) + SOON_S:
            self.journal.fault(f"the {part} ended, and nothing had been done to it for {SOON_S:.0f} s")

    def _kill_lake(self, victim: str) -> None:
        if victim == "lake":
            self.server.kill()
        elif "JVM" in victim:
            self.server.kill_jvm()
        else:
            self.server.kill_python()

    def _kill_sql(self, *, jvm_alone: bool) -> None:
        process = self.sql._process
        assert process
        if jvm_alone:
            for one in psutil.Process(process.pid).children(recursive=True):
                if one.name() == "java":
                    one.kill()
            process.wait(60)
        else:
            end([process])

    def freeze(self, victim: str, seconds: float) -> None:
        with self.disturbing(_reached(victim)):
            stopped = [one for one in self.processes().get(victim, []) if one.is_running()]
            for one in stopped:
                one.suspend()
            try:
                time.sleep(seconds)
            finally:
                for one in stopped:
                    with suppress(psutil.NoSuchProcess):
                        one.resume()

    def fill_disk(self, seconds: float) -> None:
        with self.disturbing(LAKE):
            self.disk.fill()
            try:
                time.sleep(seconds)
            finally:
                self.disk.give_room()

    def processes(self) -> dict[str, list[psutil.Process]]:
        """By part, its process and all below it."""
        found = {}
        parts = {
            "lake": self.server.process, "SQL server": self.sql._process, "broker": self.server.broker.process
        }  # fmt: skip
        for part, process in parts.items():
            with suppress(psutil.NoSuchProcess, AttributeError):
                top = psutil.Process(process.pid)  # type: ignore[union-attr]
                found[part] = [top, *top.children(recursive=True)]
        return found

    def ends(self, committed: bool) -> dict[str, int]:
        """By partition, the offset after the last record, or after the last one that is decided."""
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        admin = AdminClient({**self.server.broker.login.client(), "log_level": 0})
        asked = {TopicPartition(TOPIC, number): OffsetSpec.latest() for number in range(4)}
        found = admin.list_offsets(asked, isolation_level=level, request_timeout=20)
        return {str(place.partition): int(one.result().offset) for place, one in found.items()}

    def caught_up(self) -> bool:
        """Every transaction has ended, the log has every record, every version the log."""
        try:
            ends = self.ends(committed=True)
            log = delta.newest_metadata(self.server.lake / "logs/orders", lambda told: "batch" in told)
            status = self.server.client.status()
        except Exception as error:  # who is not up yet has not caught up
            self.journal.counts[f"waited for {type(error).__name__}"] += 1
            return False
        batch = {topic["name"]: topic["batch"] for topic in status["topics"]}
        return bool(
            log and log["ends"]["0"] == ends == self.ends(committed=False)
            and all(
                version["position"] == {name: batch[name] for name in version["position"]}
                for version in status["versions"]
            )
        )  # fmt: skip

    def until(self, what: str, true: Callable[[], bool], seconds: float = WAIT_S) -> None:
        try:
            wait_for(what, lambda: True if true() else None, seconds, every_s=0.5)
        except TimedOutError as error:
            status = self.server.client.status()
            told = [one["error"] for one in (*status["topics"], *status["versions"]) if one["error"]]
            raise AssertionError(f"{error}: {told}, {self.ends(True)} of {self.ends(False)}") from error


def _reached(victim: str) -> str:
    """Which of the parts that are looked at may end for it: the SQL server asks no broker."""
    return SQL if victim.startswith("SQL") else LAKE


@contextmanager
def world(folder: Path, project: Path, seed: int, journal: Journal) -> Iterator[World]:
    """Everything up but the lake server; it all ends with the block, and so does the small disk."""
    with ExitStack() as stack:
        server = stack.enter_context(lake_process(folder, seed))
        stack.callback(lambda: end([server.process]))
        server.command = ["-m", "twinlake.server", "--project", str(project)]
        disk = stack.enter_context(small_disk(server.home / "lake", MEGABYTES))
        sql = SqlServer(home=server.home, scratch=folder / "scratch")
        stack.callback(lambda: end([sql._process]))
        yield World(server=server, sql=sql, disk=disk, journal=journal, project=project)


def end(processes: list[subprocess.Popen[bytes] | None]) -> None:
    for process in processes:
        if process is not None:
            killed(process)
