"""The bounds of the watermark over hand-written histories, and over every way to cut one into batches."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import tables
from tests.oracle.judge import MINUTE_MS, Judged
from tests.oracle.topic import Records
from tests.oracle.watermark import IDLE_MS, Watermark, watermark

Entry = tuple[int, int, int | None]
"""Partition, Kafka timestamp and event time of one record, in ms; no event time: it was refused."""


def history(entries: list[Entry]) -> pl.DataFrame:
    records, judged = Records(), Judged()
    for row, (partition, timestamp, ordered_at) in enumerate(entries):
        records.partitions.append(partition)
        records.offsets.append(row)
        records.timestamps_ms.append(timestamp)
        if ordered_at is not None:
            judged.rows.append(row)
            event = (f"e{row}", row, "c", "r", "paid", 1, ordered_at)
            for column, part in zip(judged.columns.values(), event, strict=True):
                column.append(part)
    return tables.frame(records, judged, epoch=0)


def bounds(*entries: Entry) -> tuple[int | None, int | None]:
    found = watermark(history(list(entries)))
    return found.low, found.high


def test_it_is_between_the_partition_that_is_furthest_behind_and_the_one_that_is_furthest_ahead() -> None:
    assert bounds((0, 100, 20), (0, 101, 10), (1, 102, 70), (2, 103, 50)) == (20, 70)


def test_an_event_time_later_than_its_own_record_moves_nothing() -> None:
    assert bounds((0, 100, 101), (0, 100, 90), (1, 100, 100)) == (90, 100)


def test_an_idle_partition_holds_nothing_back() -> None:
    assert bounds((0, 0, 0), (1, IDLE_MS, 70)) == (0, 70)
    assert bounds((0, 0, 0), (1, IDLE_MS + 1, 70)) == (70, 70)


@pytest.mark.parametrize("ordered_at", [None, 2 * IDLE_MS], ids=["refused", "in the future"])
def test_a_record_that_does_not_count_does_not_keep_its_partition_from_being_idle(
    ordered_at: int | None,
) -> None:
    assert bounds((0, 0, 0), (0, IDLE_MS + 1, ordered_at), (1, IDLE_MS + 1, 70)) == (70, 70)


def test_where_no_other_record_counts_a_partition_is_not_idle() -> None:
    assert bounds((0, 0, 0), (1, IDLE_MS + 1, None)) == (0, 0)


def test_where_no_record_is_valid_there_is_none() -> None:
    assert bounds((0, 0, None)) == (None, None)


@pytest.mark.parametrize(
    ("low", "high", "passed"),
    [(50, 90, True), (49, 90, None), (None, 50, None), (10, 49, False), (None, None, False)],
)
def test_a_moment_is_passed_when_the_watermark_is_there_or_beyond(
    low: int | None, high: int | None, passed: bool | None
) -> None:
    assert Watermark(low=low, high=high).has_passed(50) is passed


entries = st.tuples(
    st.integers(0, 2), st.integers(0, 3 * IDLE_MS), st.none() | st.integers(-IDLE_MS, 4 * IDLE_MS)
)


@given(st.lists(st.lists(entries, min_size=1, max_size=4), min_size=1, max_size=6))
def test_the_watermark_of_any_batches_is_within_the_bounds(batches: list[list[Entry]]) -> None:
    reached: int | None = None
    newest_record: dict[int, int] = {}
    newest_event: dict[int, int] = {}
    for batch in batches:
        for partition, timestamp, ordered_at in batch:
            if ordered_at is not None and ordered_at <= timestamp:
                newest_record[partition] = max(timestamp, newest_record.get(partition, timestamp))
                newest_event[partition] = max(ordered_at, newest_event.get(partition, ordered_at))
        since = max(newest_record.values(), default=0) - MINUTE_MS
        active = [event for partition, event in newest_event.items() if newest_record[partition] >= since]
        if active:
            reached = min(active) if reached is None else max(reached, min(active))

    found = watermark(history([entry for batch in batches for entry in batch]))

    assert found.low is None or (reached is not None and found.low <= reached)
    assert reached is None or (found.high is not None and reached <= found.high)
