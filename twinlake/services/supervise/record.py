"""What is kept on disk about the parts: which are wanted, one record and one log of each.

The records make a part recognisable after the supervisor, or the whole command line, has been killed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.base.files import replace_file
from twinlake.config.sections import OF_HOME
from twinlake.config.settings import Settings
from twinlake.services.folders import Folders, folders_of
from twinlake.services.supervise.process import Identity

_LOG_KEEP_BYTES = 4 << 20
_LOG_LONGEST_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Record:
    """What the supervisor knows about one part."""

    part: str
    state: str = "waiting"
    """waiting, preparing, starting, ready, failed (about to be tried again)."""
    identity: Identity | None = None
    since: str = ""
    restarts: int = 0
    failures: int = 0
    """Ends in a row without having been ready."""
    note: str = ""
    error: dict[str, str] | None = None

    @property
    def alive(self) -> bool:
        return self.identity is not None and self.identity.alive

    def become(self, state: str, **changes: Any) -> Record:
        return replace(self, state=state, since=datetime.now(UTC).isoformat(timespec="seconds"), **changes)


def save(folders: Folders, record: Record) -> None:
    """Writes the record as a whole."""
    replace_file(folders.records / f"{record.part}.json", json.dumps(asdict(record), indent=2))


def load(folders: Folders, part: str) -> Record:
    """The record of the part; an empty one when it was never started."""
    try:
        found = json.loads((folders.records / f"{part}.json").read_text())
        identity = found.pop("identity")
        return Record(identity=Identity(**identity) if identity else None, **found)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):  # torn, or of another shape
        return Record(part=part, state="stopped")


def of(settings: Settings, part: str) -> Record:
    """The record of a part of this home."""
    return load(folders_of(settings), part)


def forget(folders: Folders, part: str) -> None:
    (folders.records / f"{part}.json").unlink(missing_ok=True)


def wanted(folders: Folders) -> set[str]:
    """The parts that should be running."""
    try:
        found = json.loads((folders.run / "wanted.json").read_text())
    except (FileNotFoundError, ValueError):
        return set()
    return {part for part in found if isinstance(part, str)} if isinstance(found, list) else set()


def want(folders: Folders, parts: Iterable[str]) -> None:
    """Says which parts should be running from now on; that it is none can be said on a full disk, too."""
    file, names = folders.run / "wanted.json", sorted(parts)
    if names:
        replace_file(file, json.dumps(names, indent=2))
    else:
        file.unlink(missing_ok=True)


def rotate(log: Path) -> None:
    """Keeps one older log beside the current one; called before a part starts."""
    if log.exists() and log.stat().st_size > _LOG_KEEP_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def shorten(log: Path) -> None:
    """The same for a log that a process is writing: what it holds is copied, and its file goes on empty.

    A process that appends (O_APPEND) goes on at the beginning. A line written in the moment between the two
    is lost; there is no other way with a file that somebody else holds open. Without room there is no copy.
    """
    if log.exists() and log.stat().st_size > _LOG_LONGEST_BYTES:
        older = log.with_name(log.name + ".1")
        older.unlink(missing_ok=True)  # makes room for the copy
        try:
            shutil.copyfile(log, older)
        except OSError:  # a full disk needs the room more than anybody the log
            older.unlink(missing_ok=True)
        os.truncate(log, 0)


def tail(log: Path, lines: int) -> list[str]:
    """The last lines of a log."""
    try:
        with open(log, "rb") as file:
            size, last = log.stat().st_size, 64 * 1024
            while True:
                file.seek(max(0, size - last))
                found = file.read().decode(errors="replace").splitlines()
                if last >= size or len(found) > lines:  # the first one may be torn
                    return found[max(0, len(found) - lines) :]
                last *= 8
    except FileNotFoundError:
        return []


def last_words(log: Path) -> dict[str, str] | None:
    """What a part said of its own end, as the last critical line of its log."""
    for line in reversed(tail(log, 200)):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("level") == "critical":
            return TwinlakeError(entry["event"], entry.get("why", ""), entry.get("remedy", "")).to_json()
    return None


def is_home(folders: Folders) -> bool:
    """Whether Twinlake has ever been started there: other people's folders are called `logs`, too."""
    own = (folders.home / "services.json", folders.run / "ports.json", folders.home / "lake" / "lake.json")
    return any(file.is_file() for file in own)


def remove_state(folders: Folders) -> None:
    """Removes what Twinlake made in its home, and the home itself when nothing else is in it."""
    for name in OF_HOME:
        path = folders.home / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    if folders.home.is_dir() and not any(folders.home.iterdir()):
        folders.home.rmdir()


def supervisor_alive(settings: Settings) -> bool:
    """Whether somebody starts again what dies; containers have their own."""
    return of(settings, "supervisor").alive


def supervisor_error(settings: Settings) -> TwinlakeError | None:
    """What is wrong where the supervisor has ended; containers have none."""
    if supervisor_alive(settings) or folders_of(settings).containers.exists():
        return None
    return TwinlakeError(
        "the supervisor has ended", "a service that dies now is not started again",
        "`twinlake up` starts it again, and it goes on with those that still run; "
        "`twinlake logs supervisor` says what it did last",
    )  # fmt: skip


def check_sql_server_is_supervised(settings: Settings) -> None:
    """UnreachableError where the SQL server does not answer and nobody will start it."""
    if error := supervisor_error(settings):
        raise UnreachableError("the SQL server does not answer", f"{error.what}: {error.why}", error.remedy)
