"""ADBC's driver in its own environment, called from tests: see `adbc_driver.py`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("adbc_driver.py")


class AdbcError(Exception):
    """What the driver has raised."""


class Adbc:
    """One process of a reader's."""

    def __init__(self, python: Path, address: str, password: str) -> None:
        self._process = subprocess.Popen(
            [str(python), str(PROGRAM), address, password], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def __call__(self, do: str, **asked: Any) -> Any:
        """What this function of the program returns; AdbcError for what it raises."""
        self.begin(do, **asked)
        return self.result()

    def begin(self, do: str, **asked: Any) -> None:
        """The same for `result` to wait for."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, **asked}) + "\n")
        self._process.stdin.flush()

    def result(self) -> Any:
        assert self._process.stdout
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise AdbcError(f"{answer['kind']}: {answer['error']}")
        return answer["found"]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
