"""A backlog goes into the log in batches of a few seconds, however fast or slow the machine is."""

from __future__ import annotations

import time
from typing import Any

from jobs.ingest.pace import Pace
from jobs.lake.log import Log
from tests.ingest.stage import Stage


def test_a_batch_has_as_many_records_as_take_the_time_that_it_may_take() -> None:
    pace = Pace(200_000, batch_seconds=5)
    sizes = []
    for per_second in (2_000, 8_000, 30_000, 60_000, 60_000, 60_000, 10_000, 10_000, 100, 100, 100, 100):
        sizes.append(pace.next_records)
        pace.after(pace.next_records, pace.next_records / per_second)

    assert sizes == [
        20_000, 10_000, 40_000, 150_000, 200_000, 200_000, 200_000, 50_000, 50_000, 12_500, 3_125, 781
    ]  # fmt: skip


def test_a_small_batch_that_was_quick_enough_takes_nothing_from_a_full_one() -> None:
    pace = Pace(200_000, batch_seconds=5)
    pace.after(20_000, 1)
    pace.after(3, 0.2)
    pace.after(0, 60)

    assert pace.next_records == 80_000


def test_a_backlog_that_goes_slowly_is_cut_into_smaller_batches(stage: Stage) -> None:
    stage.create()
    for partition in (0, 1):
        stage.orders(*(f"{partition}/{n}" for n in range(500)), partition=partition)
    sizes: list[int] = []

    def slow(log: Log, batch: int, rows: Any) -> None:
        if rows is not None:
            sizes.append(log.metadata()["records"])
            time.sleep(sizes[-1] / 500)

    ingest = stage.caught_up(stage.ingest(then=slow, records_per_batch=500, batch_seconds=0.5))

    assert sizes[0] == 500 and max(sizes[1:]) <= 250
    assert sum(sizes) == len(stage.verdicts(ingest.log)) == 1_000
