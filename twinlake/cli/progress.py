"""What shows on a terminal that work goes on, how far it is, and for how long; nothing elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from twinlake.base.errors import visible
from twinlake.cli.output import console, moving

SHOWN_AFTER_S = 1.0
"""Quicker work shows nothing: it would flicker."""


@dataclass(frozen=True)
class Working:
    """One piece of work that goes on."""

    _bar: Progress
    _task: TaskID

    def update(self, text: str) -> None:
        """What is done now."""
        self._bar.update(self._task, description=visible(text))

    def advance(self) -> None:
        """One more of the parts is done."""
        self._bar.advance(self._task)


def bar_of(*columns: ProgressColumn, transient: bool = True) -> Progress:
    """A bar on stderr. Rich would send there, too, what is printed to stdout meanwhile, also to a pipe."""
    return Progress(
        *columns, console=console, transient=transient, redirect_stdout=False, redirect_stderr=False
    )


@contextmanager
def working(text: str, parts: int | None = None) -> Iterator[Working]:
    """Shows the text and how long it takes; of so many parts a bar and the time left, too."""
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if parts:
        columns += [BarColumn(), TextColumn("{task.completed} of {task.total}, left:"), TimeRemainingColumn()]
    bar = bar_of(*columns, TimeElapsedColumn())
    task = bar.add_task(visible(text), total=parts)
    turn = threading.Lock()
    is_shown = False

    def show() -> None:
        nonlocal is_shown
        with turn:
            is_shown = True
            bar.start()

    @contextmanager
    def away() -> Iterator[None]:
        with turn:
            if is_shown:
                bar.stop()
            yield
            if is_shown:
                bar.start()

    begin = threading.Timer(SHOWN_AFTER_S, show)
    begin.daemon = True
    if console.is_terminal:
        begin.start()
        moving.append(away)
    try:
        yield Working(bar, task)
    finally:
        if console.is_terminal:
            moving.remove(away)
            begin.cancel()
            begin.join()
            if is_shown:
                bar.stop()
