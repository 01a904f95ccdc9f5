"""The real command line and supervisor, in a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.project import OURS, PROJECT
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record


def files_of(home: Path) -> Iterator[Path]:
    """Every file of a home where things run, which make and delete some meanwhile."""
    for folder, _, names in os.walk(home):
        for path in (Path(folder, name) for name in names):
            if path.is_file() and not path.is_symlink():
                yield path


class Twinlake:
    """What `twinlake up` keeps running in a home of its own."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home, in_project=OURS)
        self.folders = folders_of(self.settings)

    def __call__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "twinlake", *arguments]
        environ = {**os.environ, "TWINLAKE_HOME": str(self.settings.home)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environ, cwd=PROJECT)
        assert done.returncode == 0, done.stdout + done.stderr

    def python(self, part: str) -> psutil.Process:
        identity = record.load(self.folders, part).identity
        assert identity
        return psutil.Process(identity.pid)

    def jvm(self, part: str) -> psutil.Process:
        (found,) = (one for one in self.python(part).children(recursive=True) if one.name() == "java")
        return found

    def ready_again(self, part: str, restarts: int) -> bool | None:
        now = record.load(self.folders, part)
        return True if now.state == "ready" and now.restarts == restarts else None
