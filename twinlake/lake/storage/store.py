"""The lake's edge to storage: all that this project asks of the place where the lake is.

Above it nobody knows whether that is a folder of this machine or a store that other machines reach. What it
rests on is `put_if_absent`: a name is taken once, by one writer of however many.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from twinlake.base.errors import FullDiskError, faults_text
from twinlake.base.location import Location, Remote, Stat
from twinlake.lake.storage.damage import damaged
from twinlake.lake.storage.local_store import LocalStore

T = TypeVar("T")
P = TypeVar("P", bound=Location, contravariant=True)


class Store(Protocol[P]):
    """Raises OSError: FileNotFoundError for a file that is not there where nothing else is said."""

    def names(self, folder: P) -> list[str]:
        """Of what is in the folder, in no order; none where there is no folder."""

    def tree(self, folder: P) -> dict[str, Stat]:
        """Every file below the folder by its path from there; none where there is no folder."""

    def exists(self, place: P) -> bool:
        """Whether a file or a folder is there."""

    def stat(self, file: P) -> Stat: ...

    def read(self, file: P) -> bytes: ...

    def put_if_absent(self, file: P, content: bytes) -> bool:
        """Publishes a file whole, unless there is one of its name: whether it did. Safe between machines."""

    def replace(self, file: P, content: bytes) -> None:
        """Readers find the old content or the new one; folders on the way are made."""

    def copy(self, file: P, to: P) -> None:
        """The same content under another name in a folder that is there; as new as this moment."""

    def rename(self, file: P, name: str) -> None:
        """Another name in the same folder."""

    def delete(self, file: P) -> None:
        """Nothing where it is not there."""

    def delete_tree(self, folder: P) -> None:
        """Nothing where it is not there."""

    def make_folder(self, folder: P) -> None:
        """With those above it; nothing where it is there."""

    def make_private(self, folder: P) -> None:
        """From now on only its owner may enter it."""

    def reader(self, file: P) -> Any:
        """What pyarrow reads a Parquet file from."""

    def writer(self, file: P) -> AbstractContextManager[Any]:
        """What pyarrow writes a Parquet file to, in a folder that is there. Not to be read before it ends."""

    def no_room(self, place: P, error: BaseException, *disks: Path) -> FullDiskError | None:
        """What to raise instead of an error that was raised because the disk is full, there or on these disks
        of this machine; None of another one."""


LOCAL = LocalStore()


def of(place: Location) -> Store[Any]:
    """The store that a place is in."""
    return LOCAL if isinstance(place, Path) else _connected(place.store)


@cache
def _connected(address: str) -> Store[Remote]:
    from twinlake.lake.storage.hdfs_store import (
        HdfsStore,  # not before there is one: its library costs a start
    )

    return HdfsStore(address)


def names(folder: Location) -> list[str]:
    return of(folder).names(folder)


def tree(folder: Location) -> dict[str, Stat]:
    return of(folder).tree(folder)


def exists(place: Location) -> bool:
    return of(place).exists(place)


def all_exist(places: Iterable[Location]) -> bool:
    return all(map(exists, places))


def stat(file: Location) -> Stat:
    return of(file).stat(file)


def read(file: Location) -> bytes:
    return of(file).read(file)


def read_text(file: Location) -> str:
    return of(file).read(file).decode()


def read_json(file: Location) -> Any:
    """What a JSON file says; DamagedError where it is none any more."""
    try:
        return json.loads(read_text(file))
    except ValueError as error:
        raise damaged(file, f"it is not valid JSON: {error}", "what the lake server wrote") from error


def read_as(file: Location, shape: type[T], older: Mapping[str, Any] = {}) -> T:
    """What a JSON file says, as a dataclass of this shape, types and all; other names are left out.

    `older` are values that files of before had not. DamagedError where it is not of that shape.
    """
    from pydantic import ValidationError  # not before a file is read: it costs a start

    found = read_json(file)
    try:
        text = json.dumps({**older, **found} if isinstance(found, dict) else found)
        made: T = _adapter(cast("Any", shape)).validate_json(text, strict=True)
    except ValidationError as error:
        raise damaged(file, faults_text(error.errors(), "it")[:500], "what the lake server wrote") from error
    return made


@contextmanager
def reading(file: Location) -> Iterator[None]:
    """Raises DamagedError instead of what the reading of a file's content raises that has another shape."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = f"it has another shape ({type(error).__name__}: {error})"
        raise damaged(file, why, "what the lake server wrote") from error


@cache
def _adapter(shape: type) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(shape)


def put_if_absent(file: Location, content: str) -> bool:
    return of(file).put_if_absent(file, content.encode())


def replace(file: Location, content: str) -> None:
    replace_bytes(file, content.encode())


def replace_other(file: Location, content: str) -> None:
    """Replaces the file where it says something else: who looks when it was replaced sees no change."""
    if not exists(file) or read(file) != content.encode():
        replace(file, content)


def replace_bytes(file: Location, content: bytes) -> None:
    with telling_of_no_room(file.parent):
        of(file).replace(file, content)


def copy(file: Location, to: Location) -> None:
    """Within one store."""
    of(file).copy(file, to)


def rename(file: Location, name: str) -> None:
    of(file).rename(file, name)


def delete(file: Location) -> None:
    of(file).delete(file)


def delete_tree(folder: Location) -> None:
    of(folder).delete_tree(folder)


def make_folder(folder: Location) -> None:
    of(folder).make_folder(folder)


def make_private(folder: Location) -> None:
    of(folder).make_private(folder)


def reader(file: Location) -> Any:
    return of(file).reader(file)


def writer(file: Location) -> AbstractContextManager[Any]:
    return of(file).writer(file)


def no_room(place: Location, error: BaseException, *disks: Path) -> FullDiskError | None:
    return of(place).no_room(place, error, *disks)


@contextmanager
def telling_of_no_room(place: Location, *disks: Path) -> Iterator[None]:
    """Raises FullDiskError instead of what was raised because the disk is full, there or on these disks."""
    try:
        yield
    except Exception as error:
        if full := no_room(place, error, *disks):
            raise full from error
        raise
