"""The index of ids in files of this machine: a start reads them, and not all that the log has of the window.

`<n>.whole` is an index as of a batch, and `<n>.more` has the ids of every batch after that one. They may be
lost like any cache: each entry names the state of the log that it is of, and has a checksum. Where one is
torn, or of a log that has become another one (restored, or read by another schema), the log itself is asked.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import structlog

from twinlake.base.files import PRIVATE, SECRET
from twinlake.ingest.duplicates import Duplicates, Seen

journal = structlog.get_logger(__name__)

DIGEST = 16
"""Bytes of what names a way to compute ids, or a state of the log."""
LEAST = 100_000
"""A whole is written again once half as many ids as it has came after it, and no fewer than these."""
MOST_ENTRIES = 20_000
"""Or once so many batches came: an entry costs a start as much as thousands of ids."""
MOST_BEHIND = 1_000
"""What is more batches behind the log is of no use: all of them would be read, and the log's commits, too."""
ROOM = 4
"""A whole is begun where so many of them have room."""
REST_S = 60.0
"""So long nothing is written after it could not be."""
CLOSE_S = 30.0
"""Whoever closes waits so long for a whole that is being written; what it writes later harms nobody."""
_MAGIC = b"twinids1"
_HEAD = struct.Struct(f"<8s{DIGEST}s{DIGEST}s{DIGEST}s4q")
_CHECK = struct.Struct("<I")
_COLUMNS = ("high", "low", "times")
_ID_BYTES = 8 * len(_COLUMNS)
_WHOLE, _MORE, _MAKING = ".whole", ".more", ".making"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Ids as a file has them. `way` names how they are computed, `state` the log's end at `batch`.

    In `more` they came after the state `after`: a log that was restored has other batches of these numbers. A
    whole has an entry for each chunk of the index, sorted as it is there; `left` come after this one (-1 in
    `more`), and `since` says from when on everybody is in them.
    """

    way: bytes
    state: bytes
    after: bytes = bytes(DIGEST)
    batch: int
    since: int = 0
    left: int = -1
    ids: Seen

    @property
    def of(self) -> tuple[bytes, bytes, int, int]:
        """What all entries of a whole have in common."""
        return self.way, self.state, self.batch, self.since


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Everybody who was seen from `since` on, up to a batch: chunks as an index has them, and who came after
    these, in no order."""

    batch: int
    since: int
    chunks: list[Seen]
    more: list[Seen]


class KeptIds:
    """Of one topic's log, in a folder of its own. One thread asks and adds; another one writes a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None  # that of `more`
        self._way = b""
        self._state, self._since = b"", 0  # of the last entry; since when somebody who loads knows all
        self._in_more = self._in_whole = self._entries = 0
        self._writing: threading.Thread | None = None
        self._has_failed = False  # the whole that another thread was to write
        self._rest_until = 0.0  # on the monotonic clock

    def load(self, way: bytes, end: int, state: Callable[[int], bytes | None]) -> Kept | None:
        """What is kept of the log up to batch `end` at most; None where that is nothing, or of another log.
        `state` names the log's end at a batch, as far as the log still knows it."""
        self._begin_anew()
        try:
            for number in sorted(self._numbers(_WHOLE), reverse=True):
                if found := self._load(number, way, end, state):
                    return found
        except OSError as error:
            self._failed(error)
        return None

    def _load(self, number: int, way: bytes, end: int, state: Callable[[int], bytes | None]) -> Kept | None:
        whole = list(_entries(self._path(number, _WHOLE)))
        is_whole = [one.left for one in whole] == [*reversed(range(len(whole)))]
        if not is_whole or len({one.of for one in whole}) != 1:
            return None
        last, more = whole[-1], list[Entry]()
        for later in sorted(one for one in self._numbers(_MORE) if one >= number):
            for one in _entries(self._path(later, _MORE)):
                if one.after == last.state and one.batch <= end:
                    more.append(last := one)
        is_near = end - MOST_BEHIND <= last.batch <= end
        if last.way != way or not is_near or state(last.batch) != last.state:
            return None
        self._way, self._state, self._since = way, last.state, whole[0].since
        self._in_whole, self._in_more = (sum(len(one.ids) for one in some) for some in (whole, more))
        self._entries = len(more)
        return Kept(
            batch=last.batch, since=whole[0].since, chunks=[one.ids for one in whole],
            more=[one.ids for one in more],
        )  # fmt: skip

    def add(
        self, ids: Seen, index: Duplicates, way: bytes, *, after: bytes, batch: int, state: bytes
    ) -> None:
        """Those whom the log has got between two states; the index knows them by now. Where they cannot be
        written, a warning says so, and the next start reads the log."""
        if time.monotonic() < self._rest_until:
            return
        if self._has_failed:
            self._begin_anew()
        try:
            if way == self._way and after == self._state and index.since >= self._since:
                self._file = self._file or _new(self._path(self._next_number(), _MORE))
                _write(self._file, Entry(way=way, state=state, after=after, batch=batch, ids=ids))
                self._state, self._in_more, self._entries = state, self._in_more + len(ids), self._entries + 1
                is_long = self._in_more > max(LEAST, self._in_whole // 2) or self._entries > MOST_ENTRIES
            else:
                self._begin_anew()
                is_long = True
            if is_long and not self._is_writing:
                self._begin(index, way, batch, state)
        except OSError as error:
            self._failed(error)

    def close(self) -> None:
        """No file is open until something is added, and nothing is being written, or for long already."""
        if self._writing:
            self._writing.join(CLOSE_S)
        if self._file:
            self._file.close()
        self._file = None

    def _begin_anew(self) -> None:
        """What is added next begins with a whole."""
        if self._file:
            self._file.close()
        self._file, self._state, self._has_failed = None, b"", False

    def _begin(self, index: Duplicates, way: bytes, batch: int, state: bytes) -> None:
        """With what comes after this batch, and a whole as of it: until that is there, the one before it and
        all that came after that one say the same."""
        self.close()
        self._folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        if shutil.disk_usage(self._folder).free < ROOM * _ID_BYTES * len(index):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # before it takes the log's room
        number = self._next_number()
        self._file = _new(self._path(number, _MORE))
        self._way, self._state, self._since = way, state, index.since
        self._in_whole, self._in_more, self._entries = len(index), 0, 0
        chunks = index.chunks or [Seen.nobody()]
        entries = [
            Entry(
                way=way, state=state, batch=batch, since=index.since, left=len(chunks) - 1 - place, ids=chunk
            )
            for place, chunk in enumerate(chunks)
        ]
        self._writing = threading.Thread(
            target=self._write_whole, args=(number, entries), name=f"ids {self._folder.name}", daemon=True
        )
        self._writing.start()

    @property
    def _is_writing(self) -> bool:
        return self._writing is not None and self._writing.is_alive()

    def _write_whole(self, number: int, entries: Iterable[Entry]) -> None:
        making = self._path(number, _MAKING)
        try:
            with _new(making) as file:
                for entry in entries:
                    _write(file, entry)
            making.replace(self._path(number, _WHOLE))
            for suffix in (_WHOLE, _MORE, _MAKING):
                for before in self._numbers(suffix):
                    if before < number:
                        self._path(before, suffix).unlink(missing_ok=True)
        except OSError as error:
            self._failed(error, making)

    def _failed(self, error: OSError, *files: Path) -> None:
        self._rest_until = time.monotonic() + REST_S
        journal.warning("the index of ids is not kept, so a start takes longer", why=str(error))
        with suppress(OSError):
            for file in files:
                file.unlink(missing_ok=True)
            if threading.current_thread() is not self._writing:
                self._begin_anew()
                return
        self._has_failed = True

    def _next_number(self) -> int:
        return max(self._numbers(_WHOLE, _MORE, _MAKING), default=0) + 1

    def _numbers(self, *suffixes: str) -> list[int]:
        with suppress(FileNotFoundError):
            files = [one for one in self._folder.iterdir() if one.suffix in suffixes]
            return [int(one.stem) for one in files if one.stem.isascii() and one.stem.isdigit()]
        return []

    def _path(self, number: int, suffix: str) -> Path:
        return self._folder / f"{number}{suffix}"


def _new(path: Path) -> BinaryIO:
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET), "wb", buffering=0)


def _write(file: BinaryIO, entry: Entry) -> None:
    numbers = (entry.batch, entry.since, entry.left, len(entry.ids))
    parts = [memoryview(_HEAD.pack(_MAGIC, entry.way, entry.state, entry.after, *numbers))]
    parts += [_bytes(getattr(entry.ids, name)) for name in _COLUMNS]
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    for left in (*parts, memoryview(_CHECK.pack(check))):
        while left:
            left = left[file.write(left) :]


def _entries(path: Path) -> Iterator[Entry]:
    """Those at the beginning that are sound."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            magic, way, state, after, batch, since, left, count = _HEAD.unpack(head)
            if magic != _MAGIC or not 0 <= _ID_BYTES * count <= size:
                return
            ids = np.fromfile(file, "<i8", len(_COLUMNS) * count)
            if file.read(_CHECK.size) != _CHECK.pack(zlib.crc32(_bytes(ids), zlib.crc32(head))):
                return
            columns = dict(zip(_COLUMNS, ids.reshape(len(_COLUMNS), count), strict=True))
            yield Entry(
                way=way, state=state, after=after, batch=batch, since=since, left=left, ids=Seen(**columns)
            )


def _bytes(numbers: np.ndarray) -> memoryview:
    return np.ascontiguousarray(numbers, "<i8").data.cast("B") if len(numbers) else memoryview(b"")
