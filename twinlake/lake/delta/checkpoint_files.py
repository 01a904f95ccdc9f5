"""Checkpoint files: which are what was written there, and what becomes of one that is not.

Spark and deltalake believe whatever can be decoded, and the pages of deltalake's files have no checksums: one
changed bit may be another path or another bound, by which a data file is left out. So each of our own has its
length and SHA-256 beside it, in a lake on a disk of this machine; a store of other machines keeps checksums
itself.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import structlog

from twinlake.base.location import Location, Stat
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged

NAME = re.compile(r"(\d{20})\.checkpoint\.parquet")
_HINT = "_last_checkpoint"
journal = structlog.get_logger(__name__)


def file_of(folder: Location, version: int) -> Location:
    """Where the checkpoint of that version is in a `_delta_log` folder."""
    return folder / f"{version:020d}.checkpoint.parquet"


def sum_up(file: Location) -> None:
    """Of one that was written just now."""
    if isinstance(file, Path):
        store.replace(_sum_of(file), _sum(file.read_bytes()))


def problem(file: Location, content: bytes) -> str | None:
    """What is wrong with the bytes of one; None where nothing is, or nobody knows."""
    import pyarrow as pa  # commands ask for versions of tables, and do not wait for it
    import pyarrow.parquet as pq

    try:
        pq.read_metadata(pa.BufferReader(content))
    except (OSError, ValueError, pa.ArrowNotImplementedError) as error:  # names of columns are texts
        return str(error)
    try:
        expected = store.read(_sum_of(file)).decode(errors="replace") if isinstance(file, Path) else ""
    except FileNotFoundError:
        return None
    found = _sum(content)
    # one of another length was written since, by Spark, instead of ours
    if found == expected or found.split()[0] != expected.partition(" ")[0]:
        return None
    return f"it has the length and SHA-256 {found}, and {expected} was written beside it"


def is_whole(folder: Location, version: int) -> bool:
    """Whether there is one that Spark may read; one that is not what was written is put aside, or, where this
    user may not do that, a DamagedError. Each is read here once, and again when it has changed."""
    file = file_of(folder, version)
    try:
        if not isinstance(file, Path):
            return store.exists(file)
        wrong = _problem_now(file, store.stat(file))
    except FileNotFoundError:
        return False
    if wrong is None:
        return True
    put_aside(file, wrong)
    if store.exists(file):
        raise damaged(file, wrong, "the checkpoint as it was written")
    return False


def last_checkpoint(folder: Location) -> int | None:
    """Of which version the last one is, by what it says of itself. deltalake opens no table that tells of one
    which is not there, so that is forgotten."""
    try:
        version = json.loads(store.read(folder / _HINT))["version"]
        if store.exists(file_of(folder, version)):
            return int(version)
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # then nobody goes by it
        return None
    _forget_hint(folder)
    return None


def put_aside(file: Location, why: object) -> None:
    """A torn one, so that nobody else meets it; the commits say the same as long as they are kept."""
    journal.warning("a checkpoint is torn and put aside", file=str(file), why=str(why))
    with suppress(OSError):  # who only reads the lake passes over it
        store.rename(file, f".{file.name}.torn.tmp")
        store.delete(_sum_of(file))
    if not store.exists(file):
        last_checkpoint(file.parent)


def _forget_hint(folder: Location) -> None:
    with suppress(OSError):
        store.delete(folder / _HINT)


@lru_cache(maxsize=10_000)
def _problem_now(file: Path, now: Stat) -> str | None:
    """Once for each as it is now."""
    return problem(file, store.read(file))


def _sum(content: bytes) -> str:
    return f"{len(content)} {sha256(content).hexdigest()}"


def _sum_of(file: Location) -> Location:
    return file.with_name(f".{file.name}.sha256")
