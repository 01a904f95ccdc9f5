"""A small disk of its own in place of a folder, to be filled and to be given room again."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / ".ballast"

    def fill(self, leave: int = 0) -> None:
        """To the last byte but `leave`; others may write beside it."""
        stat = os.statvfs(self.folder)
        try:
            with self._ballast.open("ab", buffering=0) as out:
                block = bytes(4096)
                for _ in range(max(0, stat.f_bavail * stat.f_frsize - leave) // len(block)):
                    out.write(block)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def give_room(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, megabytes: int = 4) -> Iterator[Disk]:
    """A tmpfs at the folder; the test fails where the system refuses to mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={megabytes}m,mode=755"
    command = ["mount", "-t", "tmpfs", "-o", options, "twinlake-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.fail("there is no program `mount` to make a small disk with")
    if done.returncode:
        pytest.fail(f"no small disk can be mounted here (root can): {done.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
