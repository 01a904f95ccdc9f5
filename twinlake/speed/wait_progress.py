"""What an owner gets to later; whoever waits sees how far it is, or why it never will."""

from __future__ import annotations

import time
from concurrent.futures import Future, wait
from typing import TypeVar

from twinlake.base.errors import StalledVersionError, TimedOutError
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.speed.owner import Owner

T = TypeVar("T")

STILL_S = 1800.0
"""A version on its way to a position may stand so long at one; its longest steps take some minutes."""
FAILURES_BORNE = 3
"""So many failed tries of a version end a wait for its position."""
POLL_S = 0.5


def awaited(owner: Owner, future: Future[T], end: int, run: Run) -> T:
    """The answer; it is given up when the version fails again and again meanwhile.

    `end` is how many records the version's log has.
    """
    first, failures = owner.standing.records, owner.failures
    moved_at, position = time.monotonic(), owner.standing.position
    total = max(1, end - first)

    def reached() -> Future[T] | None:
        nonlocal moved_at, position
        wait([future], timeout=POLL_S)
        if future.done():
            return future
        if paused := owner.paused():
            raise paused.stalls(owner.version)
        if position != owner.standing.position:
            moved_at, position = time.monotonic(), owner.standing.position
        if time.monotonic() - moved_at > STILL_S:
            raise TimedOutError(
                f"{owner.version} has stood at batch {position} for {STILL_S:g} s",
                "its step takes longer, somebody holds it, or its log does not reach the position",
                "see `twinlake status` and `twinlake logs lake`, then start again",
            )
        run.progress(owner.standing.records - first, total, "records", f"advancing {owner.version}")
        if owner.failures - failures < FAILURES_BORNE:
            return None
        raise StalledVersionError(
            f"{owner.version} does not advance from batch {owner.standing.position}",
            str(owner.error),
            "fix what the error names, then start again",
        ) from owner.error

    try:
        return wait_for(f"a position of {owner.version}", reached, None, run, every_s=0).result()
    finally:
        future.cancel()
