"""Freshness: how long after it was made a record is counted by the view that an independent reader asks.

The reader asks `serve.sales_per_region` for the number of orders over and over. When an answer shows n more
than at the start, the first n records were visible at the latest when the answer arrived; so sending, ingest,
the tables' commits and the query itself are all inside the figure.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.platform import Platform
from records import Draw, Sample
from twinlake.config.settings import Services
from twinlake.reading.client import ask
from twinlake.topics.produce import produce

RECENT_MINUTES = 15
POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Freshness:
    """Seconds from produced to visible over the records; what was asked for and what was seen."""

    p50_s: float
    p99_s: float
    largest_s: float
    records: int
    queries: int
    query_p50_s: float
    query_p99_s: float


@dataclass(kw_only=True)
class _Noted:
    """A sample that notes when how many records had been drawn; that happens first to a record."""

    sample: Sample
    moments: list[float] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)

    def draw(self, count: int, now_ms: int) -> Draw:
        self.moments.append(time.perf_counter())
        self.totals.append((self.totals[-1] if self.totals else 0) + count)
        return self.sample.draw(count, now_ms)


def orders_shown(services: Services) -> Callable[[], int]:
    """How many orders the view answers with, for `observe`."""
    since = datetime.now(UTC) - timedelta(minutes=RECENT_MINUTES)
    recent = (
        "SELECT coalesce(sum(orders), 0) AS n FROM serve.sales_per_region "
        f"WHERE window_start >= TIMESTAMP '{since:%Y-%m-%d %H:%M}:00'"
    )

    def shown() -> int:
        return int(ask(services, recent)["rows"][0]["n"])

    return shown


def observe(
    sample: Sample,
    visible: Callable[[], int],
    platform: Platform,
    *,
    rate: float,
    seconds: float,
    lead_s: float,
) -> Freshness:
    """Produce at the rate, and ask over and over how many records are visible.

    The records of the first `lead_s` seconds only bring all into their stride.
    """
    before = visible()
    noted = _Noted(sample=sample)
    total = int(rate * (lead_s + seconds))
    failed: list[BaseException] = []
    stop = threading.Event()

    def send() -> None:
        try:
            produce(
                noted,
                login=platform.services.kafka("producer"),
                topic=platform.topic,
                count=total,
                rate=rate,
                stop=stop,
                report=lambda sent: None,
            )
        except BaseException as error:
            failed.append(error)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    seen: list[int] = []
    arrived: list[float] = []
    asked: list[float] = []
    until = time.perf_counter() + lead_s + seconds + 60
    while (not seen or seen[-1] < total) and not failed and time.perf_counter() < until:
        started = time.perf_counter()
        seen.append(visible() - before)
        arrived.append(time.perf_counter())
        asked.append(arrived[-1] - started)
        time.sleep(POLL_SECONDS)
    stop.set()
    sender.join()
    if failed:
        raise failed[0]
    waits = delays(noted.moments, noted.totals, arrived, seen, skip=int(rate * lead_s))
    p50, p99 = np.percentile(waits, [50, 99])
    return Freshness(
        p50_s=float(p50),
        p99_s=float(p99),
        largest_s=float(waits.max()),
        records=len(waits),
        queries=len(seen),
        query_p50_s=float(np.percentile(asked, 50)),
        query_p99_s=float(np.percentile(asked, 99)),
    )


def delays(
    moments: list[float], totals: list[int], arrived: list[float], seen: list[int], skip: int
) -> np.ndarray:
    """Per record after the first `skip`, seconds from being made to the first answer that counts it.

    `totals[i]` records had been made by `moments[i]`; the answer at `arrived[j]` counted `seen[j]`.
    A record that no answer counts waits for ever.
    """
    made = np.repeat(np.array(moments), np.diff(np.array([0, *totals])))[skip:]
    counted = np.maximum.accumulate(np.array(seen)).tolist()
    shown = [
        arrived[at] if (at := bisect_right(counted, number)) < len(arrived) else np.inf
        for number in range(skip, totals[-1])
    ]
    return np.array(shown) - made
