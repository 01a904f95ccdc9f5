"""Gives a process a file system view of its own, then a user without rights, then becomes the given program.

Runs as root, or as a user's root, inside a fresh private mount namespace (`unshare --mount`, `--user`). In it
$TWINLAKE_HOME is empty but for what is named: the lake, read-only, and the scratch folder. A folder on the
way that other users may not enter (such as /root) is covered by an empty one in which only the named trees
appear, at their own paths.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC = 1, 2, 4, 32, 4096, 16384
_LOCKED = {
    os.ST_NODEV: _MS_NODEV, os.ST_NOEXEC: 8, os.ST_NOATIME: 1024, os.ST_NODIRATIME: 2048,
    os.ST_RELATIME: 1 << 21,
}  # fmt: skip
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class Mount:
    """One step: an empty folder over `path`, or the tree that was there before, at the same path again."""

    path: Path
    kind: str
    """empty, read, write"""


def plan(
    home: Path, read: Sequence[Path], write: Sequence[Path], closed: Sequence[Path] | None = None
) -> tuple[Mount, ...]:
    """The mounts in their order, outer paths first; `closed` are the folders that others may not enter."""
    trees = [*read, *write]
    if closed is None:
        closed = [parent for tree in trees for parent in tree.parents if not _enterable(parent)]
    covers = {home, *(folder for folder in closed if not any(other in folder.parents for other in closed))}
    steps = [Mount(path=path, kind="empty") for path in covers]
    steps += [Mount(path=path, kind="read") for path in dict.fromkeys(read)]
    steps += [Mount(path=path, kind="write") for path in dict.fromkeys(write)]
    return tuple(sorted(steps, key=lambda step: (len(step.path.parts), step.kind != "empty")))


def enter(steps: Sequence[Mount]) -> None:
    """Makes the view; every tree is held open first, because a cover hides it."""
    held = {
        step.path: os.open(step.path, os.O_PATH | os.O_DIRECTORY) for step in steps if step.kind != "empty"
    }
    for step in steps:
        step.path.mkdir(parents=True, exist_ok=True)
        if step.kind == "empty":
            _mount("tmpfs", step.path, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
            continue
        _mount(f"/proc/self/fd/{held[step.path]}", step.path, None, _MS_BIND | _MS_REC, None)
        if step.kind == "read":
            for path in _mounts_in(step.path):  # a remount does not go down to what is mounted below
                flags = _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _locked(path)
                _mount(None, path, None, flags, None)
    for descriptor in held.values():
        os.close(descriptor)


def _mounts_in(folder: Path) -> list[Path]:
    """The mount at the folder, and those below it."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = {Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), line.split()[4])) for line in lines}
    below = (point for point in sorted(points) if point == folder or folder in point.parents)
    return [point for point in below if point.exists()]  # the others lie under a cover


def _locked(path: Path) -> int:
    """The flags of a mount that a user's root may not take away."""
    found = os.statvfs(path).f_flag
    return sum(flag for shown, flag in _LOCKED.items() if found & shown)


def _enterable(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)


def _mount(source: str | None, target: Path, kind: str | None, flags: int, options: str | None) -> None:
    arguments = [text.encode() if text is not None else None for text in (source, str(target), kind)]
    if _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() if options else None):
        number = ctypes.get_errno()
        raise OSError(number, f"mounting {target}: {os.strerror(number)}")


def main() -> None:
    """Makes the view where one is asked for, drops every right, becomes the program after `--`."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--home", type=Path, help="shown empty but for the trees that are named; none: no view"
    )
    parser.add_argument("--read", type=Path, action="append", default=[])
    parser.add_argument("--write", type=Path, action="append", default=[])
    parser.add_argument("--become", type=int, help="the user and group to run as; none: those of now")
    parser.add_argument("program", nargs="+")
    given = parser.parse_args()
    if given.home:
        enter(plan(given.home, given.read, given.write))
        os.chdir(given.write[0] if given.write else "/")
    become = []
    if given.become is not None:
        become = [f"--reuid={given.become}", f"--regid={given.become}", "--clear-groups"]
    rights = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    os.execvp("setpriv", ["setpriv", *become, *rights, *given.program])


if __name__ == "__main__":
    main()
