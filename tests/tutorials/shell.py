"""A terminal: one bash for all lines of a page, so that folders, variables and what runs beside it stay."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinlake.base.waiting import wait_for

LONGEST_S = 600


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a line has shown, both streams as a terminal mixes them, and its exit code."""

    output: str
    code: int


class Shell:
    """It starts in `folder`; `notes` is a folder of its own for what passes between it and this process.

    With the file descriptor of a `terminal` what lines show goes there, and not into `Done.output`.
    """

    def __init__(
        self, folder: Path, notes: Path, environ: Mapping[str, str], terminal: int | None = None
    ) -> None:
        notes.mkdir()
        self._to_terminal = terminal is not None
        self.folder = folder
        """Where it stands."""
        self._output, self._end = notes / "output", notes / "end"
        self._bash = subprocess.Popen(
            ["bash"], cwd=folder, env=environ, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=terminal, stderr=terminal,
        )  # fmt: skip

    def run(self, line: str) -> Done:
        """What one line does, to its end."""
        self.begin(line)
        return wait_for(line, self.ended, LONGEST_S)

    def begin(self, line: str) -> None:
        """Lets it run; `ended` says when it has."""
        self._end.unlink(missing_ok=True)
        assert self._bash.stdin
        to = "" if self._to_terminal else f">'{self._output}' 2>&1"
        self._bash.stdin.write(f"{{ {line}\n}} {to} </dev/null; ")
        self._bash.stdin.write(f"echo \"$? $PWD\" >'{self._end}.new'; mv '{self._end}.new' '{self._end}'\n")
        self._bash.stdin.flush()

    def ended(self) -> Done | None:
        """What the line has done; None as long as it runs. AssertionError where the bash has ended."""
        if self._bash.poll() is not None:
            raise AssertionError(f"the shell has ended with {self._bash.returncode}")
        if not self._end.exists():
            return None
        code, _, folder = self._end.read_text().rstrip("\n").partition(" ")
        self.folder = Path(folder)
        return Done(output="" if self._to_terminal else self._output.read_text(), code=int(code))

    def close(self) -> None:
        """Ends the bash, also where a line of it has not ended; what it has started goes on."""
        assert self._bash.stdin
        self._bash.stdin.close()
        try:
            self._bash.wait(10)
        except subprocess.TimeoutExpired:
            self._bash.kill()
            self._bash.wait()
