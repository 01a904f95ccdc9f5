"""What small work costs: a cycle of some records, the lake server at rest, starts after a kill -9."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

import httpx
import psutil

from benchmarks.meter import Meter
from benchmarks.orders import send
from benchmarks.platform import Platform
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.reading.client import ask

CYCLE_RECORDS = 2_000
LIMIT_S = 180.0
STEADY_S = 65.0
"""The supervisor starts a part again at once that ran for a minute."""
FIRST_QUERY = "SELECT region, orders FROM serve.sales_per_region ORDER BY region"
FIRST_QUERY_S = 2.0
"""The target of the first statement after a start."""


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
    killed = time.perf_counter()
    _kill(platform.lake_server())
    send(platform, "after a kill", 100)
    platform.caught_up(platform.ends(), LIMIT_S)
    return time.perf_counter() - killed


def first_query(services: Services) -> float:
    """Seconds of the first statement after a start, over a table: what an analyst waits for."""
    began = time.perf_counter()
    ask(services, FIRST_QUERY)
    return time.perf_counter() - began


def first_query_after_a_kill(platform: Platform) -> float:
    """The same, once the SQL server that the supervisor has started again says that it is ready."""
    _kill(platform.tree("twinlake.reading"))

    def is_ready() -> bool | None:
        status = httpx.get(f"{platform.services.sql_url}/status", timeout=5, trust_env=False).json()
        return status["ready"] or None

    wait_for("the SQL server", is_ready, LIMIT_S, every_s=0.02, unready=(httpx.HTTPError,))
    return first_query(platform.services)


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
