"""Finding: what one check of the installation found; a check that refuses says what to do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta

from twinlake.base.errors import TwinlakeError, UnreachableError
from twinlake.base.times import Clock, format_moment

FARTHEST = timedelta(minutes=2)
"""Clocks may differ by so much: lateness and time-outs are minutes."""

LONGEST_S = 90.0
"""Longer than any client of ours waits for an answer that does not begin."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: what was looked at, what was found, and what is wrong, if anything is."""

    service: str
    looked_at: str
    found: str = ""
    error: TwinlakeError | None = None


def tried(service: str, looked_at: str, look: Callable[[], str]) -> Finding:
    """What a look found; anything that it raises is what is wrong.

    A look has its time: a service that sends a byte now and then keeps every client's own limit from ending.
    """
    asked: Future[str] = Future()

    def ask() -> None:
        try:
            asked.set_result(look())
        except BaseException as error:
            asked.set_exception(error)

    threading.Thread(target=ask, name=looked_at, daemon=True).start()
    try:
        return Finding(service=service, looked_at=looked_at, found=asked.result(LONGEST_S))
    except TimeoutError:
        said = UnreachableError(
            f"{looked_at} could not be checked", f"it has not answered to the end within {LONGEST_S:g} s",
            f"see what answers as {service}, or what stands before it",
        )  # fmt: skip
        return Finding(service=service, looked_at=looked_at, error=said)
    except TwinlakeError as error:
        return Finding(service=service, looked_at=looked_at, error=error)
    except Exception as error:  # a check that cannot be made is shown beside the others
        why = f"{type(error).__name__}: {error}"[:400]
        failed = UnreachableError(f"{looked_at} could not be checked", why, "fix that, then ask again")
        return Finding(service=service, looked_at=looked_at, error=failed)


def refuse_clock(whose: str, theirs: datetime | None, clock: Clock) -> str:
    """How far that clock is from ours; TwinlakeError where that is minutes."""
    if theirs is None:
        return "it does not say its time"
    apart = theirs - clock()
    if abs(apart) > FARTHEST:
        raise TwinlakeError(
            f"the clocks of {whose} and of this machine differ by {abs(apart).total_seconds():,.0f} s",
            f"{whose} says {format_moment(theirs)}, this machine {format_moment(clock())}: lateness, "
            "watermarks and what is kept how long are measured by them",
            "have NTP set both (`timedatectl` shows this machine's)",
        )
    return f"{apart.total_seconds():+.0f} s"
