"""Replaces a file as a whole: a reader, a kill or a power cut finds the old content or the new one.

Knows besides when a disk is full, whoever met it: Python, Java and Rust use the system's own words.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from twinlake.base.errors import FullDiskError, TwinlakeError, UsageError

READABLE = 0o644
"""For everybody: the SQL server reads the lake as another user."""
SECRET = 0o600
"""For the owner only."""
PRIVATE = 0o700
"""A folder that only its owner may enter."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of an OSError that say it: a disk, or what a user may have of it, is full."""
_LARGEST_SECRET = 64 << 10
_FULL = tuple(map(os.strerror, NO_ROOM))
_NO_ROOM_BYTES = 1 << 20
"""With less than this a program that ended without a reason most probably had no room."""


def replace_file(path: Path, content: str | bytes, mode: int = READABLE) -> None:
    """Writes `content` beside `path` (in a folder made where it is missing), syncs it, renames, syncs the
    folder. Raises OSError or, of a full disk, FullDiskError, with the old content left as it was."""
    with raising_disk_full(path.parent):
        _replace(path, content, mode)


@contextmanager
def alone(lock: Path, taken: TwinlakeError | None = None) -> Iterator[None]:
    """While no other process or thread is in here by this file, in a folder made where it is missing; the
    kernel lets go with the process. Another one is waited for, or `taken` is raised, if that is given."""
    lock.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with open(lock, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if taken else 0))
        except OSError as error:
            raise taken or error from error
        yield


def write_new(files: Mapping[Path, str]) -> None:
    """All of the files, each whole, in folders made where they are missing, or none and no folder.

    UsageError where one is there already or cannot be written, FullDiskError of a full disk.
    """
    refuse_existing(*files)
    written, folders = list[Path](), list[Path]()
    try:
        for file, content in files.items():
            folders += [folder for folder in file.parents if not folder.exists()]
            try:
                replace_file(file, content)
            except OSError as error:
                why = error.strerror or str(error)
                raise UsageError(f"{shown_path(file)} cannot be written", why, "fix its rights") from error
            written.append(file)
    except BaseException:
        for file in written:
            file.unlink()
        for folder in sorted(folders, key=lambda folder: -len(folder.parts)):
            with suppress(OSError):  # it was not made, or somebody else has put something into it
                folder.rmdir()
        raise


def refuse_existing(*files: Path) -> None:
    """UsageError names the first file that is there already."""
    for file in files:
        if file.exists() or file.is_symlink():
            why = "nothing is written over it"
            raise UsageError(f"{shown_path(file)} is there already", why, "choose another name, or remove it")


def named_text(file: Path, section: str) -> str:
    """What is in a file that settings name; UsageError says in which section of them."""
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read", getattr(error, "strerror", None) or str(error),
            f"fix it, or name another file in [{section}] of twinlake.toml",
        ) from error  # fmt: skip


def read_secret(file: Path) -> str:
    """The one line that the file holds; ValueError where it holds no secret."""
    try:
        held = file.read_bytes()[:_LARGEST_SECRET].decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    return one_line(held.rstrip("\r\n"), str(file))


def one_line(secret: str, place: str) -> str:
    """The secret; ValueError where it is none. Kafka's Java client shows what comes after an end of line."""
    if not secret or set(secret) & set("\r\n\0"):
        raise ValueError(f"{place} must hold one line, the password alone")
    return secret


def named_secret(file: Path, section: str) -> str:
    """What `read_secret` finds in a file that settings name; UsageError says in which section of them."""
    try:
        return read_secret(file)
    except ValueError as error:
        raise UsageError(
            f"{file} holds no password", str(error), f"fix it, or name another file in [{section}] of "
            "twinlake.toml",
        ) from error  # fmt: skip


@contextmanager
def raising_disk_full(folder: Path) -> Iterator[None]:
    """Raises FullDiskError instead of what another program, or this one, raised because the disk is full."""
    try:
        yield
    except Exception as error:
        if full := full_disk(folder, error=error):
            raise full from error
        raise


def nearest(folder: Path) -> Path:
    """The folder, or the first above it that is there."""
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


def full_disk(*folders: Path, error: BaseException | None = None) -> FullDiskError | None:
    """Which disk is full: one of the folders', or one mounted at most two folders below them.

    None where the error, if there is one, has another cause, or, without one, every disk has room.
    """
    if error is not None and not any(words in str(one) for one in _chain(error) for words in _FULL):
        return None
    there = list(map(nearest, folders))
    below = (one for folder in there for depth in ("*", "*/*") for one in folder.glob(depth))
    used = {one: shutil.disk_usage(one) for one in (*there, *filter(Path.is_mount, below))}
    fullest = min(used, key=lambda one: used[one].free)
    found = used[fullest]
    if error is None and found.free >= _NO_ROOM_BYTES:
        return None
    return FullDiskError(
        f"the disk of {fullest} is full",
        f"{found.free:,} of {found.total:,} bytes are free" + (f"; {error}"[:300] if error else ""),
        "make room there; what runs by itself goes on then, what was asked for has to be asked for again",
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _replace(path: Path, content: str | bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content.encode() if isinstance(content, str) else content)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """A rename is durable once its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shown_path(file: str | Path) -> str:
    """The path as a person reads it: from where they stand, if it is below there."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
