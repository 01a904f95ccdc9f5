"""Local days in plain Python: every minute around midnight is asked for its date, by the package tzdata."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

MINUTE, SECOND, DAY = timedelta(minutes=1), timedelta(seconds=1), timedelta(days=1)


@cache
def zone_of(name: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


@cache
def begin(zone: str, day: date) -> datetime:
    """The first instant, in UTC, that has this date or a later one."""
    here = zone_of(zone)
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) - 16 * 60 * MINUTE
    while at.astimezone(here).date() < day:
        at += MINUTE
    while (at - SECOND).astimezone(here).date() >= day:
        at -= SECOND
    return at


def day_at(zone: str, at: datetime) -> date:
    """The newest date that has begun."""
    day = at.astimezone(zone_of(zone)).date()
    while begin(zone, day + DAY) <= at:
        day += DAY
    return day


def window_at(zone: str, at: datetime, days: int = 1) -> tuple[datetime, datetime]:
    """(start, end) of the window of so many days that holds it; of a zone without dates that are left out."""
    first = date(1970, 1, 1)
    number = (day_at(zone, at) - first).days // days * days
    return begin(zone, first + number * DAY), begin(zone, first + (number + days) * DAY)
