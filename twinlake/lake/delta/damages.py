"""Damages: the damaged files of the lake that somebody met, until they are whole again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from twinlake.base.errors import ChangedTableError, DamagedError
from twinlake.base.location import Location, Remote, Stat
from twinlake.lake.delta.read_errors import damage_now, damaged_file
from twinlake.lake.delta.table_state import TableState
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import table_of

journal = structlog.get_logger(__name__)


class _Unknown:
    """How a file was when the store did not say."""


UNKNOWN = _Unknown()
Seen = Stat | None | _Unknown


@dataclass(frozen=True)
class _Known:
    error: DamagedError
    place: Location
    seen: Seen
    """How the file was when it was found damaged."""


class Damages:
    """Safe between threads. A file that is not as it was when it was met is read again at once, each of them
    at every `look`: what is whole, or needed no more, is forgotten; nothing while a store does not answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def note(self, error: DamagedError) -> None:
        name = error.facts["file"]
        place: Location = Remote(name) if "://" in name else Path(name)
        with self._lock:
            self._known[name] = _Known(error.alone(), place, _seen(place))

    def look(self, tables: Iterable[Location]) -> None:
        """Notes of each table the first data file that is not there, or not as long as it was. `tables` are
        those of the lake: of others nobody needs a file."""
        tables = list(tables)
        self._read_again(self._all(), {str(table) for table in tables})
        for table in tables:
            try:
                damage = damaged_file(table, TableState(table, appends=False))
            except DamagedError as error:
                damage = error
            except (ChangedTableError, OSError) as error:  # it says nothing of the table's files
                journal.info("a table's files were not looked at", table=str(table), why=str(error))
                continue
            if damage:
                self.note(damage)

    def all(self) -> list[DamagedError]:
        """In the order of their paths."""
        self._read_again([one for one in self._all() if _has_changed(one)])
        return [one.error for one in self._all()]

    def below(self, folder: Location) -> DamagedError | None:
        """The first of those in a folder, at any depth."""
        return next((one for one in self.all() if one.facts["file"].startswith(f"{folder}/")), None)

    def _all(self) -> list[_Known]:
        with self._lock:
            return [known for _, known in sorted(self._known.items())]

    def _read_again(self, some: Iterable[_Known], tables: Collection[str] | None = None) -> None:
        for known in some:
            seen, damage = _seen(known.place), None  # before it is read: it may be replaced meanwhile
            try:
                if tables is None or not _is_retired(known, tables):
                    damage = damage_now(known.place)
            except (ChangedTableError, OSError) as error:
                journal.info("a damaged file was not read again", file=str(known.place), why=str(error))
                continue
            name = known.error.facts["file"]
            same = damage if damage and damage.facts["file"] == name else known.error
            with self._lock:
                if self._known.get(name) is not known:  # somebody has met it in this moment
                    continue
                if damage:
                    self._known[name] = _Known(same.alone(), known.place, seen)
                else:
                    del self._known[name]


def _is_retired(known: _Known, tables: Collection[str]) -> bool:
    """Whether it is of a version that is none of the living ones."""
    table = table_of(known.place)
    return table is not None and "version" in known.error.facts and str(table) not in tables


def _has_changed(known: _Known) -> bool:
    seen = _seen(known.place)
    return seen is not UNKNOWN and seen != known.seen


def _seen(place: Location) -> Seen:
    try:
        return store.stat(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return UNKNOWN
