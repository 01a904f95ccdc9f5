"""Results as a person and as a pipe get them: nothing is ever cut."""

from __future__ import annotations

import pytest
from rich.console import Console

from jobs.commands import output

NAMES, ROWS = ("customer", "note"), [("c95881234", "x" * 100), ("c1", "two words")]


def test_a_pipe_gets_whole_rows_however_wide(capsys: pytest.CaptureFixture[str]) -> None:
    output.show_rows(NAMES, ROWS)

    head, first, second = capsys.readouterr().out.splitlines()
    assert (head.split(), first.split()) == (list(NAMES), ["c95881234", "x" * 100])
    assert second.rstrip() == "c1         two words"


@pytest.mark.parametrize("width", [80, 40, 13])
def test_a_narrow_terminal_gets_a_list_for_each_row_and_every_character(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(output, "_stdout", lambda: Console(width=width, highlight=False))
    output.show_rows(NAMES, ROWS)

    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= width for line in lines)
    assert "".join(lines).count("x") == 100 and "c95881234" in "".join(line[10:].strip() for line in lines)


def test_a_terminal_that_is_wide_enough_gets_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "_stdout", lambda: Console(width=111, highlight=False))
    output.show_rows(NAMES, ROWS)

    assert len(capsys.readouterr().out.splitlines()) == 3
