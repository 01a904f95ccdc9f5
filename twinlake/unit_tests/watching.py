"""Waits until a file of a project changes that a unit test depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from twinlake.config.project import Project

Seen = dict[Path, tuple[int, int, int]]
"""By file, when it was changed last (in nanoseconds), its size, its number: a save may make a new one."""
_EVERY_S = 0.1
_ENDINGS = (".py", ".yaml", ".avsc")


def seen(sources: Sequence[Project], more: Iterable[Path] = ()) -> Seen:
    """The definitions, tests, contracts and schemas as they are now, and `more` files."""
    folders = (
        folder for project in sources for folder in (project.tables, project.contracts, project.schemas)
    )
    listed = (file for folder in folders for file in folder.rglob("*") if file.suffix in _ENDINGS)
    found: Seen = {}
    for file in (*listed, *more):
        with suppress(OSError):  # it is gone
            at = file.stat()
            found[file] = (at.st_mtime_ns, at.st_size, at.st_ino)
    return found


def changed(
    sources: Sequence[Project],
    before: Seen,
    more: Sequence[Path] = (),
    sleep: Callable[[float], None] = time.sleep,
) -> list[Path]:
    """Which files are not as they were; returns once some are, and nothing has changed for a moment."""
    while (now := seen(sources, more)) == before:
        sleep(_EVERY_S)
    while True:
        sleep(_EVERY_S)
        later = seen(sources, more)
        if later == now:
            break
        now = later
    return sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))
