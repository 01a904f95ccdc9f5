"""WholeFile: a file that has its name once it is whole; nothing is left of one that was not finished.

Where the system can, it has no name at all until then, so that not even a kill leaves anything behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from twinlake.base.errors import UsageError
from twinlake.base.files import raising_disk_full


@contextmanager
def whole_file(path: Path, replaces: bool = False) -> Iterator[IO[bytes]]:
    """Inside, it is written; after it, and without an error, it is there. UsageError where it cannot be
    written, or is there already and is not to be replaced; FullDiskError."""
    refuse(path, replaces)
    try:
        file, beside = _opened(path)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written", error.strerror or str(error), "name a file in a folder of yours"
        ) from error
    with raising_disk_full(path.parent), file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if not replaces:
                _name(file if beside is None else beside, path)
                return
            if beside is None:
                beside = _beside(path)
                _link(file, beside)
            os.replace(beside, path)
        finally:
            if beside is not None:
                beside.unlink(missing_ok=True)


def refuse(path: Path, replaces: bool) -> None:
    """UsageError where the file cannot be there after it."""
    if path.is_dir():
        raise UsageError(f"{path} cannot be written", "it is a folder", "name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"{path} cannot be written", f"there is no folder {path.parent}", "make it first")
    if path.exists() and not replaces:
        raise _there(path)


def _there(path: Path) -> UsageError:
    return UsageError(
        f"{path} is there already", "no file is replaced unasked", "name another, or add --force"
    )


def _opened(path: Path) -> tuple[IO[bytes], Path | None]:
    """A new file, and its name where it has one."""
    with suppress(OSError, AttributeError):
        if Path("/proc/self/fd").exists():
            return os.fdopen(os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b"), None
    beside = _beside(path)
    return open(beside, "x+b"), beside


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid4().hex[:12]}.part")


def _name(made: IO[bytes] | Path, path: Path) -> None:
    """Somebody may have made one of that name meanwhile."""
    try:
        _link(made, path)
    except FileExistsError as error:
        raise _there(path) from error
    except OSError:
        if not isinstance(made, Path):
            raise
        refuse(path, False)  # a file system without further names
        os.rename(made, path)


def _link(made: IO[bytes] | Path, path: Path) -> None:
    if isinstance(made, Path):
        return os.link(made, path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:  # with a folder, or Python does not follow the link in /proc
        os.link(f"/proc/self/fd/{made.fileno()}", path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)
