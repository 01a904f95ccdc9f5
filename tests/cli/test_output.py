"""Results as a person and as a pipe get them: nothing is ever cut, no value taken for something else."""

from __future__ import annotations

import pytest
from rich.console import Console

from twinlake.base.errors import DefinitionError, UsageError
from twinlake.cli import output

NAMES, ROWS = ("customer", "note"), [("c95881234", "x" * 100), ("c1", "two words")]
AS_THEY_ARE = [
    "order:new:17", "1:100:3", ":smile:", r"\[0-9]", "a\\", r"\\[x]", "[bold]x[/]", "[/]", "[red", r"a\nb",
    "https://x/y?a=[1]", "  a   b  ", "ä 中文 👍", "👩\u200d👧", "a\u00a0b", "\ufeffa", "{0}", "%s",
]  # fmt: skip
"""Markup, emoji, backslashes, blanks, letters of two cells, and signs that take none."""
ESCAPED = {
    "a\nb": r"a\nb", "a\r": r"a\r", "a\tb": r"a\tb", "\a": r"\x07", "\b": r"\x08", "\v": r"\x0b",
    "\f": r"\x0c", "\0": r"\x00", "\x1b[2Jx": r"\x1b[2Jx", "\x7f": r"\x7f", "\x85": r"\x85",
    "\x9b1m": r"\x9b1m", "a\u2028b\u2029": r"a\u2028b\u2029", "\ud800": r"\ud800", "[b]\n": r"[b]\n",
    "gpj.\u202eexe": r"gpj.\u202eexe", "\u2066a\u2069": r"\u2066a\u2069",
}  # fmt: skip
SHOWN = [*((value, value) for value in AS_THEY_ARE), *ESCAPED.items()]


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Like a terminal, but for its colours."""
    monkeypatch.setattr(output, "_terminal", lambda: Console(width=width, highlight=False))


def test_a_pipe_gets_whole_rows_however_wide(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_rows(NAMES, ROWS)

    assert capsys.readouterr().out.splitlines() == [
        "customer   note",
        "c95881234  " + "x" * 100,
        "c1         two words",
    ]


def test_columns_stand_below_each_other_where_letters_take_two_cells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.show_rows(("a", "b", "c"), [("中文", "", "1"), ("x", ("styled", "bold"), "2")])

    assert capsys.readouterr().out.splitlines() == ["a     b       c", "中文          1", "x     styled  2"]


@pytest.mark.parametrize(("names", "rows"), [(("a",), []), ((), []), ((), [()])])
def test_a_table_without_rows_or_columns_is_no_error(
    capsys: pytest.CaptureFixture[str], names: tuple[str, ...], rows: list[tuple[str, ...]]
) -> None:
    output.show_rows(names, rows)

    assert capsys.readouterr().out.splitlines()[0] == "".join(names)


@pytest.mark.parametrize(("value", "shown"), SHOWN, ids=ascii)
def test_a_pipe_gets_every_character_of_a_value_and_controls_escaped(
    capsys: pytest.CaptureFixture[str], value: str, shown: str
) -> None:
    output.show_rows(("a", value), [(value, value)])
    output.say(value, (value, "bold"))
    output.tell(value, (value, "bold"))

    told = capsys.readouterr()
    assert told.out.split("\n")[1:] == [f"{shown}  {shown}", shown + shown, ""]
    assert told.out.split("\n")[0].split() == ["a", *shown.split()]
    assert told.err == f"{shown}{shown}\n"


@pytest.mark.parametrize(("value", "shown"), SHOWN, ids=ascii)
def test_a_terminal_gets_every_character_of_a_value_and_controls_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str, shown: str
) -> None:
    terminal(monkeypatch, 200)
    output.show_rows((value, "b"), [(value, "1")])
    output.say(value)

    head, row, line, _ = capsys.readouterr().out.split("\n")
    assert (head.rstrip(" "), row.rstrip(" "), line) == (f"{shown}  b", f"{shown}  1", shown)


@pytest.mark.parametrize(("value", "shown"), SHOWN, ids=ascii)
def test_a_narrow_terminal_gets_the_same_characters_in_its_lists(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str, shown: str
) -> None:
    terminal(monkeypatch, 40)
    output.show_rows((value, "b"), [(value, "x" * 40)])

    assert capsys.readouterr().out.split("\n")[0].rstrip(" ") == f"{shown}  {shown}".rstrip(" ")


@pytest.mark.parametrize("width", [80, 40, 13])
def test_a_narrow_terminal_gets_a_list_for_each_row_and_every_character(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    terminal(monkeypatch, width)
    output.show_rows(NAMES, ROWS)

    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    assert "".join(lines).count("x") == 100 and "c95881234" in "".join(line[10:].strip() for line in lines)


def test_a_terminal_that_is_wide_enough_gets_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(monkeypatch, 111)
    output.show_rows(NAMES, ROWS)

    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_terminal_gets_the_styles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coloured = Console(width=80, highlight=False, force_terminal=True, color_system="standard")
    monkeypatch.setattr(output, "_terminal", lambda: coloured)
    output.say("a ", ("b", "red"))

    assert capsys.readouterr().out == "a \x1b[31mb\x1b[0m\n"


def test_an_error_keeps_its_lines_and_gives_no_orders_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = UsageError("no [x] \x1b[2J", "at:\n\tSELECT :a:\n\t^", "mend\\")
    code = output.report_error(error, as_json=False)

    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.splitlines() == [
        r"no [x] \x1b[2J", "why: at:", "        SELECT :a:", "        ^", "do:  mend\\",
    ]  # fmt: skip


def test_what_an_error_of_a_file_says_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    output.report_error(DefinitionError("t", "t.py", 3, "it is wrong", "mend it"), as_json=False)

    assert capsys.readouterr().err.splitlines() == ["t.py:3: table t: it is wrong", "do:  mend it"]
