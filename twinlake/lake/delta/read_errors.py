"""What is raised by whoever meets a damaged file, Spark for instance, as the DamagedError that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from twinlake.base.errors import DamagedError, TwinlakeError
from twinlake.base.location import Location, Remote
from twinlake.lake.delta import data_file, delta
from twinlake.lake.delta.table_state import LiveFile, TableState
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged, table_of

_MARK = "twinlake.reading.Damaged"
_CONDITIONS = ("FAILED_READ_FILE", "PATH_NOT_FOUND")
_RAISED = "org.apache.spark.SparkRuntimeException"
"""What SQL's raise_error throws, with whatever condition a reader wants."""
_DEEPEST = 30
_COMMIT = re.compile(rf"(.+)/{delta.LOG_FOLDER}/(\d{{20}})\.json")


def damage_in(error: BaseException, lake: Location) -> DamagedError | None:
    """The damage of a file of the lake that an error tells of; None where it tells of something else.

    Messages are not looked at: they quote values of records and of statements.
    """
    for one in _chain(error):
        if isinstance(one, DamagedError):
            return one
        for thrown in _thrown(one):
            if damage := _damage_behind(thrown, lake):
                return damage
    return None


def damage_of(file: Location) -> DamagedError | None:
    """The same as `damage_now` of a data file; None as well for one that is none of a table's, or that cannot
    be read just now: whoever read it was too slow, or it is of a job."""
    try:
        return damage_now(file) if table_of(file) else None
    except (TwinlakeError, OSError):  # a store that does not answer says nothing of the file
        return None


def damage_now(file: Location) -> DamagedError | None:
    """The damage of a file of the lake, which is read again; None for one that is whole, or that no table has
    any more. ChangedTableError or OSError where that cannot be said just now."""
    table = table_of(file)
    try:
        if table is None:
            return _damage_of_text(file)
        if file.parent.name == delta.LOG_FOLDER:
            return _damage_of_commit(table, file)
        live = {unquote(path): one for path, one in TableState(table, appends=False).files.items()}
        expected = live.get(str(file).removeprefix(f"{table}/"))
        if expected is None:
            return None
        found = _found(file, expected) or data_file.problem(file)
        return damaged(file, found, _expectation(expected)) if found else None
    except DamagedError as error:
        return error


def _damage_of_text(file: Location) -> DamagedError | None:
    try:
        store.read_json(file)
    except FileNotFoundError:  # what to do about some is to delete them
        pass
    return None


def _damage_of_commit(table: Location, file: Location) -> DamagedError | None:
    if not store.exists(table):  # somebody has moved it away
        return None
    if file.name.removesuffix(".json").isdigit():
        delta.actions(file.parent, int(file.name.removesuffix(".json")))
    TableState(table, appends=False)  # it may be missing
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
                return damaged(table / name, found, _expectation(live))
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _thrown(error: BaseException) -> Iterator[Any]:
    """What Java threw behind an error of Python's, and what caused it."""
    at: Any = error
    while at is not None:
        thrown = getattr(at, "java_exception", None)
        thrown = getattr(at, "_origin", None) if thrown is None else thrown
        if thrown is not None:
            break
        at = getattr(at, "_cause", None)
    else:
        return
    for _ in range(_DEEPEST):
        if thrown is None:
            return
        yield thrown
        thrown = thrown.getCause()


def _damage_behind(thrown: Any, lake: Location) -> DamagedError | None:
    from py4j.protocol import Py4JError

    try:
        name = thrown.getClass().getName()
        if name == _MARK:
            file = thrown.file()
            return damaged(file, thrown.found(), thrown.expected()) if _is_in(lake, file) else None
        if name == _RAISED or not (thrown.getCondition() or "").startswith(_CONDITIONS):
            return None
        named = str(_place(thrown.getMessageParameters()["path"]))
    except (Py4JError, KeyError):  # it has no condition, or names no file
        return None
    if not _is_in(lake, named):
        return None
    if commit := _COMMIT.fullmatch(named):
        return _torn(_place(commit[1]), int(commit[2]))
    return damage_of(_place(named))


def _is_in(lake: Location, file: str) -> bool:
    return file.startswith(f"{lake}/") and ".." not in file.split("/")


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


def _expectation(live: LiveFile) -> str:
    """What Delta's log says of a file."""
    first, last = live.least("batch"), live.greatest("batch")
    batches = "" if first is None else f", of batch {first}" + (f" to {last}" if last != first else "")
    records = live.records
    return f"{live.bytes:,} bytes" + ("" if records is None else f" with {records:,} rows{batches}")
