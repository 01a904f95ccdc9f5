"""What small work costs: a cycle of some records, the lake server at rest, its start after a kill -9."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from benchmarks.meter import Meter
from benchmarks.platform import Platform

CYCLE_RECORDS = 2_000
LIMIT_S = 180.0


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """Medians over the cycles: seconds from the last record's acknowledgement until the log and both tables
    have all of them, and CPU-seconds of the lake server from before the first record."""

    seconds: float
    cpu_seconds: float
    cycles: int


def cycle(platform: Platform, send: Callable[[int], None], seconds: float) -> Cycle:
    """One cycle after the other; `send` returns when so many records are acknowledged."""
    lake_server = platform.process("jobs.server")
    took: list[float] = []
    cost: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        with Meter([lake_server]) as meter:
            send(CYCLE_RECORDS)
            sent = time.perf_counter()
            platform.caught_up(platform.ends(), LIMIT_S)
            took.append(time.perf_counter() - sent)
        cost.append(meter.cost.cpu_seconds)
    return Cycle(seconds=median(took), cpu_seconds=median(cost), cycles=len(took))


def cores_idle(platform: Platform, seconds: float) -> float:
    """Cores that the lake server uses while nothing arrives."""
    with Meter([platform.process("jobs.server")]) as meter:
        time.sleep(seconds)
    return meter.cost.cpu_seconds / meter.cost.seconds


def restart(platform: Platform, send: Callable[[int], None]) -> float:
    """Seconds from kill -9 of the lake server until both tables have the first records sent after it."""
    tree = platform.lake_server()
    killed = time.perf_counter()
    for process in tree:
        process.kill()
    send(100)
    platform.caught_up(platform.ends(), LIMIT_S)
    return time.perf_counter() - killed
