"""A tutorial as it runs, recorded as a moving picture: `python -m tests.tutorials.recording` writes PICTURE.

Real services do what the page says, in an empty folder; it takes some minutes. The picture shows each command
and what a terminal shows of it; what takes longer than LONGEST_S is played faster, in so many seconds.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

import pyte

from tests.project import PROJECT
from tests.tutorials.film import Film
from tests.tutorials.reader import Reader
from tests.tutorials.shell import Done
from tests.tutorials.steps import Command, Edit, Shown, Step, Write, of_page

PAGE = PROJECT / "docs" / "tutorials" / "change_logic.md"
PICTURE = PROJECT / "docs" / "pictures" / "tour.svg"
COLUMNS, ROWS = 110, 30
LONGEST_S = 2.5
READ_S = 1.5
"""So long one sees a command's end before the next one is typed."""
TYPED_S = 0.7
_GREEN, _RED, _DIM, _PLAIN = "\x1b[1;32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"


class Recorder(Reader):
    """A reader whose terminal is filmed, from their first command on; what they wait for is not."""

    def __init__(self, folder: Path) -> None:
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        super().__init__(folder, terminal=theirs)
        os.close(theirs)
        self.film = Film()
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._seen: list[tuple[float, str]] = []
        """Of the last command: what was shown, each with how many seconds after its begin."""

    def do(self, step: Step) -> None:
        """One step, so that it is seen; what a page says that one sees is seen anyway."""
        match step:
            case Shown():
                return
            case Write():
                self._type_seen(f"edit {step.path}")
                self._show("".join(f"{_DIM}{line}{_PLAIN}\r\n" for line in step.text.splitlines()))
            case Edit():
                self._type_seen(f"edit {step.path}")
                removed = [f"{_RED}- {line}{_PLAIN}" for line in step.before if line not in step.after]
                added = [f"{_GREEN}+ {line}{_PLAIN}" for line in step.after if line not in step.before]
                self._show("".join(f"{line}\r\n" for line in (*removed, *added)))
        super().do(step)
        if isinstance(step, Command):
            self._type_seen(step.line)
            self._play()
        self.film.stay(READ_S)

    def _run(self, command: Command) -> Done:
        self._seen, began = [], time.monotonic()
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._shell.begin(command.line)
        while (done := self._shell.ended()) is None or select.select([self._terminal], [], [], 0)[0]:
            if select.select([self._terminal], [], [], 0.1)[0]:
                text = decode(os.read(self._terminal, 65_536))
                self._seen.append((time.monotonic() - began, text))
        shown = "".join(text for _, text in self._seen)
        if done.code != command.ends_with:
            raise SystemExit(f"{command.line} ended with {done.code}:\n{shown}")
        return Done(output=shown, code=done.code)

    def _type_seen(self, line: str) -> None:
        self._show(f"{_GREEN}${_PLAIN} {line}")
        self.film.stay(TYPED_S)
        self._show("\r\n")

    def _show(self, text: str) -> None:
        self._stream.feed(text)
        self.film.add(self._screen)

    def _play(self) -> None:
        taken = self._seen[-1][0] if self._seen else 0.0
        faster = max(1.0, taken / LONGEST_S)
        before = 0.0
        for at, text in self._seen:
            self.film.stay((at - before) / faster)
            self._show(text.replace(str(self.folder), "~"))
            before = at


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Recorder(Path(folder)) as recorder:
            for step in of_page(PAGE):
                print(step, file=sys.stderr)
                recorder.do(step)
        drawn = recorder.film.svg(COLUMNS, ROWS)
        if folder in drawn:  # a path that two reads have cut
            raise SystemExit(f"{folder} is seen; record it again")
    PICTURE.write_text(drawn)
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes, {recorder.film.seconds:.0f} s")


if __name__ == "__main__":
    main()
