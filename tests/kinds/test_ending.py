"""How long a table shows its windows is part of its definition, and decided by its clock alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history import SALES
from tests.project import OURS
from twinlake.base.errors import DefinitionError, UsageError
from twinlake.base.times import EPOCH
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import from_json
from twinlake.kinds.analysis import warnings
from twinlake.kinds.grid import micros
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.windows import ALL, Hopping, Tumbling, WindowRange, Windows
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = timedelta(minutes=1)
ENDING = replace(SALES, retention="10 minutes")
NEWEST = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def test_a_definition_without_one_is_written_as_before_and_one_with_comes_back() -> None:
    assert "retention" not in SALES.to_json()
    assert from_json(SALES.to_json()) == SALES
    assert ENDING.to_json()["retention"] == "10 minutes" and from_json(ENDING.to_json()) == ENDING


@pytest.mark.parametrize(
    ("retention", "said"),
    [("soon", "retention: 'soon'"), ("500 milliseconds", "retention"), ("0 seconds", "retention")],
)
def test_what_is_no_duration_of_whole_seconds_is_refused(retention: str, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        replace(SALES, retention=retention)


def test_a_table_without_windows_has_none() -> None:
    with pytest.raises(DefinitionError, match="it has a retention and no window"):
        replace(SALES, window=None, retention="400 days")
    with pytest.raises(UsageError, match="unknown key 'retention'"):
        from_json({**Rolling(name="r", of="s", last=("1 hour",)).to_json(), "retention": "400 days"})


@pytest.mark.parametrize(("last", "fits"), [("10 minutes", True), ("11 minutes", False)])
def test_a_rolling_table_reaches_no_further_back_than_windows_are_shown(last: str, fits: bool) -> None:
    rolling = Rolling(name="lately", of=SALES.name, last=(last,))

    found = list(rolling.unfit({SALES.name: ENDING}))

    assert (not found) is fits and not list(rolling.unfit({SALES.name: SALES}))
    if not fits:
        assert "longer than sales_per_region shows its windows" in str(found[0])


@given(
    at=st.datetimes(datetime(1965, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    size=st.integers(1, 100), hops=st.integers(1, 5), kept=st.integers(1, 1_000),
)  # fmt: skip
def test_the_windows_that_are_shown_are_those_whose_end_is_less_than_the_retention_ago(
    at: datetime, size: int, hops: int, kept: int
) -> None:
    every = timedelta(seconds=size)
    window = Hopping(on="ordered_at", size=f"{size * hops} seconds", every=f"{size} seconds")
    table = replace(SALES, window=window, retention=f"{kept} seconds")
    assert table.ending is not None
    (shown,) = table.ending.shown({"orders": micros(at - EPOCH)}, {}).ranges

    assert shown.start is not None and shown.end is None and not (shown.start - EPOCH) % every
    ends = every * hops + timedelta(seconds=kept)
    assert shown.start + ends > at >= shown.start - every + ends


def test_no_watermark_and_one_outside_of_the_calendar_end_nothing() -> None:
    assert ENDING.ending is not None
    assert ENDING.ending.shown({}, {}) == ENDING.ending.shown({"orders": None}, {}) == ALL
    assert ENDING.ending.shown({"orders": -(1 << 60)}, {}) == ALL


def test_windows_of_the_log_s_own_time_end_by_its_clock() -> None:
    by_log = replace(ENDING, columns={**SALES.columns, "ordered_at": "_timestamp"})
    assert by_log.ending is not None
    at = micros(NEWEST - EPOCH)

    shown = by_log.ending.shown({"orders": at + micros(60 * MINUTE)}, {"orders": {"log_append_time": at}})

    assert shown == Windows.between(NEWEST - 10 * MINUTE)


def test_since_cuts_a_set_of_windows_and_adds_nothing() -> None:
    two = Windows((WindowRange(end=NEWEST), WindowRange(start=NEWEST + MINUTE, end=NEWEST + 3 * MINUTE)))
    later = Windows.between(NEWEST + 2 * MINUTE)

    assert two.since(ALL) == two and ALL.since(later) == later
    assert two.since(later) == Windows.between(NEWEST + 2 * MINUTE, NEWEST + 3 * MINUTE)
    assert two.since(Windows.between(NEWEST + 3 * MINUTE)) == Windows(())


@pytest.mark.parametrize(
    "window", [ENDING.window, Hopping(on="ordered_at", size="3 minutes", every="1 minute")]
)
def test_the_view_and_the_batch_layer_leave_out_the_same_windows(
    spark: SparkSession, window: Tumbling | Hopping
) -> None:
    table = replace(ENDING, window=window)
    assert isinstance(table, Aggregate) and table.ending is not None
    starts = [NEWEST + number * MINUTE for number in range(-3, 30)]
    states = spark.createDataFrame([(start,) for start in starts], "window_start timestamp")
    for seconds in (0, 1, 59, 60, 61, 600, 659, 660, 661, 1_000):
        at = NEWEST + timedelta(seconds=seconds)
        (shown,) = table.ending.shown({"orders": micros(at - EPOCH)}, {}).ranges
        by_view = states.where(table.ending.is_shown_sql(f"TIMESTAMP '{at.isoformat()}'")).collect()
        by_batch = states.where(shown.predicate("window_start")).collect()
        assert by_view == by_batch and len(by_view) > 0


def test_windows_that_go_before_they_can_be_final_are_warned_of(spark: SparkSession) -> None:
    topics = {"orders": load_topic("orders", OURS)}
    by_log = replace(ENDING, columns={**SALES.columns, "ordered_at": "_timestamp"})

    (warning,) = warnings(ENDING, topics, spark)

    assert "for 10 minutes after its end, and records of orders may come 3 hours late" in str(warning)
    for table in (SALES, replace(ENDING, retention="181 minutes"), by_log):
        assert list(warnings(table, topics, spark)) == []
