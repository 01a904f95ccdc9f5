"""Copying: a file from one place to another, whole or not at all, with the SHA-256 of what was copied."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import IO, TypeVar

from twinlake.base.files import READABLE
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.lake.storage import store

T = TypeVar("T")
R = TypeVar("R")

PIECE_BYTES = 4 << 20
AT_ONCE = 16
"""HDFS takes half a second to close a file, however small it is: so many are written at once."""


def each(work: Callable[[T], R], files: Iterable[T], size: Callable[[T], int], into: Location) -> list[R]:
    """What `work` makes of each file that it writes into a place; the first error ends it. Into a store many
    at once, small ones alone: all of a file is in memory."""
    if isinstance(into, Path):
        return [work(one) for one in files]
    small, large = list[T](), list[T]()
    for one in files:
        (small if size(one) <= PIECE_BYTES else large).append(one)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="copying") as pool:
        return [*pool.map(work, small), *map(work, large)]


def copied(source: Location, target: Location, moved: Callable[[int], None]) -> tuple[int, str]:
    """Copies it, and calls `moved` with the bytes of each piece; (bytes, SHA-256). Between folders of this
    machine in pieces, else at once; a reader of the target finds all of it or nothing."""
    store.make_folder(target.parent)
    if isinstance(source, Path) and isinstance(target, Path):
        with store.telling_of_no_room(target.parent):
            return _in_pieces(source, target, moved)
    content = store.read(source)
    store.replace_bytes(target, content)
    moved(len(content))
    return len(content), sha256(content).hexdigest()


def summed(file: Location, moved: Callable[[int], None]) -> tuple[int, str]:
    """(bytes, SHA-256) of a file as it is; FileNotFoundError where there is none."""
    if not isinstance(file, Path):
        content = store.read(file)
        moved(len(content))
        return len(content), sha256(content).hexdigest()
    with file.open("rb") as stream:
        return _read(stream, moved)


def counting(run: Run, total: int, words: str) -> Callable[[int], None]:
    """To be called with the bytes of each piece: reports how many of `total` are done; CancelledError where
    the run is to end. From any thread."""
    done, turn = 0, threading.Lock()

    def moved(size: int) -> None:
        nonlocal done
        run.check_cancelled()
        with turn:
            done += size
            run.progress(done, total, "bytes", words)

    return moved


def _in_pieces(source: Path, target: Path, moved: Callable[[int], None]) -> tuple[int, str]:
    unfinished = target.with_name(f".{target.name}.tmp")
    try:
        with source.open("rb") as content, unfinished.open("wb") as out:
            found = _read(content, moved, out)
            out.flush()
            os.fchmod(out.fileno(), READABLE)
            os.fsync(out.fileno())
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return found


def _read(stream: IO[bytes], moved: Callable[[int], None], out: IO[bytes] | None = None) -> tuple[int, str]:
    found, size = sha256(), 0
    while piece := stream.read(PIECE_BYTES):
        if out is not None:
            out.write(piece)
        found.update(piece)
        size += len(piece)
        moved(len(piece))
    return size, found.hexdigest()
