"""Breakpoints: the named places at which a test has the lake server stop, to kill it exactly there.

They are honoured only where `python -m twinlake.server --breakpoints FOLDER` names one, as nothing does that
starts a platform; elsewhere a point is one comparison. A test asks for a point by a file of its name, which
may name the one table that is meant. The first thread that gets there renames the file to `<point>.reached`,
and goes no further before that is gone.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from twinlake.base.waiting import wait_for


class Point(StrEnum):
    BEFORE_FORMAT = "before-format"
    AFTER_FORMAT = "after-format"
    BEFORE_LOG_FILES = "before-log-files"
    AFTER_LOG_FILES = "after-log-files"
    BEFORE_LOG_COMMIT = "before-log-commit"
    AFTER_LOG_COMMIT = "after-log-commit"
    BEFORE_PARTIAL = "before-partial"
    BEFORE_STEP_COMMIT = "before-step-commit"
    BEFORE_REPLACE = "before-replace"
    AFTER_REPLACE = "after-replace"
    BEFORE_RETENTION = "before-retention"
    AFTER_RETENTION = "after-retention"
    BEFORE_RELEASE = "before-release"
    AFTER_RELEASE = "after-release"
    BEFORE_CHANGES = "before-changes"
    AFTER_CHANGES = "after-changes"
    BEFORE_PUBLISH = "before-publish"
    AFTER_PUBLISH = "after-publish"
    BEFORE_POSTED = "before-posted"
    UPGRADE_BEGUN = "upgrade-begun"
    UPGRADE_STOPPED = "upgrade-stopped"
    UPGRADE_KEEPING = "upgrade-keeping"
    UPGRADE_KEPT = "upgrade-kept"
    UPGRADE_STARTING = "upgrade-starting"
    UPGRADE_STARTED = "upgrade-started"
    UPGRADE_CHECKED = "upgrade-checked"
    UPGRADE_RETURNING = "upgrade-returning"
    UPGRADE_MOVED = "upgrade-moved"
    UPGRADE_RETURNED = "upgrade-returned"
    UPGRADE_RESTARTING = "upgrade-restarting"
    UPGRADE_GOING = "upgrade-going"


_folder: Path | None = None


def honour(folder: Path) -> None:
    """From now on stop in this process wherever a file of the folder says so."""
    global _folder
    folder.mkdir(parents=True, exist_ok=True)
    _folder = folder


def at(point: Point, table: str = "") -> None:
    """Stop here while a test asks for it."""
    if _folder is not None:
        _stop(_folder, point, table)


def honoured() -> bool:
    return _folder is not None


def _stop(folder: Path, point: Point, table: str) -> None:
    asked, reached = folder / point, folder / f"{point}.reached"
    try:
        if asked.read_text() not in ("", table):
            return
        asked.rename(reached)
    except FileNotFoundError:
        return
    wait_for(f"a test to end {point}", lambda: None if reached.exists() else True, None, every_s=0.02)
