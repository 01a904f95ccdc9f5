"""Disk: to which part of a lake each of its files belongs, and which files of a table none of its rows is in.

The lake server need not run: it is read from the files themselves, while somebody may write to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from twinlake.base.disk import Entry, Walk
from twinlake.base.location import Location
from twinlake.lake.delta import delta
from twinlake.lake.storage import store

LOG, TABLE, STAGED, PUBLISHED, LAKE = "log", "table", "staged", "published", "lake"
REST = "the rest"
"""Folders that hold folders alone, and what nobody here has made."""


class Owner(NamedTuple):
    """What a file belongs to. `name` is a topic, a table, a job, or one of the lake's own folders."""

    kind: str
    name: str
    version: str = ""


def entries(lake: Location, walk: Walk) -> Iterator[Entry]:
    """Every file of the lake; in a store of other machines without folders, each as long as it says."""
    if isinstance(lake, Path):
        yield from walk.entries(lake)
    else:
        for path, about in store.tree(lake).items():
            yield Entry(path, about.bytes, about.modified_s)


def owner(path: str, is_folder: bool) -> Owner:
    """Of a file or folder by its path from the lake."""
    first, *below = path.split("/")
    if first == "logs" and below:
        return Owner(LOG, below[0])
    if first == "tables" and len(below) >= 2:
        return Owner(TABLE, below[0], below[1].removesuffix(".json") if len(below) == 2 else below[1])
    if first == "staging" and below:
        return Owner(STAGED, below[0])
    if first == PUBLISHED and below:
        return Owner(PUBLISHED, below[0])
    if first in ("", "logs", "tables", "staging", PUBLISHED) or (not below and not is_folder):
        return Owner(LAKE, REST)
    return Owner(LAKE, first)


def needed(path: Location) -> tuple[frozenset[str], Mapping[str, float]]:
    """The data files that hold the rows of a Delta table now, and those that were replaced, by when (seconds
    since 1970), as far as Delta still knows. FileNotFoundError where there is no table."""
    from twinlake.lake.delta.table_state import TableState  # not before a lake is there: it costs a start

    state = TableState(path, appends=False)
    return frozenset(map(unquote, state.files)), _replaced(path, state.version)


def spare_files(files: Iterable[Entry], live: frozenset[str], gone: Mapping[str, float]) -> Iterator[Entry]:
    """The data files of a table that hold none of its rows now, each as old as what made it spare; `files`
    have their paths from the table."""
    for one in files:
        if not one.is_folder and one.path not in live and not _is_hidden(one.path):
            yield one._replace(modified_s=max(one.modified_s, gone.get(one.path, 0.0)))


def _is_hidden(path: str) -> bool:
    """Whether Delta's clean-up passes over it; a partition's folder may begin with _, too."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.split("/"))


def _replaced(path: Location, version: int) -> dict[str, float]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinlake.lake.delta.table_state import whole_checkpoints

    found: dict[str, float] = {}
    folder, first = path / delta.LOG_FOLDER, 0
    for checkpoint in whole_checkpoints(folder):
        if checkpoint.version <= version:
            first = checkpoint.version + 1
            file = pq.ParquetFile(pa.BufferReader(checkpoint.content))
            if "remove" in file.schema_arrow.names:
                for action in file.read(["remove.path", "remove.deletionTimestamp"]).to_pylist():
                    _note(found, action["remove"])
            break
    for number in range(first, version + 1):
        for action in delta.actions(folder, number) or ():
            _note(found, action.get("remove"))
    return found


def _note(found: dict[str, float], removed: Mapping[str, Any] | None) -> None:
    if removed and removed.get("path"):
        found[unquote(removed["path"])] = (removed.get("deletionTimestamp") or 0) / 1000
