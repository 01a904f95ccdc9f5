"""Kept: the lake of before an upgrade and the small files of the data directory, and how they are put back.

`lake.before` lies beside a lake of the name `lake`. Data files, which are written once under names of their
own, are links to those of the lake and take no room; everything else, which is replaced or written again, is
a copy. Nothing that goes on with the lake changes what is kept. What was there when it is put back is kept,
too: the lake as `lake.after`, files in `upgrade/after`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from stat import S_ISLNK

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.disk import BLOCK
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.services.folders import Folders

ROOM_BYTES = 1 << 30
"""So much has to be free beside what is copied: the new version writes, too."""
_DELTA_LOG = "_delta_log"
_BY_BACKUP = "take a backup (`twinlake backup DIR`), `twinlake down`, `twinlake up` with this version"
_SINGLE = ("services.json", "twinlake.toml", "gallery.json", "accept-unconfined-sql")
_OF_RUN = ("history",)
_NOT_OF_RUN = ("wanted.json",)
_PASSING = (".lock", ".pid", ".new", ".tmp")


@dataclass(frozen=True, kw_only=True)
class Lakes:
    """Where a lake is and was, in one folder."""

    lake: Path

    @classmethod
    def of(cls, lake: Path) -> Lakes:
        """Where the name of the lake is a link, beside what it leads to."""
        return cls(lake=lake.resolve())

    @property
    def before(self) -> Path:
        return self._named("before")

    @property
    def making(self) -> Path:
        """`before` until it is whole."""
        return self._named("before.making")

    @property
    def after(self) -> Path:
        return self._named("after")

    @property
    def going(self) -> Path:
        """What is being deleted, which nobody may take for a whole lake."""
        return self._named("going")

    def _named(self, suffix: str) -> Path:
        return self.lake.with_name(f"{self.lake.name}.{suffix}")


@dataclass(frozen=True, kw_only=True)
class Made:
    """Of a lake that is kept, how much of it takes room of its own."""

    linked: int = 0
    copied: int = 0
    copied_bytes: int = 0


def is_never_changed(path: str) -> bool:
    """Whether the file of this path from the lake is written once: a data file of a Delta table. Its log, and
    all else, has files that are replaced, or that Spark writes again in place."""
    *folders, name = path.split("/")
    return name.endswith(".parquet") and _DELTA_LOG not in folders and not name.startswith((".", "_"))


def refuse_unkeepable(lakes: Lakes, folders: Folders) -> None:
    """UsageError or TwinlakeError where keeping it would fail, before anything is changed."""
    if not lakes.lake.is_dir():
        raise UsageError(
            f"there is no lake at {lakes.lake}", "there is nothing to upgrade", "start with `twinlake up`"
        )
    if there := [place for place in (lakes.before, lakes.after) if place.exists()]:
        raise _kept_already(there[0])
    if not os.access(lakes.lake.parent, os.W_OK):
        raise UsageError(
            f"{lakes.lake.parent} cannot be written", "the lake of before is kept there, beside the lake",
            "fix its rights",
        )  # fmt: skip
    device, bytes_ = lakes.lake.parent.stat().st_dev, 0
    for path, is_folder in _tree(lakes.lake):
        about = (lakes.lake / path).lstat()
        if is_folder and about.st_dev != device:
            raise UsageError(
                f"{lakes.lake / path} is on a disk of its own",
                f"what was before is kept in {lakes.lake.parent} by links, which do not reach other disks",
                _BY_BACKUP,
            )
        if S_ISLNK(about.st_mode) and (lakes.lake / path).is_dir():
            raise UsageError(
                f"{lakes.lake / path} is a link",
                f"nothing of {(lakes.lake / path).resolve()} would be kept, only the link", _BY_BACKUP,
            )  # fmt: skip
        if not is_folder and not is_never_changed(path):
            bytes_ += about.st_blocks * BLOCK
    of_home = sum((folders.home / path).lstat().st_blocks * BLOCK for path in _of_home(folders.home))
    for place, needed in ((lakes.lake.parent, bytes_), (folders.home, of_home)):
        if (free := shutil.disk_usage(place).free) < needed + ROOM_BYTES:
            raise TwinlakeError(
                f"the disk of {place} has too little room to keep what is there before the upgrade",
                f"{free:,} bytes are free; copies take {needed:,}, what is new {ROOM_BYTES:,} at most",
                "make room there; `twinlake status --disk` shows what could be let go",
            )


def keep(lakes: Lakes, folders: Folders) -> Made:
    """Keeps the lake and the small files, which nobody writes to now. Done again it begins again."""
    shutil.rmtree(lakes.making, ignore_errors=True)
    shutil.rmtree(lakes.before, ignore_errors=True)  # the new version has not run: it is the lake of now
    for place in (_before(folders), _after(folders)):  # an earlier one may have been killed as it forgot them
        shutil.rmtree(place, ignore_errors=True)
    folders.upgrade.mkdir(mode=0o700, parents=True, exist_ok=True)  # secrets are in it
    for path in sorted(_of_home(folders.home)):
        _copy(folders.home / path, _before(folders) / path)
    lakes.making.mkdir(mode=0o700)
    linked = copied = bytes_ = 0
    modes = list[tuple[Path, int]]()
    for path, is_folder in _tree(lakes.lake):
        source, target = lakes.lake / path, lakes.making / path
        if is_folder:
            if path:
                target.mkdir(mode=0o700)
                _own(source, target)
                modes.append((target, source.stat().st_mode & 0o7777))
        elif is_never_changed(path) and not source.is_symlink():
            os.link(source, target)
            linked += 1
        else:
            _copy(source, target)
            copied, bytes_ = copied + 1, bytes_ + target.lstat().st_size
    for folder, mode in reversed(modes):
        folder.chmod(mode)
    os.sync()  # else the name could outlive a power failure, and not all that it names
    breakpoints.at(Point.UPGRADE_KEEPING)
    lakes.making.rename(lakes.before)
    breakpoints.at(Point.UPGRADE_KEPT)
    return Made(linked=linked, copied=copied, copied_bytes=bytes_)


def forget_kept(lakes: Lakes, folders: Folders) -> None:
    """Of a lake that the new version never had: it is as it was."""
    shutil.rmtree(lakes.making, ignore_errors=True)
    shutil.rmtree(lakes.before, ignore_errors=True)
    shutil.rmtree(_before(folders), ignore_errors=True)


def refuse_gone(lakes: Lakes) -> None:
    """UsageError where there is nothing to put back: what ran before would get the lake of now."""
    if not lakes.before.is_dir():
        raise UsageError(
            f"{lakes.before} is gone", "it was the lake of before the upgrade; nothing was changed",
            "put it back, or stay with this version (`twinlake upgrade` where it was not finished, else "
            "`twinlake upgrade --done`); a backup of before can be restored into another data directory",
        )  # fmt: skip


def put_back(lakes: Lakes, folders: Folders) -> None:
    """The lake of before and its files are there again, those of now are kept. Killed, it goes on."""
    if lakes.before.exists():
        if lakes.lake.exists():
            if lakes.after.exists():
                raise _kept_already(lakes.after)
            lakes.before.chmod(lakes.lake.stat().st_mode & 0o7777)
            _own(lakes.lake, lakes.before)
            lakes.lake.rename(lakes.after)
            breakpoints.at(Point.UPGRADE_MOVED)
            lakes.after.chmod(0o700)
        lakes.before.rename(lakes.lake)
        breakpoints.at(Point.UPGRADE_RETURNED)
    before, after = _before(folders), _after(folders)
    for path in sorted(_of_home(folders.home)):
        if not (after / path).exists():  # else it is one of before that is back already
            _replace(after / path, folders.home / path)
        if not (before / path).exists():
            (folders.home / path).unlink()
    os.sync()
    for path, is_folder in _tree(before):
        if not is_folder:
            _replace(folders.home / path, before / path)
    os.sync()


def digests(folders: Folders) -> dict[str, str]:
    """Of the files of users, secrets and settings: to say later which of them were changed."""
    return {
        name: sha256(file.read_bytes()).hexdigest()
        for name in ("access/users", "services.json", "twinlake.toml")
        if (file := folders.home / name).is_file()
    }


def freed_bytes(places: Iterable[Path]) -> int:
    """What deleting these lakes frees: a file that the lake has, too, frees nothing."""
    names, files = dict[tuple[int, int], int](), dict[tuple[int, int], os.stat_result]()
    total = 0
    for place in places:
        for path, is_folder in _tree(place):
            about = (place / path).lstat()
            if is_folder:
                total += about.st_blocks * BLOCK
                continue
            key = (about.st_dev, about.st_ino)
            names[key], files[key] = names.get(key, 0) + 1, about
    return total + sum(one.st_blocks * BLOCK for key, one in files.items() if names[key] >= one.st_nlink)


def kept_lakes(lakes: Lakes) -> list[Path]:
    """What is there of before and after."""
    return [one for one in (lakes.before, lakes.after, lakes.making, lakes.going) if one.exists()]


def let_go(lakes: Lakes) -> None:
    """Deletes all of them; each is renamed first, so that half of one is nothing to go back to. TwinlakeError
    where something stays."""
    _delete(lakes.going)
    for place in (lakes.before, lakes.after, lakes.making):
        if place.exists():
            place.rename(lakes.going)
            breakpoints.at(Point.UPGRADE_GOING)
            _delete(lakes.going)


def _delete(folder: Path) -> None:
    try:
        if folder.exists():
            shutil.rmtree(folder)
    except OSError as error:
        raise TwinlakeError(
            f"{folder} cannot be deleted whole", f"{error.filename or folder}: {error.strerror or error}",
            "see that this user may delete it, then `twinlake upgrade --done` again",
        ) from error  # fmt: skip


def _kept_already(place: Path) -> UsageError:
    return UsageError(
        "an earlier upgrade has not been ended", f"{place} is kept of it",
        "`twinlake upgrade --done` lets it go, and shows first what that frees",
    )  # fmt: skip


def _of_home(home: Path) -> Iterator[str]:
    """The small files of a data directory that a new version may change, by their paths. Neither Kafka's data
    nor the registry's: they have the records that it takes."""
    yield from (name for name in _SINGLE if (home / name).is_file())
    for folder in ("access", "airflow", "run"):
        for path, is_folder in _tree(home / folder):
            name = f"{folder}/{path}"
            if is_folder or name.endswith(_PASSING) or not (home / name).is_file():
                continue
            first, *below = path.split("/")
            if folder == "airflow" and below and first == "logs":
                continue
            if folder == "run" and ((below and first not in _OF_RUN) or first in _NOT_OF_RUN):
                continue
            yield name


def _tree(folder: Path) -> Iterator[tuple[str, bool]]:
    """Everything below by its path, whether it is a folder; the folder itself, as "", first."""
    if not folder.is_dir():
        return
    left = [""]
    while left:
        at = left.pop()
        yield at, True
        with os.scandir(folder / at) as found:
            for one in sorted(found, key=lambda one: one.name):
                path = f"{at}/{one.name}".lstrip("/")
                if one.is_dir(follow_symlinks=False):
                    left.append(path)
                else:
                    yield path, False


def _copy(file: Path, to: Path) -> None:
    """With its mode, owner and times; a link as a link. What is neither, as a socket, is left out."""
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file.is_symlink() or file.is_file():
        with suppress(FileNotFoundError):
            shutil.copy2(file, to, follow_symlinks=False)
            _own(file, to)


def _own(of: Path, to: Path) -> None:
    """By whom the other is owned; only root may give anything away."""
    if os.geteuid() == 0:
        about = of.lstat()
        os.chown(to, about.st_uid, about.st_gid, follow_symlinks=False)


def _replace(file: Path, by: Path) -> None:
    """Whole, or not at all."""
    beside = file.with_name(f".{file.name}.tmp")
    beside.unlink(missing_ok=True)
    _copy(by, beside)
    beside.replace(file)


def _before(folders: Folders) -> Path:
    return folders.upgrade / "before"


def _after(folders: Folders) -> Path:
    return folders.upgrade / "after"
