"""`twinlake sql`: statements one after the other at a prompt, with history and completion; or of a pipe.

Each statement has a session of its own, so none knows of another.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import TwinlakeError
from twinlake.cli.options import whole
from twinlake.cli.output import load_settings, show_error, tell
from twinlake.cli.query import MOST_SHOWN, AsOf, answer, sql_server
from twinlake.cli.statements import Statements
from twinlake.config.sections import SQL_HISTORY
from twinlake.config.settings import Services

PROMPT, MORE = "twinlake> ", "      ... "
REMEMBERED = 1_000
"""Lines of the history, a file in the data directory."""
LIMIT = 1_000
_ENDS = {r"\q", "exit", "quit"}
_WORDS = (
    "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "COUNT", "DESC", "DESCRIBE", "DISTINCT", "ELSE", "END",
    "EXPLAIN", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT",
    "NULL", "ON", "OR", "ORDER", "OUTER", "SELECT", "SHOW", "TABLES", "THEN", "UNION", "USING", "WHEN",
    "WHERE", "WITH",
)  # fmt: skip


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("sql")(sql_command)


def sql_command(
    limit: Annotated[
        int,
        typer.Option(parser=whole(1, MOST_SHOWN), metavar="NUMBER", help="at most so many rows of an answer"),
    ] = LIMIT,
    as_of: AsOf = None,
) -> None:
    """Run statements at a prompt, each when it ends with ; or those of a pipe.

    Tab completes tables, columns and words; the arrow keys bring back what was asked before. ^C leaves out
    what is being typed, or ends a statement that runs; ^D, exit or \\q ends. Of a pipe the first error ends
    it, with its exit code.
    """
    services, waiting = sql_server()

    def run(statement: str) -> None:
        began = time.monotonic()
        answer(services, statement, limit, as_of, waiting)
        tell((f"{time.monotonic() - began:.2f} s", "dim"))

    if not is_terminal():
        for statement in statements(sys.stdin.read()):
            answer(services, statement, limit, as_of, waiting)
        return
    with_history(load_settings().home / SQL_HISTORY, completing(services))
    tell("statements end with ; and \\q ends")
    for statement in typed(input):
        try:
            run(statement)
        except TwinlakeError as error:
            show_error(error)
        except KeyboardInterrupt:
            tell("ended")


def typed(ask: Callable[[str], str]) -> Iterator[str]:
    """Each statement, once it is whole, until somebody ends."""
    begun = Statements()
    while True:
        try:
            line = ask(MORE if begun.is_begun else PROMPT)
        except EOFError:
            tell("")
            return
        except KeyboardInterrupt:
            tell("")
            begun = Statements()
            continue
        if not begun.is_begun and line.strip().rstrip(";").lower() in _ENDS:
            return
        yield from begun.add(f"{line}\n")


def statements(text: str) -> list[str]:
    """Those of a text, without the ; between them; the last one needs none."""
    cut = Statements()
    return [*cut.add(text), *cut.rest()]


def completing(services: Services) -> Callable[[str, int], str | None]:
    """For readline: the names in reach, asked for once, and SQL's words."""
    known: list[str] = []

    def complete(begun: str, number: int) -> str | None:
        if not known:
            known.extend([*_names(services), *_WORDS])
        low = begun.lower()
        fits = sorted({one for one in known if one.lower().startswith(low)})
        return fits[number] if number < len(fits) else None

    return complete


def _names(services: Services) -> Sequence[str]:
    from twinlake.reading.facts_client import names

    try:
        found = names(services)
    except TwinlakeError:
        return ()
    columns = {column["name"] for table in found["tables"] for column in table["columns"]}
    return [*found["schemas"], *(table["name"] for table in found["tables"]), *columns]


def with_history(file: Path, complete: Callable[[str, int], str | None]) -> None:
    """Where Python was built with readline: elsewhere there is a prompt alone."""
    try:
        import readline
    except ImportError:
        return
    import atexit

    if file.parent.is_dir():
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
            if file.stat().st_size:  # some readlines refuse an empty one
                readline.read_history_file(file)
        except OSError as error:  # a data directory of somebody else can be read by this prompt, too
            _tell_forgotten(file, error)
        else:
            readline.set_history_length(REMEMBERED)
            atexit.register(_save, file, readline.write_history_file)
    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,;()=<>.+-*/'\"")
    is_editline = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")


def _save(file: Path, write: Callable[[Path], None]) -> None:
    try:
        write(file)
    except OSError as error:
        _tell_forgotten(file, error)


def _tell_forgotten(file: Path, error: OSError) -> None:
    tell(f"what you ask is not remembered: {file} cannot be used ({error.strerror or error})")


def is_terminal() -> bool:
    return sys.stdin.isatty() and os.environ.get("TERM") != "dumb"
