"""What shows that work goes on: on a terminal alone, once it takes a while, and gone when it is done."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time

import pyte
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


@pytest.mark.parametrize("is_piped", [False, True])
def test_a_result_stands_on_lines_of_its_own_and_goes_where_stdout_goes(is_piped: bool) -> None:
    shown, theirs = pty.openpty()
    stdout, piped = os.pipe() if is_piped else (None, theirs)
    code = (
        "import time; from twinlake.cli import output, progress; progress.SHOWN_AFTER_S = 0\n"
        "with progress.working('starting', 2) as work:\n"
        "    time.sleep(0.5); output.say('the first'); work.advance(); time.sleep(0.5)\n"
        "    output.show_rows(('a',), [('b',)]); time.sleep(0.5)\n"
    )
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", code], stdout=piped, stderr=theirs, env=environ, timeout=60)

    screen = pyte.Screen(80, 20)
    pyte.Stream(screen).feed(os.read(shown, 1 << 20).decode())
    lines = [line.rstrip() for line in screen.display if line.strip()]
    assert done.returncode == 0
    if stdout is None:
        assert lines == ["the first", "a", "b"]
    else:
        assert (os.read(stdout, 1 << 20).decode().splitlines(), lines) == (["the first", "a", "b"], [])


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
