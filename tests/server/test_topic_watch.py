"""What a watch of a topic says of clocks, from ends of its log, and what deletes nothing while it does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from twinlake.base.errors import TwinlakeError
from twinlake.base.times import EPOCH
from twinlake.batch import retention
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.grid import micros
from twinlake.server.topic_watch import TopicWatch, aging_error

RIGHT = datetime(2026, 1, 31, 12, tzinfo=UTC)
DAYS = timedelta(days=30)


class Clock:
    def __init__(self) -> None:
        self.now = RIGHT

    def __call__(self) -> datetime:
        return self.now


def read(watch: TopicWatch, records: int, newest: datetime) -> None:
    """One look after so many records, all of which the log has."""
    end = LogEnd(topic="orders", batch=records, ends={0: {0: records}}, seen={0: micros(newest - EPOCH)})
    watch.look(end, {0: records}, dict, lambda since: {})


def test_a_record_that_shows_a_clock_ahead_keeps_retention_from_deleting_by_it() -> None:
    clock = Clock()
    quiet, watch = TopicWatch("payments", clock), TopicWatch("orders", clock)
    contract = SimpleNamespace(unique_within=None)
    log: Any = SimpleNamespace(
        topic=SimpleNamespace(name="payments", contract=contract), metadata=dict,
    )  # fmt: skip
    lake: Any = SimpleNamespace(clock=clock, aging_error=lambda: aging_error([quiet, watch]))
    read(watch, 1, RIGHT)
    assert retention._before(lake, log, DAYS) == RIGHT - DAYS

    clock.now = RIGHT + timedelta(days=3650)
    read(watch, 1, RIGHT)
    read(watch, 2, RIGHT + timedelta(seconds=1))

    with pytest.raises(TwinlakeError, match="nothing of topic payments was deleted") as refused:
        retention._before(lake, log, DAYS)
    assert "behind this machine's, by the records of topic orders" in refused.value.why
    assert "timedatectl" in refused.value.remedy
    clock.now = RIGHT + timedelta(seconds=3)
    read(watch, 2, RIGHT + timedelta(seconds=1))
    read(watch, 3, clock.now)
    assert retention._before(lake, log, DAYS) == clock.now - DAYS


def test_a_clock_of_kafka_that_is_ahead_makes_nothing_seem_old() -> None:
    watch = TopicWatch("orders", Clock())

    read(watch, 1, RIGHT + DAYS)

    assert watch.warnings and aging_error([watch]) is None
