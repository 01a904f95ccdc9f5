"""What small work costs: a cycle of some records, the lake server at rest, its start after a kill -9."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from benchmarks.meter import Meter
from benchmarks.orders import send
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
    first_step: int
    """The log's step before the first of them."""


def cycle(platform: Platform, seconds: float) -> Cycle:
    """One cycle after the other, each begun when the records of the one before are everywhere."""
    lake_server, first_step = platform.process("twinlake.server"), platform.step()
    took: list[float] = []
    cost: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        with Meter([lake_server]) as meter:
            send(platform, "small", CYCLE_RECORDS)
            sent = time.perf_counter()
            platform.caught_up(platform.ends(), LIMIT_S)
            took.append(time.perf_counter() - sent)
        cost.append(meter.cost.cpu_seconds)
    return Cycle(seconds=median(took), cpu_seconds=median(cost), cycles=len(took), first_step=first_step)


def cores_idle(platform: Platform, seconds: float) -> float:
    """Cores that the lake server uses while nothing arrives."""
    with Meter([platform.process("twinlake.server")]) as meter:
        time.sleep(seconds)
    return meter.cost.cpu_seconds / meter.cost.seconds


def restart(platform: Platform) -> float:
    """Seconds from kill -9 of the lake server until both tables have the first records sent after it."""
    tree = platform.lake_server()
    killed = time.perf_counter()
    for process in tree:
        process.kill()
    send(platform, "after a kill", 100)
    platform.caught_up(platform.ends(), LIMIT_S)
    return time.perf_counter() - killed
