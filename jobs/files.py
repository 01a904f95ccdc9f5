"""Replaces a file as a whole: a reader, a kill or a power cut finds the old content or the new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

READABLE = 0o644
"""For everybody: the SQL server reads the lake as another user."""
SECRET = 0o600
"""For the owner only."""


def replace_file(path: Path, content: str | bytes, mode: int = READABLE) -> None:
    """Writes `content` beside `path` (in a folder made where it is missing), syncs it, renames, syncs the
    folder. Raises OSError, with the old content left as it was."""
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
