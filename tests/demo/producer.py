"""The producer as a child process: a burst that is waited for, or a steady stream that is stopped later."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.demo.summary import DemoError

END_SECONDS = 300.0


def twinlake(*arguments: str) -> list[str]:
    """The command line of this very environment."""
    return [sys.executable, "-m", "twinlake", *arguments]


class Producer:
    """One `twinlake produce`; its summary is known when it has ended."""

    def __init__(self, arguments: list[str], folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._out, self._log = folder / f"{name}.json", folder / f"{name}.log"
        with self._out.open("w") as out, self._log.open("w") as log:
            self._process = subprocess.Popen(
                twinlake("produce", "orders", "--json", *arguments), stdout=out, stderr=log
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> dict[str, Any]:
        """The summary, once every record is acknowledged."""
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            raise DemoError(
                f"the producer did not end within {END_SECONDS:.0f} s, see {self._log}"
            ) from error
        if code:
            raise DemoError(f"the producer failed: {self._log.read_text()[-600:]}")
        found: dict[str, Any] = json.loads(self._out.read_text())
        return found

    def stop(self) -> dict[str, Any]:
        """End a steady stream; what it has sent is flushed first."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        if self.running:
            self._process.kill()
            self._process.wait()
