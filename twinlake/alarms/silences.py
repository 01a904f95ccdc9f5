"""What is silenced, with an end: `run/silences.json` of the data directory, which the command writes."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from twinlake.alarms.book import Silence
from twinlake.base.errors import NotFoundError, TwinlakeError
from twinlake.base.files import SECRET, alone, replace_file
from twinlake.base.times import parse_moment
from twinlake.config.settings import Settings


def load(settings: Settings) -> list[Silence]:
    """All that are kept; a file that cannot be read silences nothing."""
    try:
        found = [Silence(**one) for one in json.loads(_file(settings).read_text())]
        for one in found:
            parse_moment(one.until)
    except (FileNotFoundError, ValueError, TypeError, TwinlakeError):
        return []
    return found


def add(settings: Settings, made: Silence, now: datetime) -> None:
    """One more, in place of an earlier one of the same; those that have ended go."""
    with _alone(settings):
        kept = [one for one in load(settings) if one.what != made.what and now < parse_moment(one.until)]
        _save(settings, [*kept, made])


def end(settings: Settings, what: str) -> None:
    """NotFoundError where it is not silenced."""
    with _alone(settings):
        known = load(settings)
        if what not in {one.what for one in known}:
            names = ", ".join(one.what for one in known) or "nothing"
            raise NotFoundError(f"{what} is not silenced", f"silenced: {names}", "see `twinlake alarm list`")
        _save(settings, [one for one in known if one.what != what])


def _alone(settings: Settings) -> AbstractContextManager[None]:
    """Two commands in one moment write one after the other; who reads needs no turn."""
    return alone(_file(settings).with_name(".silences.lock"))


def _save(settings: Settings, silences: list[Silence]) -> None:
    replace_file(_file(settings), json.dumps([asdict(one) for one in silences], indent=1), SECRET)


def _file(settings: Settings) -> Path:
    return settings.run_dir / "silences.json"
