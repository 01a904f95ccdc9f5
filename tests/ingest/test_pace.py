"""A backlog goes into the log in batches of a few seconds, however fast or slow the machine is."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from tests.ingest.stage import Stage
from twinlake.ingest import pace
from twinlake.ingest.ingest import Ingest
from twinlake.ingest.pace import Pace


def test_a_batch_has_as_many_records_as_take_the_time_that_it_may_take() -> None:
    paced = Pace(200_000, batch_seconds=5)
    sizes = []
    for per_second in (2_000, 8_000, 30_000, 60_000, 60_000, 60_000, 10_000, 10_000, 100, 100, 100, 100):
        sizes.append(paced.next_records)
        paced.after(paced.next_records, paced.next_records / per_second)

    assert sizes == [
        20_000, 10_000, 40_000, 150_000, 200_000, 200_000, 200_000, 50_000, 50_000, 12_500, 3_125, 1_000
    ]  # fmt: skip


def test_a_small_batch_that_was_quick_enough_takes_nothing_from_a_full_one() -> None:
    paced = Pace(200_000, batch_seconds=5)
    paced.after(20_000, 1)
    paced.after(3, 0.2)
    paced.after(0, 60)

    assert paced.next_records == 80_000


def test_what_a_batch_costs_however_small_it_is_does_not_make_batches_ever_smaller() -> None:
    small, full = Pace(200_000, batch_seconds=5), Pace(200_000, batch_seconds=5)
    for _ in range(20):
        small.after(3, 6)
        full.after(full.next_records, 6)

    assert (small.next_records, full.next_records) == (20_000, 1_000)


def test_who_follows_a_batch_takes_nothing_of_its_time() -> None:
    paced = Pace(200_000, batch_seconds=0.2)
    follow = paced.outside(lambda batch: time.sleep(0.3))

    follow(0)
    with paced.timed(20_000):
        follow(1)

    assert paced.next_records == 80_000


def test_a_backlog_that_goes_slowly_is_cut_into_smaller_batches(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create()
    for partition in (0, 1):
        stage.orders(*(f"{partition}/{n}" for n in range(500)), partition=partition)
    sizes: list[int] = []
    monkeypatch.setattr(pace, "LEAST_RECORDS", 1)
    append = Ingest._append

    def slow(ingest: Ingest, table: pa.Table, *more: Any) -> Any:
        sizes.append(table.num_rows)
        time.sleep(table.num_rows / 500)
        return append(ingest, table, *more)

    monkeypatch.setattr(Ingest, "_append", slow)
    ingest = stage.caught_up(stage.ingest(records_per_batch=500, batch_seconds=0.5))

    assert sizes[0] == 500 and max(sizes[1:]) <= 250
    assert sum(sizes) == len(stage.verdicts(ingest.log)) == 1_000
