"""Disk: what files and folders take there, as `du` counts: whole blocks, a file of several names once."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from twinlake.base.files import nearest

BLOCK = 512
"""What `st_blocks` counts in, whatever the file system's own blocks are."""


class Entry(NamedTuple):
    """A file or folder by its path from where the walk began, "" for that itself."""

    path: str
    bytes: int
    modified_s: float
    is_folder: bool = False


@dataclass
class Walk:
    """One count over several folders: a file that has a name in two of them is in the first alone.

    No link is followed, and other disks that are mounted below are counted, too. What vanishes meanwhile is
    left out; `unreadable` says why for each path that this user may not read.
    """

    unreadable: dict[str, str] = field(default_factory=dict)
    _known: set[tuple[int, int]] = field(default_factory=set)

    def entries(self, folder: Path, without: Iterable[Path] = ()) -> Iterator[Entry]:
        """Of the folder, itself among them; nothing where there is none, or of the folders `without`."""
        left, skipped = [("", folder)], {str(one) for one in without}
        while left:
            name, place = left.pop()
            if str(place) in skipped:
                continue
            try:
                about = place.stat() if name == "" else place.lstat()  # the first may itself be a link
                is_folder = stat.S_ISDIR(about.st_mode)
                if (entry := self._entry(name, about, is_folder)) is not None:
                    yield entry
                if is_folder:
                    with os.scandir(place) as found:
                        left += [(f"{name}/{one.name}".lstrip("/"), Path(one.path)) for one in found]
            except FileNotFoundError:
                continue
            except OSError as error:
                self.unreadable[str(place)] = error.strerror or str(error)

    def _entry(self, name: str, about: os.stat_result, is_folder: bool) -> Entry | None:
        if about.st_nlink > 1 and not is_folder:
            if (about.st_dev, about.st_ino) in self._known:
                return None
            self._known.add((about.st_dev, about.st_ino))
        return Entry(name, about.st_blocks * BLOCK, about.st_mtime, is_folder)


def room(folder: Path) -> tuple[int, int]:
    """Bytes that are free for this user on the folder's disk, and of the disk in all; of the nearest folder
    above where it is not there."""
    found = shutil.disk_usage(nearest(folder))
    return found.free, found.total
