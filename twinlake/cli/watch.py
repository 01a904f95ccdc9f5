"""Owns the loop of commands that look again after each save, until somebody ends them."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import typer

from twinlake.base.errors import TwinlakeError
from twinlake.base.files import shown_path
from twinlake.cli.output import show_error, tell
from twinlake.config.project import Project
from twinlake.definitions import loader
from twinlake.topics import formats

Seen = dict[Path, tuple[int, int, int]]
"""By file, when it was changed last (in nanoseconds), its size, its number: a save may make a new one."""
_EVERY_S = 0.1
_ENDINGS = (*loader.ENDINGS, ".yaml", *(f".{one}" for one in formats.ENDINGS.values()))
_WAITING = "waiting for changes; ^C ends it"
ENDED = 130
"""The exit code of what ^C has ended."""


def watch(
    sources: Sequence[Project],
    look: Callable[[], Iterable[Path]],
    typed: Callable[[str], None] | None = None,
) -> NoReturn:
    """Looks, and again whenever a file changes that definitions and tests rest on, or one that `look` names.
    What is typed meanwhile, a line, goes to `typed`."""
    listener = _Listener(typed)
    more: dict[Path, None] = {}
    """All that was ever named: what is broken now was imported before, and is repaired there."""
    try:
        while True:
            before = seen(sources, more)
            try:
                more |= dict.fromkeys(look())
            except TwinlakeError as error:
                show_error(error)
            before |= {file: at for file, at in seen((), more).items() if file not in before}
            tell(_WAITING)
            files = changed(sources, before, more, listener.sleep)
            tell("", *(f"{shown_path(file)} " for file in files), "changed")
    except KeyboardInterrupt:
        raise typer.Exit(ENDED) from None


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
    more: Iterable[Path] = (),
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


class _Listener:
    """Sleeps, and hears what is typed."""

    def __init__(self, typed: Callable[[str], None] | None) -> None:
        self._typed = typed
        self._input = None if typed is None else _standard_input()
        self._begun = b""
        """A line whose end has not come."""

    def sleep(self, seconds: float) -> None:
        if self._input is None:
            time.sleep(seconds)
            return
        if not select.select([self._input], [], [], seconds)[0]:
            return
        try:
            read = os.read(self._input, 4096)  # not by Python's buffer, in which `select` sees nothing
        except OSError:  # the terminal is gone
            read = b""
        if not read:
            self._input = None  # its end: nobody types any more
        *lines, self._begun = (self._begun + read).split(b"\n")
        for line in lines:
            self._hear(line.decode(errors="replace").strip())

    def _hear(self, line: str) -> None:
        assert self._typed is not None
        try:
            self._typed(line)
        except TwinlakeError as error:
            show_error(error)
        tell(_WAITING)


def _standard_input() -> int | None:
    """The number of its file; None where there is none."""
    try:
        return None if sys.stdin is None else sys.stdin.fileno()
    except (OSError, ValueError):
        return None
