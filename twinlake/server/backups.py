"""Backups of a running lake: the kind of job that takes one, and a watch of the newest and of a failure.

They go into the folder that the settings name, which nobody can name here. It is on another disk, which may
hang: a thread of its own looks there, and what is asked is answered from memory.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from twinlake.backup.archive import Archive, Backup
from twinlake.backup.take import Taken, take_and_keep
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.files import replace_file
from twinlake.base.job import Job, Run
from twinlake.base.location import Location
from twinlake.base.times import parse_moment
from twinlake.config.settings import Settings
from twinlake.lake.catalog import release_log
from twinlake.lake.open_lake import OpenLake
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import BackupParams

journal = structlog.get_logger(__name__)

LOOK_S = 30.0
KIND = "backup"


def do_backup(lake: OpenLake, params: BackupParams, run: Run) -> Taken:
    backups = lake.settings.values.backup
    if backups.place is None:
        raise UsageError(
            "no folder of backups is set", "`folder` in [backup] of twinlake.toml named none when the lake "
            "server was started", "set it, then `twinlake up`; or take one into any folder: "
            "`twinlake backup DIR`",
        )  # fmt: skip
    remembered = _remembered(lake.settings)
    if remembered is not None and not Archive(backups.place).ids():
        raise _gone(backups.place, remembered)
    taken = take_and_keep(lake.settings, backups.place, backups.keep, run, lake.clock)
    replace_file(_memory(lake.settings), json.dumps([str(backups.place), taken.backup.made_at]))
    return taken


def _memory(settings: Settings) -> Path:
    """Where the last backup of the job went: a disk that is not mounted looks like a folder that is empty."""
    return settings.home / "run" / "backups.json"


def _remembered(settings: Settings) -> str | None:
    """When the last backup was made, if it went into the folder of now."""
    try:
        folder, made_at = json.loads(_memory(settings).read_text())
    except (OSError, ValueError):
        return None
    return str(made_at) if folder == str(settings.values.backup.place) else None


def _gone(place: Location, made_at: str) -> TwinlakeError:
    return TwinlakeError(
        f"the folder of backups {place} has none any more", f"the newest was of {made_at}",
        f"see that its disk is there, bring back what was in it, or begin again: `twinlake backup {place}`",
    )  # fmt: skip


KINDS = {KIND: JobKind(params=BackupParams, handler=do_backup)}


@dataclass(frozen=True, kw_only=True)
class BackupState:
    """Times are RFC 3339, UTC. `newest` is None where there is no backup; `since` is then what its age is
    counted from, the first release. `failed` is what is wrong with the folder, or why the last job failed."""

    newest: str | None
    since: str | None
    failed: dict[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return {"newest": self.newest, "since": self.since, "failed": self.failed}

    @property
    def counted_from(self) -> str | None:
        return self.newest or self.since


class BackupWatch:
    """`jobs` are those of before."""

    def __init__(self, settings: Settings, lake_id: str, jobs: Iterable[Job]) -> None:
        self._settings, self._lake_id = settings, lake_id
        self._place = settings.values.backup.place
        ended = (job for job in jobs if job.kind == KIND and job.ended)
        self._last: Job | None = max(ended, key=_ended, default=None)
        self._newest: Backup | None = None
        self._since: str | None = None
        self._error: TwinlakeError | None = None
        self._due, self._ending = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="backups", daemon=True)

    def start(self) -> None:
        """Looks from now on, where a folder is set."""
        if self._place is not None:
            self._thread.start()

    def stop(self) -> None:
        self._ending = True
        self._due.set()

    def note(self, job: Job) -> None:
        """A job has ended; what it has made is looked for at once."""
        if job.kind == KIND and job.ended:
            self._last = job
            self._due.set()

    def state(self) -> BackupState | None:
        """From memory; None where no folder is set."""
        if self._place is None:
            return None
        newest = self._newest
        return BackupState(
            newest=newest.made_at if newest else None, since=self._since, failed=self._failure(newest)
        )  # fmt: skip

    def look(self) -> None:
        """Asks the disk of the folder, and that of the lake."""
        assert self._place is not None
        archive = Archive(self._place)
        try:
            ids = archive.ids() if archive.is_begun(self._lake_id) else []
            before = self._newest.made_at if self._newest else _remembered(self._settings)
            if not ids and before is not None:
                raise _gone(self._place, before)
            if ids and (self._newest is None or self._newest.id != ids[0]):
                self._newest = archive.load(ids[0])
            self._error = None
        except TwinlakeError as error:
            self._error = error
        except OSError as error:
            self._error = TwinlakeError(
                f"the folder of backups {self._place} cannot be read", error.strerror or str(error),
                "see that its disk is there, and that this user may read it",
            )  # fmt: skip
        if self._newest is None and self._since is None:
            self._since = next((one.created_at for one in release_log.releases(self._settings.lake)), None)

    def _failure(self, newest: Backup | None) -> dict[str, Any] | None:
        if self._error:
            return self._error.to_json()
        last = self._last
        if last is None or last.state != "failed" or last.error is None:
            return None
        is_over = newest is not None and _ended(last) < parse_moment(newest.made_at)
        return None if is_over else last.error

    def _run(self) -> None:
        while not self._ending:
            try:
                self.look()
            except Exception:
                journal.exception("the folder of backups was not looked at")
            self._due.wait(LOOK_S)
            self._due.clear()


def _ended(job: Job) -> datetime:
    return parse_moment(job.ended_at or job.created_at)
