"""What `twinlake status` says besides services and lake: backups, who may sign in, what was begun and not
finished, and room on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinlake.alarms.conditions import of_backups
from twinlake.base.files import full_disk
from twinlake.base.times import utc_now
from twinlake.cli.output import say
from twinlake.config.settings import Settings
from twinlake.services.folders import folders_of
from twinlake.services.problems import Problem
from twinlake.services.rotation import unfinished_error
from twinlake.services.sql import nobody_let_in
from twinlake.services.upgrade import state as upgrade

_SIGNED_IN_TO = ("sql", "console")


def care(
    settings: Settings, parts: list[dict[str, Any]], lake: Mapping[str, Any], found: list[Problem]
) -> list[Problem]:
    """What else somebody has to look at; `found` is known already."""
    made = []
    if half_rotated := unfinished_error(folders_of(settings)):
        made.append(Problem("rotation", None, "secrets", half_rotated.to_json()))
    if half_upgraded := upgrade.error_seen(folders_of(settings)):
        made.append(Problem("upgrade", None, "upgrade", half_upgraded.to_json()))
    if backup := backup_told(settings, lake):
        made += [Problem("backup", None, "backup", backup["error"])] if backup["error"] else []
    made += _nobody_let_in(settings, parts)
    return [*made, *_without_room(settings, [*found, *made])]


def backup_told(settings: Settings, lake: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the lake server says of backups, and as `error` what the alarm says: that the last one failed, or
    that the newest is too old. None where no folder is set, or the server does not answer."""
    if not (backup := lake.get("backup")):
        return None
    wrong = of_backups(backup, settings.values.alarms, utc_now())
    said = {"what": wrong.what, "why": wrong.why, "remedy": wrong.remedy} if wrong else None
    return {**backup, "error": said}


def show_backup(settings: Settings, lake: Mapping[str, Any]) -> None:
    """A line, where there is something to say."""
    if not (backup := backup_told(settings, lake)):
        return
    has = f"the newest is of {backup['newest']}" if backup["newest"] else "there is none yet"
    if backup["failed"]:
        state = ("failed", "red")
    elif backup["error"]:
        state = ("late", "red")
    else:
        state = ("in time", "green")
    say("backup: ", state, f", {has}")


def _nobody_let_in(settings: Settings, parts: list[dict[str, Any]]) -> list[Problem]:
    if not any(part["part"] in _SIGNED_IN_TO for part in parts):
        return []
    error = nobody_let_in(folders_of(settings))
    return [Problem("users", None, "users", error.to_json())] if error else []


def _without_room(settings: Settings, found: list[Problem]) -> list[Problem]:
    """A full disk: what has no room may be unable to write down that it has none."""
    lake = settings.lake if isinstance(settings.lake, Path) else settings.home
    full = full_disk(settings.home, lake)
    if full is None or any(one.error["what"] == full.what for one in found):
        return []
    return [Problem("disk", None, "disk", full.to_json())]
