"""Owns the cells of time in which states lie: where one begins, as SQL and as numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from twinlake.base import quote


def cell_sql(time: str, size: timedelta) -> str:
    """The start of the cell with this time, both in microseconds; before 1970 too."""
    # integers, not window(): that one expands rows and hides the column from pushed filters
    return f"({time} - pmod({time}, {micros(size)}L))"


def micros(length: timedelta) -> int:
    """As Spark counts time."""
    return length // timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The time cells in which states lie: a timestamp column with the cell's start, and the cells' size."""

    column: str
    size: timedelta
    runs: tuple[int, ...] = ()
    """Where runs of cells begin that are `size` apart, in microseconds since 1970 and in order. The last cell
    of a run ends with it, less than half a size early or late; the first run has been going on for ever.
    Without any, cells are aligned to 1970-01-01 UTC."""
    reach: timedelta = timedelta(0)
    """Where windows are made of several cells, so much after its start a window's last one begins at most."""

    def start_sql(self, on: str) -> str:
        """The start of the cell in which the time in column `on` is."""
        return f"timestamp_micros({self.cell_sql(f'unix_micros({quote.name(on)})')})"

    def cell_sql(self, time: str) -> str:
        """The start of the cell with this time, both in microseconds."""
        return self._by_runs(self._found(time)) if self.runs else cell_sql(time, self.size)

    def moved_sql(self, start: str, cells: int) -> str:
        """The start of the cell that is so many later, or earlier, than the one with this start."""
        if not self.runs:
            return f"{start} + {cells * micros(self.size)}L"
        return self.cell_sql(f"({start} + {cells * micros(self.size) + self._half}L)")

    def before_sql(self, start: str, cells: int) -> str:
        """An array of timestamps: the starts of so many cells, of which this one (in microseconds) is the
        last."""
        size = micros(self.size)
        if not self.runs:
            starts = (f"timestamp_micros({start} - {before * size})" for before in range(cells))
            return f"array({', '.join(starts)})"
        found = self._found(f"({start} + {self._half}L - _before * {size}L)")
        return self._by_runs(f"transform(sequence(0, {cells - 1}), _before -> timestamp_micros({found}))")

    def cell(self, time: int) -> int:
        """The start of the cell with this time, both in microseconds."""
        runs, size = self.runs or (0,), micros(self.size)
        run = max(bisect_right(runs, time) - 1, 0)
        cells = (time - runs[run]) // size
        if run + 1 < len(runs):
            cells = min(cells, (runs[run + 1] - runs[run] + self._half) // size - 1)
        return runs[run] + cells * size

    def moved(self, start: int, cells: int) -> int:
        """The start of the cell that is so many later, or earlier, than the one with this start."""
        return self.cell(start + cells * micros(self.size) + self._half)

    def spans(self, starts: Iterable[int]) -> Iterator[tuple[int, int]]:
        """(start, end) of the cells with these starts."""
        return ((start, self.moved(start, 1)) for start in starts)

    @property
    def slack(self) -> timedelta:
        """So much longer than their number of sizes some cells together may be, at most."""
        return self.size // 2 if self.runs else timedelta(0)

    @property
    def _half(self) -> int:
        return micros(self.size) // 2

    def _by_runs(self, sql: str) -> str:
        """SQL that names `_runs`: no column has a name like that, or like the others of these lambdas."""
        runs = ", ".join(f"{one}L" for one in self.runs)
        # the variable of a lambda is computed once, and its text stands there once
        return f"transform(array(array({runs})), _runs -> {sql})[0]"

    def _found(self, time: str) -> str:
        """By a binary search: cells of many runs cost about as many steps as their number has bits."""
        size, half = micros(self.size), self._half
        jumps = ", ".join(f"{1 << power}" for power in reversed(range((len(self.runs) - 1).bit_length())))
        reached = f"get(_runs, _run + _jump) <= {time}"
        run = f"aggregate(array({jumps or 0}), 0, (_run, _jump) -> if({reached}, _run + _jump, _run)"
        # how far the cell, and the last cell of the run, are from the run's start
        since, length = f"({time} - get(_runs, _run))", f"(get(_runs, _run + 1) - get(_runs, _run) + {half}L)"
        cell = f"({since} - pmod({since}, {size}L))"
        last = f"({length} - pmod({length}, {size}L) - {size}L)"
        return f"{run}, _run -> get(_runs, _run) + if({cell} > {last}, {last}, {cell}))"
