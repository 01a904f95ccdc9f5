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
from twinlake.cli.output import console

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


@contextmanager
def working(text: str, parts: int | None = None) -> Iterator[Working]:
    """Shows the text and how long it takes; of so many parts a bar and the time left, too."""
    columns: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if parts:
        columns += [BarColumn(), TextColumn("{task.completed} of {task.total}, left:"), TimeRemainingColumn()]
    bar = Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    )
    task = bar.add_task(visible(text), total=parts)
    begin = threading.Timer(SHOWN_AFTER_S, bar.start)
    begin.daemon = True
    begin.start()
    try:
        yield Working(bar, task)
    finally:
        begin.cancel()
        begin.join()
        if console.is_terminal:  # rich writes an empty line elsewhere
            bar.stop()
