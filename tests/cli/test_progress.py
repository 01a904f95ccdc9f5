"""What shows that work goes on: on a terminal alone, once it takes a while, and gone when it is done."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from twinlake.base.waiting import wait_for
from twinlake.cli import progress
from twinlake.cli.progress import working


def shown_on(monkeypatch: pytest.MonkeyPatch, is_terminal: bool, after_s: float) -> io.StringIO:
    written = io.StringIO()
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", after_s)
    console = Console(file=written, force_terminal=is_terminal, width=100, markup=False)
    monkeypatch.setattr(progress, "console", console)
    return written


def test_long_work_shows_what_is_done_how_far_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    written = shown_on(monkeypatch, is_terminal=True, after_s=0)

    with working("starting", 4) as work:
        work.update("first [red]release\x1b[2J")
        work.advance()
        wait_for("the bar", lambda: True if "1 of 4" in written.getvalue() else None, 10)

    said = written.getvalue()
    assert "first [red]release" in said and r"\x1b[2J" in said and "left:" in said and "0:00:0" in said
    assert said.endswith(("\x1b[2K", "\x1b[?25h", "\r"))


def test_quick_work_and_no_terminal_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = shown_on(monkeypatch, is_terminal=True, after_s=10)
    with working("asking") as work:
        work.update("more")
    assert "asking" not in quick.getvalue() and "more" not in quick.getvalue()

    piped = shown_on(monkeypatch, is_terminal=False, after_s=0)
    with working("asking", 2) as work:
        work.advance()
        time.sleep(0.3)
    assert piped.getvalue() == ""
