"""Owns the loop of commands that look again after each save, until somebody ends them."""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NoReturn

import typer

from twinlake.base.errors import TwinlakeError
from twinlake.base.files import shown_path
from twinlake.cli.output import show_error, tell
from twinlake.config.project import Project
from twinlake.unit_tests.watching import changed, seen

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
    more: tuple[Path, ...] = ()
    try:
        while True:
            before = seen(sources, more)
            try:
                more = tuple(look())
            except TwinlakeError as error:
                show_error(error)
            before |= {file: at for file, at in seen((), more).items() if file not in before}
            tell(_WAITING)
            files = changed(sources, before, more, listener.sleep)
            tell("", *(f"{shown_path(file)} " for file in files), "changed")
    except KeyboardInterrupt:
        raise typer.Exit(ENDED) from None


class _Listener:
    """Sleeps, and hears what is typed."""

    def __init__(self, typed: Callable[[str], None] | None) -> None:
        self._typed = typed if sys.stdin is not None and not sys.stdin.closed else None

    def sleep(self, seconds: float) -> None:
        if self._typed is None:
            time.sleep(seconds)
            return
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return
        if line := sys.stdin.readline():
            try:
                self._typed(line.strip())
            except TwinlakeError as error:
                show_error(error)
            tell(_WAITING)
        else:
            self._typed = None  # its end: nobody types any more
