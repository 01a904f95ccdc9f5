"""Copying: a file from one place to another, whole or not at all, with the SHA-256 of what was copied."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import IO

from twinlake.base.files import READABLE
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.lake.storage import store

PIECE_BYTES = 4 << 20


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
    the run is to end."""
    done = 0

    def moved(size: int) -> None:
        nonlocal done
        run.check_cancelled()
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
