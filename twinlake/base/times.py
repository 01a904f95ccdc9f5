"""Owns moments (RFC 3339, UTC) and durations ("3 hours", "PT3H") and their texts."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from twinlake.base.errors import UsageError

Clock = Callable[[], datetime]
"""Tells the moment, aware and UTC; a parameter wherever a result depends on it."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?([Zz]|[+-]\d{2}:\d{2})")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_WORDS = re.compile(r"(\d+)\s*(second|minute|hour|day|week)s?")
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,6})?)S)?)?")
DURATION = rf"^\s*(?:{_WORDS.pattern}|P(?=[\dT]){_ISO.pattern[1:]})\s*$"
"""A text that may be a duration: what `parse_duration` refuses beyond that is zero or too long."""
_MICROSECOND = timedelta(microseconds=1)


def parse_moment(text: str) -> datetime:
    """RFC 3339 text with its zone as an aware UTC datetime; a date alone is its first moment in UTC."""
    if _DATE.fullmatch(text):
        text = f"{text}T00:00:00Z"
    if not _MOMENT.fullmatch(text):
        raise UsageError(
            f"{text!r} is not a time",
            "it is neither a date nor RFC 3339 with a zone",
            "write it like 2026-01-31 or 2026-01-31T12:00:00Z",
        )
    try:
        return datetime.fromisoformat(text.upper().replace(" ", "T")).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{text!r} is not a time", _why_none(text), "write it like 2026-01-31T12:00:00Z"
        ) from error


def _why_none(text: str) -> str:
    """Of a text in the form of a time, which part of it is none."""
    year, month, day, hour, minute, second = map(int, re.split(r"[-Tt :]", text[:19]))
    zone = re.search(r"[+-](\d{2}):(\d{2})$", text)
    if zone and (int(zone[1]) > 23 or int(zone[2]) > 59):
        return f"no zone is {zone[0]} from UTC: hours go to 23, minutes to 59"
    if not 1 <= month <= 12 or not 1 <= day <= 31 or year < 1:
        return "years begin with 1; months go from 1 to 12, days from 1 to 31"
    if hour > 23 or minute > 59 or second > 59:
        return "hours go to 23, minutes and seconds to 59"
    if day > monthrange(year, month)[1]:
        return f"month {month} of {year} has no day {day}"
    return "in UTC it is not in the years 1 to 9999"


def format_moment(moment: datetime) -> str:
    """RFC 3339 in UTC, with microseconds only when there are any."""
    if moment.tzinfo is None:
        raise ValueError(f"time without zone: {moment!r}")
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def utc_now() -> datetime:
    """The machine's clock; only what starts a process hands it on as a Clock."""
    return datetime.now(UTC)


def from_micros(micros: int) -> datetime:
    """The moment so many microseconds after 1970-01-01 UTC."""
    return EPOCH + timedelta(microseconds=micros)


def moment_or_none(micros: int) -> datetime | None:
    """`from_micros`, or None for a moment outside years 1 to 9999: windows may begin before and end after."""
    try:
        return from_micros(micros)
    except OverflowError:
        return None


def parse_duration(text: str, or_zero: bool = False) -> timedelta:
    """A positive duration from "90 seconds", "3 hours", "21 days" or ISO 8601 without months and years;
    none at all only where that is asked for."""
    try:
        duration = _duration(text)
    except OverflowError as error:
        raise UsageError(
            f"{text!r} is not a duration", "it is too long", 'write it like "3 hours"'
        ) from error
    if duration < timedelta(0) or not (duration or or_zero):
        raise UsageError(
            f"{text!r} is not a duration", "it is not longer than zero", 'write it like "3 hours"'
        )
    return duration


def is_days(text: str) -> bool:
    """Whether a duration is written as days or weeks, and not as 24 hours."""
    words, iso = _WORDS.fullmatch(text.strip()), _ISO.fullmatch(text.strip())
    return words[2] in ("day", "week") if words else iso is not None and not any(iso.groups()[2:])


def _duration(text: str) -> timedelta:
    if words := _WORDS.fullmatch(text.strip()):
        return timedelta(**{words[2] + "s": int(words[1])})
    iso = _ISO.fullmatch(text.strip())
    if iso is None or not any(iso.groups()):
        raise UsageError(f"{text!r} is not a duration", "", 'write it like "3 hours" or "PT3H"')
    weeks, days, hours, minutes = (int(part or 0) for part in iso.groups()[:4])
    return timedelta(
        weeks=weeks, days=days, hours=hours, minutes=minutes, microseconds=round(float(iso[5] or 0) * 1e6)
    )


def format_duration(duration: timedelta) -> str:
    """The duration in its largest whole unit, such as "3 hours"; parse_duration reads it back."""
    micros = duration // _MICROSECOND
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        if micros % (size * 1_000_000) == 0:
            count = micros // (size * 1_000_000)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"PT{micros / 1e6:.6f}S"
