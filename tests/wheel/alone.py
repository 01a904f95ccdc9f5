"""Becomes a program for which this machine is read-only but for one folder, and other folders are empty.

Runs in a mount namespace of its own (`unshare --mount`, for others than root with `--map-root-user`), by any
Python. /tmp is a folder that is named, too, so that what is left in it can be seen.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path

_RDONLY, _REMOUNT, _BIND, _REC = 1, 32, 4096, 16384
_LOCKED = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048,
           os.ST_RELATIME: 1 << 21}  # fmt: skip
"""What a user's root may not take away from a mount."""
_KERNEL = tuple(map(Path, ("/proc", "/sys", "/dev")))
TMP = Path("/tmp")
_libc = ctypes.CDLL(None, use_errno=True)


def enter(write: Path, tmp: Path, hidden: Sequence[Path]) -> None:
    """Changes what this process sees, and all that it starts."""
    held = {path: os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (write, tmp)}
    _bind(held[tmp], TMP)
    write.mkdir(parents=True, exist_ok=True)  # it may be in the /tmp of before
    _bind(held[write], write)
    for folder in hidden:
        _mount("tmpfs", folder, "tmpfs", _RDONLY, "size=1m")
    for point in _mount_points():
        if point not in (write, TMP) and not any(point.is_relative_to(one) for one in _KERNEL):
            _mount(None, point, None, _BIND | _REMOUNT | _RDONLY | _locked(point), None)
    for descriptor in held.values():
        os.close(descriptor)


def _bind(descriptor: int, target: Path) -> None:
    _mount(f"/proc/self/fd/{descriptor}", target, None, _BIND | _REC, None)


def _mount_points() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = {Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), line.split()[4])) for line in lines}
    return [point for point in sorted(points) if point.exists()]  # the others lie under another one


def _locked(path: Path) -> int:
    found = os.statvfs(path).f_flag
    return sum(flag for shown, flag in _LOCKED.items() if found & shown)


def _mount(source: str | None, target: Path, kind: str | None, flags: int, options: str | None) -> None:
    arguments = [text.encode() if text is not None else None for text in (source, str(target), kind)]
    if _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() if options else None):
        number = ctypes.get_errno()
        raise OSError(number, f"mounting {target}: {os.strerror(number)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--tmp", type=Path, required=True)
    parser.add_argument("--hide", type=Path, action="append", default=[])
    parser.add_argument("--within", type=Path, required=True, help="the folder to start in")
    parser.add_argument("program", nargs="+")
    given = parser.parse_args()
    enter(given.write, given.tmp, given.hide)
    os.chdir(given.within)
    os.execvp(given.program[0], given.program)
