"""As of: the moment that a reader names, as text: a release, a position, or a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from twinlake.base.errors import UsageError
from twinlake.base.times import parse_moment

LONGEST = 1_000
_RELEASE = re.compile(r"release:([1-9]\d{0,8})")
_POSITION = re.compile(r"position:(.+)")
_BATCH = re.compile(r"([A-Za-z0-9._-]+)=([1-9]\d{0,17})")
_WHAT = "a position is a batch number, from 1 on, for each topic, and names a topic once"
_FORMS = "write release:3, position:orders=120,payments=7 or a time like 2026-01-31T12:00:00Z"


@dataclass(frozen=True, kw_only=True)
class AsOf:
    """One of the three is given: `release`, `position` (by topic, a batch number), or `time`."""

    text: str
    release: int | None = None
    position: dict[str, int] = field(default_factory=dict)
    time: datetime | None = None


def parse_as_of(text: str) -> AsOf:
    """UsageError, with the forms there are, for a text that is none of them."""
    if found := _RELEASE.fullmatch(text):
        return AsOf(text=text, release=int(found[1]))
    if found := _POSITION.fullmatch(text):
        if (position := _position(found[1])) is None:
            raise UsageError(f"as of {text!r} is not a point in time", _WHAT, _FORMS)
        return AsOf(text=text, position=position)
    try:
        return AsOf(text=text, time=parse_moment(text))
    except UsageError as error:
        raise UsageError(f"as of {text!r} is not a point in time", error.why, _FORMS) from error


def parse_position(text: str) -> dict[str, int]:
    """Of `orders=120,payments=7`, by topic the batch number; UsageError for another text."""
    if (position := _position(text)) is None:
        raise UsageError(f"{text!r} is not a position", _WHAT, "write orders=120,payments=7")
    return position


def _position(text: str) -> dict[str, int] | None:
    parts = [_BATCH.fullmatch(part) for part in text.split(",")]
    position = {part[1]: int(part[2]) for part in parts if part}
    return position if len(position) == len(parts) else None
