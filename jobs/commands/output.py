"""What all commands share: results on stdout, words about the work on stderr, errors and their exit codes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from jobs.as_json import to_json
from jobs.errors import TwinlakeError
from jobs.settings import Settings

console = Console(stderr=True, highlight=False)
"""For words about the work: progress, what to do next, errors."""
_WIDE = 1_000_000
"""A pipe or a file has no edge: nothing is cut or wrapped there."""


def load_settings() -> Settings:
    """The folders in use, by this shell's environment."""
    return Settings.of(os.environ)


def print_json(value: Any) -> None:
    """The value on stdout: decimals as strings, times RFC 3339 UTC."""
    print(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def say(text: str) -> None:
    """A result for a person, on stdout: one line, however wide."""
    _stdout().print(text, soft_wrap=True)


def show_rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout; on a terminal that is too narrow for it, each row as a list of its own."""
    out, kept = _stdout(), list(rows)
    grid = Table(*names, box=None, pad_edge=False, header_style="bold")
    for row in kept:
        grid.add_row(*row)
    if Measurement.get(out, out.options.update(max_width=_WIDE), grid).maximum <= out.width:
        out.print(grid)
        return
    for number, row in enumerate(kept):
        one = Table(box=None, pad_edge=False, show_header=False)
        one.add_column(style="bold", no_wrap=True)
        one.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            one.add_row(name, cell)
        out.print(*([""] if number else []), one, sep="\n")


def report_error(error: TwinlakeError, as_json: bool) -> int:
    """Says what happened, why and what to do, and returns the exit code."""
    if as_json:
        print_json(error.to_json())
    for line in error_lines(error.to_json()):
        console.print(line, soft_wrap=True)
    return error.exit_code


def error_lines(told: dict[str, Any]) -> list[str]:
    """What happened, why and what to do, of an error as JSON has it."""
    labels = {"why": "why: ", "remedy": "do:  "}
    more = [label + escape(str(told[part])) for part, label in labels.items() if told.get(part)]
    return [f"[bold red]{escape(str(told.get('what', '')))}[/]", *more]


def _stdout() -> Console:
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    return Console(highlight=False, width=None if on_terminal else _WIDE)
