"""Stalled: the living versions that do not keep up with their logs, as the lake server tells readers.

`<lake>/report.json`, replaced as a whole when it changes and every few seconds besides: under `stalled` a
list of objects with table, version, why and position (by topic, the batch up to which its rows are), under
`tables` how each live table stands. A reader that sees no new report does not know it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import structlog

from twinlake.base.location import Location
from twinlake.base.times import Clock, format_moment, from_micros
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Health
from twinlake.lake.storage import store

journal = structlog.get_logger(__name__)

LOOK_S = 1.0
REPORT_S = 3.0
"""A report costs a small file that is synced."""
STOP_S = 10.0
BEHIND_S = 60.0
"""A version whose oldest record waits for so long is named, too: it may catch up, but readers should know."""


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """A version of which readers see an old position."""

    table: str
    version: str
    why: str
    position: dict[str, int]


def stalled(health: Iterable[Health]) -> list[Stalled]:
    """Those that are stalled, or read one that is, and those that are far behind."""
    return [
        Stalled(table=one.table, version=one.version, why=why, position=one.position)
        for one in health
        if (why := _why(one)) is not None
    ]


def _why(one: Health) -> str | None:
    if one.stalled:
        error = one.error or {}
        said = [error.get("what", "it is stalled"), error.get("why", "")]
        return ": ".join(filter(None, said))
    if (one.lag_seconds or 0.0) >= BEHIND_S:
        return f"records have been waiting for more than {BEHIND_S:g} s"
    return None


@dataclass(frozen=True, kw_only=True)
class TableState:
    """How a live table stands: at which position and watermark (`data_time`, RFC 3339) its rows are, and what
    its newest certificate says; None of one that has none yet."""

    table: str
    version: str
    release: int
    position: dict[str, int]
    data_time: str | None
    equal: bool | None = None
    certified_at: str | None = None
    covers: str | None = None


def table_states(
    live: Release | None, health: Iterable[Health], certificates: Certificates
) -> list[TableState]:
    """Of all live tables that are known; answered from memory."""
    known = {(one.table, one.version): one for one in health}
    found = []
    for named in sorted(live.tables.items()) if live else ():
        if live and (one := known.get(named)):
            made = certificates.newest(*named)
            found.append(TableState(
                table=one.table, version=one.version, release=live.number, position=one.position,
                data_time=None if one.watermark is None else format_moment(from_micros(one.watermark)),
                equal=made.equal if made else None, certified_at=made.created_at if made else None,
                covers=made.covers if made else None,
            ))  # fmt: skip
    return found


@dataclass(frozen=True, kw_only=True)
class Report:
    """What the lake server has reported to readers, and when by its own clock. No two are alike."""

    number: int
    at: str
    stalled: tuple[Stalled, ...]
    tables: tuple[TableState, ...] = ()


class Publisher:
    """The lake server's: reports at once what has changed, and every REPORT_S that nothing has.

    In a thread of its own: whatever the others wait for, readers know that there is a lake server.
    """

    def __init__(
        self, lake: Location, health: Callable[[], Iterable[Health]], clock: Clock,
        tables: Callable[[], Iterable[TableState]] = tuple,
    ) -> None:  # fmt: skip
        self._lake, self._health, self._clock, self._tables = lake, health, clock, tables
        self._written: Report | None = None
        self._written_at = 0.0  # on the monotonic clock
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        """Returns after the first report: who sees that the lake server is ready finds it."""
        self._try()
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._ending.wait(LOOK_S):
            self._try()

    def _try(self) -> None:
        try:
            self._publish()
        except Exception as error:
            journal.warning("the report to readers of stalled versions failed", why=str(error))

    def _publish(self) -> None:
        current, before = tuple(stalled(self._health())), self._written
        if before and current == before.stalled and time.monotonic() - self._written_at < REPORT_S:
            return
        number = before.number + 1 if before else 1
        report = Report(
            number=number, at=format_moment(self._clock()), stalled=current, tables=tuple(self._tables())
        )
        store.replace(_file(self._lake), json.dumps(asdict(report), indent=2))
        self._written, self._written_at = report, time.monotonic()


def published(lake: Location) -> Report | None:
    """What the lake server reported last; None where it has never done so."""
    try:
        return store.read_as(_file(lake), Report, {"tables": []})
    except FileNotFoundError:
        return None


def _file(lake: Location) -> Location:
    return lake / "report.json"
