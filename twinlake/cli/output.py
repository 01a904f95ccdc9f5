"""What all commands share: results on stdout, words about the work on stderr, errors and their exit codes.

What is shown may come from a record that anybody has produced: no text is ever read as markup or emoji, and
control characters are escaped, see `twinlake.base.errors`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from twinlake.base.as_json import to_json
from twinlake.base.errors import TwinlakeError, UsageError, visible
from twinlake.config.settings import Settings

Words = str | tuple[str, str]
"""A text, or a text and its style, like `("equal", "green")`; only a terminal sees the style."""

console = Console(stderr=True, highlight=False, markup=False, emoji=False)
"""Where `tell` writes; commands use it themselves for what moves: bars, and waiting."""
moving: list[Callable[[], AbstractContextManager[None]]] = []
"""What takes a bar away that moves on `console`, while a result is written to the same terminal."""
_WIDE = 1_000_000
"""Cells of a terminal on which any table has room."""


def load_settings() -> Settings:
    """The folders in use, by this shell's environment."""
    return Settings.of(os.environ)


def is_terminal() -> bool:
    """Whether stdout is one."""
    return sys.stdout is not None and sys.stdout.isatty()


def refuse_unanswered(asks: str, remedy: str = "add --yes") -> None:
    """UsageError where a command would ask, and nobody could answer."""
    if not sys.stdin.isatty():
        raise UsageError(asks, "there is no terminal to answer on", remedy)


def print_json(value: Any) -> None:
    """The value on stdout: decimals as strings, times RFC 3339 UTC."""
    print(json.dumps(to_json(value), indent=2, ensure_ascii=False))


def say(*parts: Words) -> None:
    """A result for a person, on stdout: one line, however wide."""
    if terminal := _terminal():
        with _still():
            terminal.print(_text(*parts), soft_wrap=True)
    else:
        print(_text(*parts).plain, flush=True)  # before the next words on stderr


def tell(*parts: Words) -> None:
    """Words about the work, on stderr, what to do next: one line, however wide."""
    console.print(_text(*parts), soft_wrap=True)


def show_rows(names: Sequence[str], rows: Iterable[Sequence[Words]]) -> None:
    """A table on stdout; on a terminal that is too narrow for it, each row as a list of its own.

    A pipe or a file has no edge and no style: there, cells are filled up with blanks, but for the last one.
    """
    head, body = [_text(name) for name in names], [[_text(cell) for cell in row] for row in rows]
    if terminal := _terminal():
        with _still():
            _draw(terminal, head, body)
    else:
        print("\n".join(_filled(head, body)), flush=True)


def report_error(error: TwinlakeError, as_json: bool) -> int:
    """Says what happened, why and what to do, and returns the exit code."""
    show_error(error)  # first: whether or not anybody reads stdout
    if as_json:
        print_json(error.to_json())
    return error.exit_code


def show_error(error: TwinlakeError) -> None:
    """What happened, why and what to do, on stderr."""
    for line in error_lines(error.to_json()):
        tell(line)


def say_error(about: str, error: dict[str, Any]) -> None:
    """A result for a person: what is wrong there, why and what to do, an empty line before it."""
    what, *more = error_lines(error)
    say("")
    say(f"{about}: ", what)
    for line in more:
        say(line)


def say_failures(of: str, found: Iterable[Mapping[str, Any]]) -> None:
    """Of changelogs, or what else goes along with tables, the errors of those that are on."""
    for one in found:
        if one["error"] and one["state"] != "stopped":
            say_error(f"{of} {one['table']}", one["error"])


def error_lines(error: dict[str, Any]) -> list[Words]:
    """What happened, why and what to do, of an error as JSON has it; a text of several lines stays so."""
    happened = str(error.get("what", ""))
    labels = {"why": "why: ", "remedy": "do:  "}
    more = [
        label + str(error[part])
        for part, label in labels.items()
        if error.get(part) and not happened.endswith(str(error[part]))  # a file's error says it with its line
    ]
    what = [(line, "bold red") for line in _lines(happened)]
    return [*what, *(line for text in more for line in _lines(text))]


def _lines(text: str) -> list[str]:
    return text.expandtabs().split("\n")


def _text(*parts: Words) -> Text:
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((visible(text), style) for text, style in pairs))


def _terminal() -> Console | None:
    """Stdout, where it is one."""
    if not is_terminal():
        return None
    return Console(highlight=False, markup=False, emoji=False)


@contextmanager
def _still() -> Iterator[None]:
    with ExitStack() as away:
        for take_away in moving:
            away.enter_context(take_away())
        yield


def _filled(head: Sequence[Text], body: Sequence[Sequence[Text]]) -> Iterator[str]:
    widths = [max(row[at].cell_len for row in (head, *body)) for at in range(len(head))]
    widths[-1:] = [0] * len(widths[-1:])  # nothing stands after the last one
    for row in (head, *body):
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.plain + " " * (width - cell.cell_len) for cell, width in cells)


def _draw(terminal: Console, head: Sequence[Text], body: Sequence[Sequence[Text]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        grid.add_column(name)
    for row in body:
        grid.add_row(*row)
    edgeless = terminal.options.update(max_width=_WIDE)
    if Measurement.get(terminal, edgeless, grid).maximum <= terminal.width:
        terminal.print(grid)
        return
    for number, row in enumerate(body):
        one = Table(box=None, pad_edge=False, show_header=False)
        one.add_column(style="bold", no_wrap=True)
        one.add_column(overflow="fold")
        for name, cell in zip(head, row, strict=True):
            one.add_row(name, cell)
        terminal.print(*([""] if number else []), one, sep="\n")
