"""Archive: a folder with the backups of one lake. Whatever several of them have in common is there once.

    archive.json        format, and the id of the lake
    backups/<id>.json   of which files a backup consists, with length and SHA-256 of each
    data/<path>         data files by their path in the lake: one of that name never changes
    content/<sha256>    all others
    copied.jsonl        on a disk, while one is taken: the data files that it has copied

A backup is there when its JSON is: that is written last. What no backup names was left by one that was
interrupted; the next one takes what the notes of that say, overwrites the rest, and it goes when it is a day
old.
"""

from __future__ import annotations

import errno
import fcntl
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

from twinlake.base.errors import NotFoundError, UnreachableError, UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.base.waiting import holding, wait_for
from twinlake.lake.storage import store

FORMAT = 1
KEPT_UNNAMED_S = 86_400.0
"""What no backup names may belong to one that is being taken: it stays so long."""
_ID = re.compile(r"\d{8}T\d{6}Z(-\d+)?")
_ABOUT, _BACKUPS, _DATA, _CONTENT = "archive.json", "backups", "data", "content"
_PARTS = (_BACKUPS, _DATA, _CONTENT)
_LOCK = ".lock"
_NOTES = "copied.jsonl"
TURN_S = 600.0
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class File:
    """`path` is from the data directory; `sha256` is of its content, `bytes` long."""

    path: str
    bytes: int
    sha256: str
    is_data: bool
    """Whether it is a data file of a table, which never changes."""


@dataclass(frozen=True, kw_only=True)
class Backup:
    """`made_at` is RFC 3339, UTC; `logs` has by topic the newest batch, `release` is the live one, if any."""

    id: str
    made_at: str
    twinlake: str
    lake_id: str
    lake_format: int
    release: int | None
    logs: dict[str, int]
    files: tuple[File, ...]
    copied: int = 0
    """How many of their bytes were copied for this one; the others were there."""

    @cached_property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.files)

    def to_json(self) -> dict[str, object]:
        """Without its files."""
        found = asdict(self)
        return {**found, "files": len(self.files), "bytes": self.bytes}


@dataclass(frozen=True, kw_only=True)
class _About:
    lake_id: str
    format: int = field(default=FORMAT)


class Archive:
    def __init__(self, folder: Location) -> None:
        self.folder = folder

    def make_folder(self, lake_id: str) -> None:
        """Where it is missing; UsageError for one that keeps another lake's backups, or something else."""
        if not self.is_begun(lake_id) and isinstance(self.folder, Path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, lake_id: str) -> None:
        """Makes an empty folder one, `alone`; UsageError as above: another lake may have begun meanwhile."""
        if self.is_begun(lake_id):
            return
        for part in _PARTS:
            store.make_folder(self.folder / part)
            store.make_private(self.folder / part)  # hashes of passwords go there
        store.replace(self.folder / _ABOUT, json.dumps(asdict(_About(lake_id=lake_id))))

    def is_begun(self, lake_id: str) -> bool:
        """Whether it is one of this lake; False where it is empty, UsageError where it is anything else."""
        if (about := self._about()) is None:
            self._refuse_used()
            return False
        if about.lake_id != lake_id:
            why = f"they are of the lake {about.lake_id}, and this is {lake_id}"
            raise UsageError(f"{self.folder} has the backups of another lake", why, "name another folder")
        return True

    def _refuse_used(self) -> None:
        """A kill may have left empty parts of one."""
        names = sorted(one for one in store.names(self.folder) if not one.startswith(".") and one != _NOTES)
        if used := [one for one in names if one not in _PARTS or store.names(self.folder / one)]:
            why = f"it holds {', '.join(used[:3])}, and no archive.json"
            raise UsageError(f"{self.folder} is no folder of backups", why, "name an empty folder")

    @contextmanager
    def alone(self, run: Run) -> Iterator[None]:
        """While nobody else takes or removes a backup here: in a folder of a disk no other process, elsewhere
        none of this process. TimedOutError where that takes long; the kernel lets go with the process."""
        with holding(_ONE_AT_A_TIME, "another backup to end", TURN_S, run):
            if not isinstance(self.folder, Path):
                yield
                return
            with (self.folder / _LOCK).open("a") as file:
                wait_for("another backup to end", lambda: _locked(file), TURN_S, run, every_s=0.5)
                yield

    def refuse_none(self) -> None:
        """NotFoundError where there is no archive."""
        if self._about() is None:
            raise NotFoundError(
                f"there are no backups in {self.folder}", "it has no archive.json",
                "name the folder that `twinlake backup` was given",
            )  # fmt: skip

    def refuse_removed(self, backup: Backup) -> None:
        """NotFoundError for one that is no longer there: its files may be gone, too."""
        if backup.id not in self.ids():
            raise NotFoundError(
                f"backup {backup.id} was removed while it was read", "newer ones are kept",
                "take another one: `twinlake backup list`",
            )  # fmt: skip

    def ids(self) -> list[str]:
        """The newest first."""
        names = (name.removesuffix(".json") for name in store.names(self.folder / _BACKUPS))
        return sorted((name for name in names if _ID.fullmatch(name)), key=_order, reverse=True)

    def load(self, id: str | None = None) -> Backup:
        """The one of that id, or the newest; NotFoundError where there is none."""
        self.refuse_none()
        known = self.ids()
        if id is None and known:
            id = known[0]
        if id is None or id not in known:
            raise NotFoundError(
                f"there is no backup {id}" if id else f"{self.folder} holds no whole backup",
                f"there are {', '.join(known)}" if known else "none has been completed yet",
                "`twinlake backup list` shows them",
            )  # fmt: skip
        return store.read_as(self._file(id), Backup)

    def all(self) -> list[Backup]:
        """The newest first; NotFoundError where there is no archive."""
        self.refuse_none()
        return [store.read_as(self._file(id), Backup) for id in self.ids()]

    def save(self, backup: Backup) -> None:
        """Only when all of its files are there: it counts from here on."""
        store.replace(self._file(backup.id), json.dumps(asdict(backup)))
        if isinstance(self.folder, Path):
            (self.folder / _NOTES).unlink(missing_ok=True)

    def place(self, file: File) -> Location:
        """Where the file is kept."""
        return self._data(file.path) if file.is_data else self._content(file.sha256)

    def _data(self, path: str) -> Location:
        return self.folder / _DATA / path

    def _content(self, sha256: str) -> Location:
        return self.folder / _CONTENT / sha256[:2] / sha256

    def known(self) -> dict[str, File]:
        """The data files of the newest backup, by their paths: what that lacks does not come back. With those
        of one that was interrupted."""
        of_newest = {one.path: one for one in self.load().files if one.is_data} if self.ids() else {}
        return {**self._noted(), **of_newest}

    @contextmanager
    def noting(self) -> Iterator[Callable[[File], None]]:
        """To be called, `alone`, with each data file that was copied, for one after an interruption."""
        if not isinstance(self.folder, Path):
            yield lambda file: None
            return
        with (self.folder / _NOTES).open("a") as notes:

            def note(file: File) -> None:
                notes.write(json.dumps(asdict(file)) + "\n")
                notes.flush()

            yield note

    def _noted(self) -> dict[str, File]:
        if not isinstance(self.folder, Path):
            return {}
        try:
            lines = (self.folder / _NOTES).read_text().splitlines()
        except FileNotFoundError:
            return {}
        found = {}
        for line in lines:
            with suppress(ValueError, TypeError, OSError):  # torn by a kill or a full disk; it is gone
                file = File(**json.loads(line))
                if (self.folder / _DATA / file.path).stat().st_size == file.bytes:
                    found[file.path] = file
        return found

    def keep(self, many: int) -> list[str]:
        """Lets all but the newest ones go, with what none of the rest needs; which ones.

        To be called `alone`. A kill leaves whole backups only: first the lists go, the oldest before the
        others, then files that no list has; what a kill has left goes with the next call.
        """
        gone = self.ids()[many:]
        for id in reversed(gone):
            store.delete(self._file(id))
        self._tidy(self.all())
        return gone

    def _tidy(self, backups: Sequence[Backup]) -> None:
        needed = {str(self.place(one)) for backup in backups for one in backup.files}
        for place, modified_s in self._kept():
            if str(place) not in needed and time.time() - modified_s > KEPT_UNNAMED_S:
                store.delete(place)

    def _kept(self) -> Iterator[tuple[Location, float]]:
        for part in (_DATA, _CONTENT):
            for path, stat in store.tree(self.folder / part).items():
                yield self.folder / part / path, stat.modified_s

    def _about(self) -> _About | None:
        try:
            about = store.read_as(self.folder / _ABOUT, _About)
        except FileNotFoundError:
            return None
        if about.format > FORMAT:
            why = f"its format is {about.format}, this version knows {FORMAT}"
            raise UsageError(f"{self.folder} was made by a newer Twinlake", why, "install that one")
        return about

    def _file(self, id: str) -> Location:
        return self.folder / _BACKUPS / f"{id}.json"


@contextmanager
def telling_of_stores(*places: Location) -> Iterator[None]:
    """Raises UnreachableError instead of what a store raises that does not answer, or refuses, where one of
    these places is in one; and UsageError for what is no folder."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (NotADirectoryError, FileExistsError) as error:
        raise UsageError(
            f"{error.filename} is no folder of backups", error.strerror or str(error), "name another folder"
        ) from error
    except OSError as error:
        remote = [str(place) for place in places if not isinstance(place, Path)]
        if error.filename is not None or not remote:
            raise  # of a disk of this machine
        raise UnreachableError(
            f"{' or '.join(remote)} cannot be used", str(error)[:500],
            "start the store, and give this user the right to write, read, list and delete there",
        ) from error  # fmt: skip


def _locked(file: IO[str]) -> bool | None:
    """Whether the lock is had, or the disk knows none; None while another has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):
            raise
    return True


def _order(id: str) -> tuple[str, int]:
    at, _, number = id.partition("-")
    return at, int(number or 0)
