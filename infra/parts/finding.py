"""Finding: what one check of the installation found; a check that refuses says what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.errors import TwinlakeError, UnreachableError
from jobs.times import Clock, format_moment

FARTHEST = timedelta(minutes=2)
"""Clocks may differ by so much: lateness and time-outs are minutes."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: what was looked at, what was found, and what is wrong, if anything is."""

    service: str
    looked_at: str
    found: str = ""
    error: TwinlakeError | None = None


def tried(service: str, looked_at: str, look: Callable[[], str]) -> Finding:
    """What a look found; anything that it raises is what is wrong."""
    try:
        return Finding(service=service, looked_at=looked_at, found=look())
    except TwinlakeError as error:
        return Finding(service=service, looked_at=looked_at, error=error)
    except Exception as error:  # a check that cannot be made is told beside the others
        why = f"{type(error).__name__}: {error}"[:400]
        failed = UnreachableError(f"{looked_at} could not be checked", why, "mend that, then ask again")
        return Finding(service=service, looked_at=looked_at, error=failed)


def refuse_clock(whose: str, told: datetime | None, clock: Clock) -> str:
    """How far that clock is from ours; TwinlakeError where that is minutes."""
    if told is None:
        return "it does not tell its time"
    apart = told - clock()
    if abs(apart) > FARTHEST:
        raise TwinlakeError(
            f"the clocks of {whose} and of this machine differ by {abs(apart).total_seconds():,.0f} s",
            f"{whose} says {format_moment(told)}, this machine {format_moment(clock())}: lateness, "
            "watermarks and what is kept how long are measured by them",
            "have NTP set both (`timedatectl` shows this machine's)",
        )
    return f"{apart.total_seconds():+.0f} s"
