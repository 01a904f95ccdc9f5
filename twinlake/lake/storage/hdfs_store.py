"""A lake in HDFS, without a JVM: a rename publishes a file, which the name node refuses where there is one.

Delta's own store in Spark does the same, so both may commit to one table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import hdfs_native
from hdfs_native import WriteOptions

from twinlake.base.errors import FullDiskError
from twinlake.base.files import PRIVATE, full_disk
from twinlake.base.location import Remote, Stat

PIECE_BYTES = 8 << 20
PATIENCE = {"dfs.client.failover.max.attempts": "5", "dfs.client.failover.sleep.max.millis": "2000"}
"""Some 10 s, then an error says that nobody answers: whoever works on the lake tries again. By default
it would take minutes."""
_GONE, _TAKEN = "FileNotFoundException", "FileAlreadyExistsException"
_FULL = ("QuotaExceededException", "could only be written to 0 of")
"""What a name node says where a quota is used up, and where no data node has room."""


class HdfsStore:
    """Implements `store.Store`. `address` is the scheme with the name node, or the name of several of them
    that $HADOOP_CONF_DIR tells."""

    def __init__(self, address: str) -> None:
        self._client = hdfs_native.Client(address, PATIENCE)

    def names(self, folder: Remote) -> list[str]:
        try:
            with _translated():
                return [found.path.rpartition("/")[2] for found in self._client.list_status(folder.path)]
        except FileNotFoundError:
            return []

    def tree(self, folder: Remote) -> dict[str, Stat]:
        try:
            with _translated():
                found = [*self._client.list_status(folder.path, recursive=True)]
        except FileNotFoundError:
            return {}
        return {one.path.removeprefix(f"{folder.path}/"): _stat(one) for one in found if not one.isdir}

    def exists(self, place: Remote) -> bool:
        try:
            self._found(place)
        except FileNotFoundError:
            return False
        return True

    def stat(self, file: Remote) -> Stat:
        return _stat(self._found(file))

    def read(self, file: Remote) -> bytes:
        with _translated():
            return bytes(self._client.read(file.path).read())

    def put_if_absent(self, file: Remote, content: bytes) -> bool:
        unpublished = self._written(file, content)
        try:
            with _translated():
                self._client.rename(unpublished.path, file.path)
        except FileExistsError:
            self.delete(unpublished)
            return False
        return True

    def replace(self, file: Remote, content: bytes) -> None:
        unpublished = self._written(file, content)
        with _translated():
            self._client.rename(unpublished.path, file.path, overwrite=True)

    def copy(self, file: Remote, to: Remote) -> None:
        """HDFS has no links: the bytes come here and go back."""
        with _translated():
            source = self._client.read(file.path)
            with self._client.create(to.path) as copied:
                while piece := source.read(PIECE_BYTES):
                    copied.write(piece)

    def rename(self, file: Remote, name: str) -> None:
        with _translated():
            self._client.rename(file.path, file.with_name(name).path)

    def delete(self, file: Remote) -> None:
        with suppress(FileNotFoundError), _translated():
            self._client.delete(file.path)

    def delete_tree(self, folder: Remote) -> None:
        with suppress(FileNotFoundError), _translated():
            self._client.delete(folder.path, recursive=True)

    def make_folder(self, folder: Remote) -> None:
        with _translated():
            self._client.mkdirs(folder.path, create_parent=True)

    def make_private(self, folder: Remote) -> None:
        with _translated():
            self._client.set_permission(folder.path, PRIVATE)

    def reader(self, file: Remote) -> hdfs_native.FileReader:
        with _translated():
            return self._client.read(file.path)

    @contextmanager
    def writer(self, file: Remote) -> Iterator[Any]:
        with _translated(), self._client.create(file.path) as out:
            yield out

    def no_room(self, place: Remote, error: BaseException, *disks: Path) -> FullDiskError | None:
        at: BaseException | None = error
        while at is not None:
            if any(words in str(at) for words in _FULL):
                return FullDiskError(
                    f"the store of {place} has no room", str(at)[:300],
                    "make room there, or raise its quota; what runs by itself goes on then, "
                    "what was asked for has to be asked for again",
                )  # fmt: skip
            at = at.__cause__ or at.__context__
        if not disks or (isinstance(error, FullDiskError) and full_disk(*disks) is None):
            return None  # it names another disk
        return full_disk(*disks, error=error)

    def _found(self, place: Remote) -> hdfs_native.FileStatus:
        with _translated():
            return self._client.get_file_info(place.path)

    def _written(self, file: Remote, content: bytes) -> Remote:
        """The content as a file beside it that nobody reads."""
        unpublished = file.with_name(f".{file.name}.{uuid4()}.tmp")
        with _translated(), self._client.create(unpublished.path, WriteOptions(create_parent=True)) as out:
            out.write(content)
        return unpublished


def _stat(found: hdfs_native.FileStatus) -> Stat:
    return Stat(found.length, found.modification_time * 1_000_000)


@contextmanager
def _translated() -> Iterator[None]:
    """Raises OSError instead of what the library raises, with what the name node said."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        text = str(error)
        if _GONE in text:
            raise FileNotFoundError(text) from error
        if _TAKEN in text:
            raise FileExistsError(text) from error
        raise OSError(text) from error
