"""Damages: the damaged files of the lake that somebody met, until what is there has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import structlog

from jobs.errors import ChangedTableError, DamagedError
from jobs.lake import store
from jobs.lake.read_errors import damaged_file
from jobs.lake.stat import Stat
from jobs.lake.table_state import TableState
from jobs.location import Location, Remote

journal = structlog.get_logger(__name__)


class Damages:
    """Safe between threads. A file that has changed is forgotten until somebody meets it damaged again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[DamagedError, Location, Stat | None]] = {}

    def note(self, error: DamagedError) -> None:
        name = error.facts["file"]
        place: Location = Remote(name) if "://" in name else Path(name)
        with self._lock:
            self._known[name] = (error.alone(), place, _stat(place))

    def look(self, tables: Iterable[Location]) -> None:
        """Notes of each table the first data file that is not there, or not as long as it was."""
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
        """Of files that are as they were when they were noted, in the order of their paths."""
        with self._lock:
            known = sorted(self._known.items())
        changed = [name for name, (_, place, was) in known if _stat(place) != was]
        with self._lock:
            for name in changed:
                self._known.pop(name, None)
        return [error for name, (error, _, _) in known if name not in changed]

    def below(self, folder: Location) -> DamagedError | None:
        """The first of those in a folder, at any depth."""
        return next((one for one in self.all() if one.facts["file"].startswith(f"{folder}/")), None)

    def clear(self, folder: Location) -> None:
        """Everything below was read just now, and is whole."""
        with self._lock:
            self._known = {
                name: one for name, one in self._known.items() if not name.startswith(f"{folder}/")
            }


def _stat(place: Location) -> Stat | None:
    try:
        return store.stat(place)
    except OSError:
        return None
