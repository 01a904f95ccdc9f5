"""The orders that a benchmark sends, by the same generator as `twinlake produce`."""

from __future__ import annotations

import time
from threading import Event

from benchmarks.platform import Platform
from records import FaultShares, Sample
from twinlake.topics.produce import produce

SPAN_MS = 2 * 3_600_000


def steady(platform: Platform, run: str) -> Sample:
    """Orders of the moment, none of them faulty."""
    return _sample(platform, run, faults=None, span_ms=0)


def send(platform: Platform, run: str, count: int) -> None:
    """`count` records with faults, event times over the last two hours, as fast as the broker takes them."""
    produce(
        _sample(platform, run, FaultShares(), SPAN_MS),
        login=platform.services.kafka("producer"),
        topic=platform.topic,
        count=count,
        rate=None,
        stop=Event(),
        report=lambda sent: None,
    )


def _sample(platform: Platform, run: str, faults: FaultShares | None, span_ms: int) -> Sample:
    name = f"bench {run} {time.time_ns()}"
    return Sample(seed=13, run=name, schema_id=platform.schema_id, span_ms=span_ms, faults=faults)
