"""Waits until a file of a project changes that a unit test depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from twinlake.config.project import Project

Seen = dict[Path, tuple[int, int]]
"""By file, when it was changed last (in nanoseconds), and its size."""
_EVERY_S = 0.2
_ENDINGS = (".py", ".yaml", ".avsc")


def seen(sources: Sequence[Project]) -> Seen:
    """The definitions, tests, contracts and schemas as they are now."""
    found: Seen = {}
    for project in sources:
        for folder in (project.tables, project.contracts, project.schemas):
            for file in folder.rglob("*"):
                if file.suffix in _ENDINGS:
                    with suppress(OSError):  # it is gone
                        at = file.stat()
                        found[file] = (at.st_mtime_ns, at.st_size)
    return found


def changed(
    sources: Sequence[Project], before: Seen, sleep: Callable[[float], None] = time.sleep
) -> list[Path]:
    """Which files are not as they were; returns once some are, and nothing has changed for a moment."""
    while (now := seen(sources)) == before:
        sleep(_EVERY_S)
    while True:
        sleep(_EVERY_S)
        later = seen(sources)
        if later == now:
            break
        now = later
    return sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))
