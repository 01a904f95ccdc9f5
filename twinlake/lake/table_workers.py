"""Table workers: what goes along with live tables, each by a thread of its own, over every restart.

A changelog is one, a published table another. Which are on stands in files of the lake; how far each is, it
knows from what it has made.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, Generic, Protocol, TypeVar

import structlog

from twinlake.base.errors import NotFoundError, TwinlakeError, near
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.storage import store
from twinlake.spark.session import cancel

LOOK_S = 0.5
RETRY_FIRST_S, RETRY_LAST_S = 1.0, 60.0
STOP_S = 60.0


class TableWorker(ABC):
    """It polls the table: nobody who advances a version ever waits for it. Whatever fails is shown and tried
    again, ever more rarely, from what is there."""

    def __init__(self, lake: OpenLake, table: str, command: str, **named: str) -> None:
        """`command` is the one that ends it; `named` is said in its log, too."""
        self.table = table
        self.error: TwinlakeError | None = None
        self._lake = lake
        self._command = command
        self._journal = structlog.get_logger(__name__).bind(table=table, **named)
        self._run = Run(id=f"{command}-{table}")
        self._thread = threading.Thread(target=self._go, name=f"{command} {table}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Have it end; what it computes is given up."""
        self._run.cancelled.set()
        self._give_up()

    def stop(self) -> None:
        """The same; returns when nothing is made any more."""
        self.cancel()
        self._thread.join(STOP_S)

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """How far it is; from memory."""

    @abstractmethod
    def _look(self) -> None:
        """Do what there is to do, if it is time for it."""

    @abstractmethod
    def _fail(self, error: Exception) -> None:
        """Show in `error` why the last look failed."""

    @abstractmethod
    def _forget(self) -> None:
        """The next look begins with what is there."""

    def _give_up(self) -> None:
        cancel(self._lake.spark.sparkContext, self._run.tag)

    def _live(self) -> tuple[Release, Version]:
        """The live release, and the table's version in it."""
        live = release_log.live(self._lake.path)
        name = live.tables.get(self.table) if live else None
        if live is None or name is None:
            raise NotFoundError(
                f"table {self.table} is not live", "no release has it now, so nobody can say what it shows",
                f"make it live again, or end this with `twinlake {self._command} {self.table} --stop`",
            )  # fmt: skip
        return live, self._lake.versions.get(self.table, name)

    def _go(self) -> None:
        context = self._lake.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", "batch")
        context.addJobTag(self._run.tag)
        retry_s = RETRY_FIRST_S
        while not self._run.cancelled.is_set():
            try:
                self._look()
                self.error, retry_s, wait_s = None, RETRY_FIRST_S, LOOK_S
            except Exception as error:
                if self._run.cancelled.is_set():
                    break
                self._fail(error)
                self._forget()
                retry_s, wait_s = min(RETRY_LAST_S, 2 * retry_s), retry_s
            self._run.cancelled.wait(wait_s)
        self._forget()


def opened_live(lake: OpenLake, table: str) -> Opened:
    """The version that readers of the table see; NotFoundError where they see none."""
    name = lake.live_version(table)
    if name is None:
        live = release_log.live(lake.path)
        tables = sorted(live.tables) if live else []
        raise NotFoundError(
            f"table {table!r} is not live",
            f"live are: {', '.join(tables) or 'none yet'}{near(table, tables, listed=False)}",
            "name one of them, or make it live",
        )
    return lake.versions.opened(lake.versions.get(table, name))


class OfTable(Protocol):
    """What a file says of a worker that is on: a dataclass."""

    @property
    def table(self) -> str: ...


S = TypeVar("S", bound=OfTable)
W = TypeVar("W", bound=TableWorker)


class TableWorkers(ABC, Generic[S, W]):
    """`<folder>/<table>.json` is there while a worker is on; a table has one at most."""

    def __init__(self, folder: Location, shape: type[S]) -> None:
        self._folder = folder
        self._shape = shape
        self._workers: dict[str, W] = {}
        self._lock = threading.Lock()

    def begin(self, lake: OpenLake) -> None:
        """Go on with those that are on."""
        with self._lock:
            for one in self._on():
                self._begin(lake, one)

    def end(self) -> None:
        """Make nothing more; they stay on for the next start."""
        with self._lock:
            for worker in self._workers.values():
                worker.cancel()
            for worker in self._workers.values():
                worker.stop()

    def status(self) -> list[dict[str, Any]]:
        """Without the lock, which is held while a worker ends."""
        return [worker.status() for _, worker in sorted(self._workers.copy().items())]

    @abstractmethod
    def _made(self, lake: OpenLake, one: S) -> W:
        """The worker, not started."""

    def _worker(self, table: str, without: str, others: str = "tables that have") -> W:
        """The table's; a NotFoundError where it has none, in these words, which names the `others`."""
        worker = self._workers.get(table)
        if worker is None:
            there = ", ".join(sorted(self._workers)) or "none"
            raise NotFoundError(without, f"{others}: {there}", "name one of them")
        return worker

    def _begin(self, lake: OpenLake, one: S) -> None:
        self._workers[one.table] = self._made(lake, one)
        self._workers[one.table].start()

    def _put(self, lake: OpenLake, one: S) -> None:
        """It is on from now on."""
        self._save(one)
        self._begin(lake, one)

    def _save(self, one: S) -> None:
        store.replace(self._folder / f"{one.table}.json", json.dumps(asdict(one), indent=2))  # type: ignore[call-overload]

    def _drop(self, worker: W) -> dict[str, Any]:
        """It is on no more; how it was."""
        worker.stop()
        store.delete(self._folder / f"{worker.table}.json")
        del self._workers[worker.table]
        return {**worker.status(), "state": "stopped"}

    def _on(self) -> list[S]:
        files = (name for name in sorted(store.names(self._folder)) if name.endswith(".json"))
        return [store.read_as(self._folder / name, self._shape) for name in files]
