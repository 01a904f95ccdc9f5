"""Where a log starts: retention has deleted the valid records of its first batches, and what versions had
counted of them is kept beside the log, as their states of then.

`<log>/_kept/<number>/start.json` says it, with a folder of data files for each version; Delta leaves folders
alone whose names begin so. Which number counts is a Delta transaction of the log, made by the commit that
deletes: records and kept states change places in one moment.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from twinlake.base.location import Location
from twinlake.lake.log.clock_fold import Fold
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged

if TYPE_CHECKING:
    from twinlake.lake.catalog.version import Version

FOLDER = "_kept"
FILE = "start.json"


@dataclass(frozen=True, kw_only=True)
class KeptStates:
    """The states of one version at the batch where the log starts: data files in the number's folder."""

    table: str
    version: str
    fingerprint: str
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LogStart:
    """`batch` is the last one whose valid records are gone; `until` the latest Kafka time of one of them, in
    microseconds; `rows` how many rows of the log all retention so far has deleted; `clock` how far the log's
    clocks had come after that batch."""

    number: int
    batch: int
    until: int
    rows: int
    made_at: str
    clock: Fold
    kept: tuple[KeptStates, ...] = ()

    def states_of(self, version: Version) -> KeptStates | None:
        """Those of the version, or of another one that means the same; None for one that came later."""
        same = [one for one in self.kept if one.table == version.table]
        mine = (one for one in same if one.version == version.name)
        alike = (one for one in same if one.fingerprint == version.fingerprint)
        return next(mine, None) or next(alike, None)

    def fold(self) -> Fold:
        """The clocks, to go on from."""
        return deepcopy(self.clock)

    def save(self, log: Location) -> None:
        store.replace(folder(log, self.number) / FILE, json.dumps(asdict(self)))


def app_id(table_id: str) -> str:
    """Of the Delta transactions that count a log's starts."""
    return f"{table_id}:start"


def folder(log: Location, number: int) -> Location:
    return log / FOLDER / str(number)


def load(log: Location, number: int) -> LogStart:
    """DamagedError where it is gone or torn: without it nobody may say what the log's records make."""
    file = folder(log, number) / FILE
    try:
        return store.read_as(file, LogStart)
    except FileNotFoundError as error:
        raise damaged(file, "it is gone", "what retention wrote") from error
