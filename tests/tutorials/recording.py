"""A tutorial as it runs, recorded as a moving picture: `python -m tests.tutorials.recording` writes PICTURE.

Real services do what the page says, in an empty folder; it takes some minutes. The picture shows each command
and what a terminal shows of it; what takes longer than LONGEST_S is played faster, in so many seconds.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

from tests.project import PROJECT
from tests.tutorials.film import Film
from tests.tutorials.reader import AGAIN_S, environment
from tests.tutorials.steps import Command, Edit, Step, Write, steps
from twinlake.base.waiting import wait_for

PAGE = PROJECT / "docs" / "tutorials" / "change_logic.md"
PICTURE = PROJECT / "docs" / "pictures" / "tour.svg"
COLUMNS, ROWS = 110, 30
LONGEST_S = 2.5
READ_S = 1.5
"""So long one sees a command's end before the next one is typed."""
TYPED_S = 0.7
_GREEN, _RED, _DIM, _PLAIN = "\x1b[1;32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"


class Recorder:
    """One bash on a terminal of its own, and all that is seen on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "reader"
        self.folder.mkdir()
        self._home = str(self.folder)
        self.film = Film()
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._end = folder / "end"
        self._seen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._bash = subprocess.Popen(
            ["bash"], cwd=self.folder, env={**environment(), "TERM": "xterm-256color"}, text=True,
            stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def do(self, step: Step) -> None:
        """One step, so that it is seen; what a page says that one sees is seen anyway."""
        match step:
            case Command():
                if step.until is not None:
                    self._until(step)
                self._type(step.line)
                self._play(self._run(step))
            case Write():
                self._type(f"edit {step.path}")
                self._show("".join(f"{_DIM}{line}{_PLAIN}\r\n" for line in step.text.splitlines()))
                (self.folder / step.path).write_text(step.text)
            case Edit():
                self._type(f"edit {step.path}")
                removed = [f"{_RED}- {line}{_PLAIN}" for line in step.before if line not in step.after]
                added = [f"{_GREEN}+ {line}{_PLAIN}" for line in step.after if line not in step.before]
                self._show("".join(f"{line}\r\n" for line in (*removed, *added)))
                file = self.folder / step.path
                file.write_text(step.of(file.read_text()))
        self.film.stay(READ_S)

    def close(self) -> None:
        assert self._bash.stdin
        self._bash.stdin.close()
        self._bash.wait(60)

    def _until(self, command: Command) -> None:
        """Types it again, unseen, until it shows what is waited for."""
        until = command.until
        assert until is not None

        def is_shown() -> bool | None:
            return until.missing("".join(text for _, text in self._run(command))) is None or None

        wait_for(f"{command.line} to show {until.lines}", is_shown, AGAIN_S, every_s=0.5)

    def _type(self, line: str) -> None:
        self._show(f"{_GREEN}${_PLAIN} {line}")
        self.film.stay(TYPED_S)
        self._show("\r\n")

    def _show(self, text: str) -> None:
        self._stream.feed(text.replace(self._home, "~"))
        self.film.add(self._screen)

    def _play(self, seen: list[tuple[float, str]]) -> None:
        taken = seen[-1][0] if seen else 0.0
        faster = max(1.0, taken / LONGEST_S)
        before = 0.0
        for at, text in seen:
            self.film.stay((at - before) / faster)
            self._show(text)
            before = at

    def _run(self, command: Command) -> list[tuple[float, str]]:
        """Runs it to its end: what it has shown, each with how many seconds after its begin."""
        self._end.unlink(missing_ok=True)
        assert self._bash.stdin
        self._bash.stdin.write(f"{{ {command.line}\n}} </dev/null; echo $? $PWD >'{self._end}.new'; ")
        self._bash.stdin.write(f"mv '{self._end}.new' '{self._end}'\n")
        self._bash.stdin.flush()
        seen, began = list[tuple[float, str]](), time.monotonic()
        while select.select([self._seen], [], [], 0.1)[0] or not self._end.exists():
            if select.select([self._seen], [], [], 0)[0]:
                text = os.read(self._seen, 65_536).decode(errors="replace")
                seen.append((time.monotonic() - began, text))
        code, folder = self._end.read_text().split()
        if int(code) != command.ends_with:
            raise SystemExit(f"{command.line} ended with {code}:\n{seen}")
        self.folder = Path(folder)
        return seen


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(Path(folder))
        try:
            for step in steps(PAGE.read_text()):
                print(step, file=sys.stderr)
                recorder.do(step)
        finally:
            recorder.close()
            for data in (Path(folder) / "reader").glob("*/.twinlake"):
                subprocess.run([sys.executable, "-m", "twinlake", "--home", str(data), "down"], check=True)
    PICTURE.write_text(recorder.film.svg(COLUMNS, ROWS))
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes, {recorder.film.seconds:.0f} s")


if __name__ == "__main__":
    main()
