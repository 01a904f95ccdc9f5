"""What is raised by whoever meets a damaged file, Spark for instance, as the DamagedError that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jobs.errors import DamagedError, TwinlakeError
from jobs.lake import delta, store
from jobs.lake.damage import damaged, table_of
from jobs.lake.table_state import LiveFile, TableState
from jobs.location import Location, Remote

_DATA_FILE = re.compile(
    r"(?:FAILED_READ_FILE[\s\S]{0,200}?reading file|PATH_NOT_FOUND\] Path does not exist:) (\S+?\.parquet)"
)
_COMMIT = re.compile(r"FAILED_READ_FILE[\s\S]{0,200}?reading file (\S+?)/_delta_log/(\d{20})\.json")
_MARKED = re.compile(r"\[DAMAGED_FILE\] (\S+): ([^\n]*)")
"""Java's class of that name."""
_CAUSE = re.compile(r"Caused by: (?:[\w.$]+: )?([^\n]+)")
_LONGEST = 300


def damage_in(error: BaseException) -> DamagedError | None:
    """The damage of the lake that an error tells of; None where it tells of something else."""
    for one in _chain(error):
        if isinstance(one, DamagedError):
            return one
        if isinstance(one, TwinlakeError):
            continue
        text = str(one)
        if marked := _MARKED.search(text):
            return damaged(marked[1], marked[2])
        if named := _COMMIT.search(text):
            return _torn(_place(named[1]), int(named[2]))
        if named := _DATA_FILE.search(text):
            causes = [cause for cause in _CAUSE.findall(text) if "SparkException" not in cause]
            return damage_of(_place(named[1]), causes[-1][:_LONGEST] if causes else "it cannot be read")
    return None


def marked(error: DamagedError) -> str:
    """The text by which `damage_in` knows the error after it went through Java."""
    return f"[DAMAGED_FILE] {error.facts['file']}: {error.facts['found']}"


def damage_of(file: Location, found: str) -> DamagedError | None:
    """The damage of a data file that could not be read; None for one that no table has any more, or that is
    none of a table: whoever read it was too slow, or it is of a job."""
    table = table_of(file)
    if table is None:
        return None
    try:
        live = {unquote(path): one for path, one in TableState(table, appends=False).files.items()}
        expected = live.get(str(file).removeprefix(f"{table}/"))
        return damaged(file, _found(file, expected) or found, _told(expected)) if expected else None
    except DamagedError as error:
        return error
    except (TwinlakeError, OSError):  # a store that does not answer says nothing of the file
        return None


def _torn(table: Location, version: int) -> DamagedError | None:
    """The damage of a commit that Spark could not read; None for one that is whole by now."""
    try:
        delta.refuse_torn(table, version)
    except DamagedError as error:
        return error
    return None


def damaged_file(table: Location, state: TableState) -> DamagedError | None:
    """The first of the table's data files that is not there, or not as long as it was; their content is not
    looked at."""
    there = store.tree(table)
    for path, live in state.files.items():
        name = unquote(path)
        if name not in there or there[name].bytes != live.bytes:
            if found := _found(table / name, live):
                return damaged(table / name, found, _told(live))
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _place(named: str) -> Location:
    """As Spark names files: by URIs, its special characters encoded."""
    scheme, authority, path, *_ = urlsplit(named)
    return Path(unquote(path)) if scheme in ("", "file") else Remote(f"{scheme}://{authority}{unquote(path)}")


def _found(file: Location, live: LiveFile) -> str | None:
    try:
        has = store.stat(file).bytes
    except FileNotFoundError:
        return "it is not there"
    return None if has == live.bytes else f"it has {has:,} bytes"


def _told(live: LiveFile) -> str:
    """What Delta's log says of a file."""
    first, last = live.least("batch"), live.greatest("batch")
    batches = "" if first is None else f", of batch {first}" + (f" to {last}" if last != first else "")
    records = live.records
    return f"{live.bytes:,} bytes" + ("" if records is None else f" with {records:,} rows{batches}")
