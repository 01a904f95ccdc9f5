"""Gives a process a view of its own, then a user without rights and a fence, then becomes the given program.

Runs as root, or as a user's root, inside a fresh private mount namespace (`unshare --mount`, `--user`). In it
$TWINLAKE_HOME is empty but for what is named: the lake, read-only, and the scratch folder. A folder on the
way that other users may not enter (such as /root) is covered by an empty one in which only the named trees
appear, at their own paths.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import re
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
_CLONE_NEWUSER = 0x10000000
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


def fence() -> None:
    """Puts this process into a user namespace of its own, in which everybody is who he was.

    Within one namespace Linux lets a process of the same user read the memory of another, and its files by
    /proc/PID/root: as `nobody` any daemon of that user, and the SQL server of another data directory.
    OSError where the system gives none.
    """
    maps = {name: Path(f"/proc/self/{name}").read_text() for name in ("uid_map", "gid_map")}
    inside, (heard, says) = f"/proc/{os.getpid()}", os.pipe()
    outside = os.fork()
    if not outside:  # who is within may write one line of a map, for himself
        try:
            os.close(says)
            if os.read(heard, 1):
                for name, lines in maps.items():
                    ranges = (line.split() for line in lines.splitlines())
                    same = (f"{first} {first} {count}\n" for first, _, count in ranges)
                    Path(inside, name).write_text("".join(same))
        except BaseException:
            os._exit(1)
        os._exit(0)
    number = ctypes.get_errno() if _libc.unshare(_CLONE_NEWUSER) else 0
    if not number:
        os.write(says, b".")
    os.close(says)
    if os.waitpid(outside, 0)[1]:
        number = errno.EPERM
    if number:
        raise OSError(number, os.strerror(number))


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
        try:
            fence()
        except OSError as error:
            others = f"other processes of user {given.become} can look into this one"
            print(f"{others}: it got no user namespace, {error}", file=sys.stderr)
        become = [f"--reuid={given.become}", f"--regid={given.become}", "--clear-groups"]
    rights = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    os.execvp("setpriv", ["setpriv", *become, *rights, *given.program])


if __name__ == "__main__":
    main()
