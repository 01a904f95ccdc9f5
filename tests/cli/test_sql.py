"""What the prompt sends and when, and that a pipe ends at its first error."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.test_query import Door, door
from twinlake.base.errors import UsageError
from twinlake.cli import sql
from twinlake.cli.app import build_app
from twinlake.config.sections import SQL_HISTORY
from twinlake.config.settings import Services, Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise.record import remove_state

__all__ = ["door"]  # a fixture


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; SELECT \";\", `;`;", ["SELECT ';'", 'SELECT ";", `;`']),
        ("-- one; two\nSELECT 1;\n-- the end;\n", ["-- one; two\nSELECT 1"]),
        ("/* a;\nb */ SELECT 1 /* ; */;", ["/* a;\nb */ SELECT 1 /* ; */"]),
        ("SELECT 'it\\'s; so', 'it''s;'; ;;", ["SELECT 'it\\'s; so', 'it''s;'"]),
        (" \n;;", []),
        ("SELECT 'open; SELECT 2", ["SELECT 'open; SELECT 2"]),
        ("/* a /* b */ ; */ SELECT 1; SELECT 2", ["/* a /* b */ ; */ SELECT 1", "SELECT 2"]),
        ("SELECT r'a\\'; SELECT R\"b\\\", bar'\\';'", ["SELECT r'a\\'", "SELECT R\"b\\\", bar'\\';'"]),
    ],
)
def test_a_statement_ends_with_a_semicolon_that_is_one(text: str, found: list[str]) -> None:
    assert sql.statements(text) == found


def typing(*lines: str | type[BaseException]) -> tuple[list[str], list[str]]:
    """What was asked of the terminal, and the statements that came of these lines."""
    left, prompts = iter(lines), list[str]()

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        line = next(left)
        if isinstance(line, str):
            return line
        raise line

    return prompts, list(sql.typed(ask))


def test_lines_are_one_statement_until_it_ends() -> None:
    prompts, found = typing("SELECT 1,", "  2; SELECT 3; SELECT", "4;", "", r"\q")

    assert found == ["SELECT 1,\n  2", "SELECT 3", "SELECT\n4"]
    assert prompts == [sql.PROMPT, sql.MORE, sql.MORE, sql.PROMPT, sql.PROMPT]
    assert typing("SELECT 'a;", "b;' /* ;", "*/;", EOFError)[1] == ["SELECT 'a;\nb;' /* ;\n*/"]
    assert typing("SELECT 1", KeyboardInterrupt, "exit;")[1] == []
    assert typing("SELECT 1", EOFError)[1] == []


def test_a_pasted_statement_of_5000_lines_is_cut_in_less_than_a_second() -> None:
    lines = [f"SELECT 'row {number};' AS a, -- ; in a comment\n UNION ALL" for number in range(5_000)]
    began = time.perf_counter()

    _, found = typing(*lines, "SELECT 1;", EOFError)

    assert time.perf_counter() - began < 1
    assert found == ["\n".join([*lines, "SELECT 1"])]


def test_a_pipe_s_statements_are_run_one_by_one_until_one_fails(door: Door) -> None:
    done = CliRunner().invoke(build_app(), ["sql", "--limit", "5"], input="SELECT 1;\nSELECT 2 -- the last\n")

    assert done.exit_code == 0, done.output
    assert door.asked == [{"sql": "SELECT 1", "limit": 5}, {"sql": "SELECT 2 -- the last", "limit": 5}]
    assert done.stdout.count("[bold]") == 2

    door.status, door.answer = 400, {"what": "it is refused", "why": "it writes", "remedy": "read"}
    failed = CliRunner().invoke(build_app(), ["sql"], input="DROP VIEW x; SELECT 1")
    assert isinstance(failed.exception, UsageError) and len(door.asked) == 3


def test_names_in_reach_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {
        "schemas": ["release_1", "serve"], "tables": [{"name": "orders", "columns": [{"name": "order_id"}]}],
    }  # fmt: skip
    monkeypatch.setattr("twinlake.reading.facts_client.names", lambda services: listed)
    complete = sql.completing(Services())

    def fits(begun: str) -> Iterator[str]:
        number = 0
        while (found := complete(begun, number)) is not None:
            yield found
            number += 1

    assert [*fits("ord")] == ["ORDER", "order_id", "orders"]
    assert [*fits("SER")] == ["serve"] and [*fits("zz")] == []


@contextmanager
def prompt(home: Path) -> Iterator[int]:
    """A terminal with `twinlake sql`, which ends well."""
    main, terminal = pty.openpty()
    asked = [sys.executable, "-m", "twinlake", "sql"]
    environment = {**os.environ, "TERM": "xterm", "TWINLAKE_HOME": str(home)}
    with subprocess.Popen(
        asked, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, close_fds=True
    ) as running:
        os.close(terminal)
        yield main
        os.write(main, b"\\q\n")
        assert running.wait(20) == 0
    os.close(main)


def test_at_a_terminal_there_is_a_prompt_and_what_was_asked_is_remembered(door: Door, home: Path) -> None:
    with prompt(home) as main:
        until(main, "twinlake> ")
        os.write(main, b"SELECT 1\n")
        until(main, "... ")
        os.write(main, b";\n")
        until(main, "2 rows, release 7", "twinlake> ")
        door.status, door.answer = 400, {"what": "it is refused", "why": "it writes", "remedy": "read"}
        os.write(main, b"DROP VIEW x;\n")
        until(main, "it is refused", "twinlake> ")

    assert [one["sql"] for one in door.asked] == ["SELECT 1", "DROP VIEW x"]
    file = home / SQL_HISTORY
    assert "DROP VIEW x;" in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    remove_state(folders_of(Settings(home=home)))
    assert not home.exists()


def test_a_history_that_cannot_be_written_ends_no_prompt(door: Door, home: Path) -> None:
    (home / SQL_HISTORY).mkdir()  # whatever its rights, root could write a file

    with prompt(home) as main:
        until(main, "what you ask is not remembered", "sql_history cannot be used", "twinlake> ")
        os.write(main, b"SELECT 1;\n")
        until(main, "2 rows, release 7", "twinlake> ")

    assert [one["sql"] for one in door.asked] == ["SELECT 1"]


def until(main: int, *texts: str) -> str:
    """What the terminal shows, until it has shown these, one after the other."""
    seen, ends = "", time.monotonic() + 60
    while time.monotonic() < ends:
        seen += os.read(main, 4096).decode(errors="replace")
        rest = seen
        for text in texts:
            _, is_there, rest = rest.partition(text)
            if not is_there:
                break
        else:
            return seen
    raise AssertionError(seen)
