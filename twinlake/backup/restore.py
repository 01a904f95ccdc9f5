"""Restore: a data directory made of a backup, which `twinlake up` starts like any other."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from stat import S_IRWXO

from twinlake.backup.archive import Archive, Backup, File
from twinlake.backup.copying import copied, counting, each
from twinlake.backup.snapshot import LAKE, below
from twinlake.base.errors import DamagedError, UsageError
from twinlake.base.files import PRIVATE
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.lake import formats
from twinlake.lake.delta import checkpoint_files
from twinlake.lake.delta.delta import LOG_FOLDER
from twinlake.lake.storage import store

UNFINISHED = "lake.restoring"
"""What a lake is called until it is whole; nothing starts on it."""


def restore(archive: Archive, backup: Backup, home: Path, lake: Location, run: Run) -> None:
    """Writes settings and users into `home`, which is missing or empty, and the lake where `lake` says, which
    is nothing yet. UsageError otherwise; FormatError for a lake that this version does not know; DamagedError
    for a file that is not as it was written: then there is no lake, and the folder is to be removed."""
    refuse_used(home, lake)
    formats.refuse_newer(archive.folder, formats.Known(id=backup.lake_id, format=backup.lake_format))
    _refuse_mounted(lake)
    home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    _close(home)
    unfinished, moved = lake.with_name(UNFINISHED), counting(run, backup.bytes, "copying")

    def put(file: File) -> None:
        part, _, rest = file.path.partition("/")
        target = below(unfinished, rest) if part == LAKE else below(home, file.path)
        _refuse_outside(file, unfinished, home, target)
        try:
            found = copied(archive.place(file), target, moved)
        except FileNotFoundError as error:
            archive.refuse_removed(backup)
            raise _damaged(archive.place(file)) from error
        if found != (file.bytes, file.sha256):
            raise _damaged(archive.place(file))
        if target.parent.name == LOG_FOLDER and checkpoint_files.NAME.fullmatch(target.name):
            checkpoint_files.sum_up(target)

    # settings first: they say where the lake is, of one that is interrupted, too
    files = sorted(backup.files, key=lambda one: (one.path.startswith(f"{LAKE}/"), one.path))
    each(put, files, lambda one: one.bytes, lake)
    store.rename(unfinished, lake.name)


def refuse_unfinished(lake: Location) -> None:
    """UsageError where a restore was interrupted: an empty lake would begin beside what is there of it."""
    if store.names(lake.with_name(UNFINISHED)):
        raise UsageError(
            "a restore into this data directory was interrupted",
            f"{lake.with_name(UNFINISHED)} is not whole",
            "remove the data directory, and that folder, and restore again",
        )  # fmt: skip


def _close(home: Path) -> None:
    """Where other users may enter it, as `twinlake up` does: hashes of passwords come into it."""
    about = home.stat()
    if about.st_mode & S_IRWXO and about.st_uid == os.geteuid():
        home.chmod(PRIVATE)


def refuse_used(home: Path, lake: Location) -> None:
    """UsageError for a data directory that has something in it, and for a lake that there is."""
    if home.exists() and (names := sorted(one.name for one in home.iterdir())):
        why = f"it holds {', '.join(names[:5])}"
        if UNFINISHED in names:
            why = "a restore into it was interrupted"
        remedy = "name an empty folder with --home, or remove this one if nothing in it is needed"
        raise UsageError(f"{home} is not empty", why, remedy)
    if store.names(lake) or store.names(lake.with_name(UNFINISHED)):
        raise UsageError(
            f"there is a lake at {lake} already", "the settings of the backup name this place",
            "remove it if nothing in it is needed",
        )  # fmt: skip


def _refuse_mounted(lake: Location) -> None:
    """A lake gets its name once it is whole, and a mount point keeps its own."""
    if isinstance(lake, Path) and lake.is_mount():
        raise UsageError(
            f"{lake} is a mount point",
            "a lake is restored beside its place, and gets its name once it is whole",
            "mount that disk one folder higher, or name a folder below it in [lake] of twinlake.toml",
        )  # fmt: skip


def _refuse_outside(file: File, lake: Location, home: Path, target: Location) -> None:
    """An archive is a folder that others may have written to."""
    parts = file.path.split("/")
    if ".." in parts or "" in parts or "." in parts or not str(target).startswith((f"{lake}/", f"{home}/")):
        raise UsageError(f"{file.path!r} is no path in a data directory", "the backup was changed", "")


def _damaged(place: Location) -> DamagedError:
    return DamagedError(
        f"{place} is not what was written there", "its length or its SHA-256 is another",
        "`twinlake backup verify` names all such files; restore an earlier backup (--id) into another folder",
    )  # fmt: skip


def settings_of(archive: Archive, backup: Backup) -> str | None:
    """The `twinlake.toml` of the data directory as it was; None where it had none."""
    named = next((one for one in backup.files if one.path == "twinlake.toml"), None)
    if named is None:
        return None
    content = store.read(archive.place(named))
    if sha256(content).hexdigest() != named.sha256:
        raise _damaged(archive.place(named))
    return content.decode()
