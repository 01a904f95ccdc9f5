"""Which clock a table's windows, sessions and joins go by, and when their rows are final by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.clock import EVENT_TIME, LOG_APPEND_TIME, PROCESSING_TIME, TableClock, clock_of
from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store
from twinlake.kinds.windows import Hopping, Tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime.fromisoformat("2026-01-31T12:00:30+00:00")
MINUTE, TICK = timedelta(minutes=1), timedelta(microseconds=1)
LATE = timedelta(hours=3)
COLUMNS_OF = {EVENT_TIME: "at", LOG_APPEND_TIME: "_timestamp", PROCESSING_TIME: "_ingested_at"}
CLOCKS = pytest.mark.parametrize("time", COLUMNS_OF)


def shared(time: str) -> dict[str, Any]:
    return {
        "inputs": ("made",), "columns": {"key": "key", "on": COLUMNS_OF[time]}, "keys": ("key",),
        "measures": {"n": Count()},
    }  # fmt: skip


def tumbling(time: str) -> Aggregate:
    return Aggregate(name="tumbling", window=Tumbling(on="on", size="1 minute"), **shared(time))


def hopping(time: str) -> Aggregate:
    window = Hopping(on="on", size="1 minute", every="30 seconds")
    return Aggregate(name="hopping", window=window, where="key = 'a'", **shared(time))


def visits(time: str) -> Sessions:
    return Sessions(name="visits", on="on", gap="1 minute", grid="1 hour", **shared(time))


def kept(name: str, time: str, topic: str = "made") -> Events:
    store = Store(keys=("key",), on="on", cell="1 hour", back="1 hour")
    return Events(name=name, inputs=(topic,), columns={"key": "key", "on": COLUMNS_OF[time]}, store=store)


def states(spark: SparkSession, table: Any) -> str:
    """One record, all of whose times are AT."""
    at = f"TIMESTAMP '{AT.isoformat()}'"
    rows = spark.sql(
        f"SELECT 'a' AS key, {at} AS at, 0 AS _epoch, 0 AS _partition, 0L AS _offset, {at} AS _timestamp, "
        f"{at} AS _ingested_at"
    )
    table.partial(rows).createOrReplaceTempView(f"clocks_{table.name}")
    return f"clocks_{table.name}"


def told(late_after: dict[str, timedelta] | None = None, **clocks: datetime) -> ViewClock:
    """How far each of a topic's clocks has come; `made` says what is late unless told otherwise."""
    moments = {time: f"TIMESTAMP '{at.isoformat()}'" for time, at in clocks.items()}
    return ViewClock(
        watermarks={"made": moments.pop(EVENT_TIME)} if EVENT_TIME in moments else {},
        clocks={("made", time): view_clock for time, view_clock in moments.items()},
        late_after={"made": LATE} if late_after is None else late_after,
    )


def finals(spark: SparkSession, table: Kind, relations: dict[str, str], view_clock: ViewClock) -> list[Any]:
    return [row["final"] for row in spark.sql(table.view(relations, view_clock)).select("final").collect()]


def test_a_clock_is_told_from_the_column_alone() -> None:
    told = {sql: clock_of("t", sql).time for sql in ("_timestamp", " `_Timestamp` ", "_ingested_at", "at")}

    assert [*told.values()] == [LOG_APPEND_TIME, LOG_APPEND_TIME, PROCESSING_TIME, EVENT_TIME]
    # of anything computed the watermark that is behind the others is right, and only late
    assert clock_of("t", "date_trunc('hour', _timestamp)") == TableClock(topic="t", time=EVENT_TIME)


@CLOCKS
@pytest.mark.parametrize(
    ("made", "settled"),
    [
        (tumbling, AT + 0.5 * MINUTE),  # the window's end
        (hopping, AT + MINUTE),  # the end of the later one of two
        (visits, AT + MINUTE + TICK),  # one at the gap's end would still belong to it
    ],
)
def test_a_row_is_final_when_the_clock_of_its_windows_has_passed_it(
    spark: SparkSession, time: str, made: Any, settled: datetime
) -> None:
    table = made(time)
    relations = {table.name: states(spark, table)}
    late = LATE if time == EVENT_TIME else timedelta(0)
    ahead = {other: AT + timedelta(days=9) for other in COLUMNS_OF if other != time}

    def at(view_clock: datetime) -> bool:
        return all(finals(spark, table, relations, told(**ahead, **{time: view_clock})))

    assert at(settled + late) and not at(settled + late - TICK)
    assert set(finals(spark, table, relations, told(**ahead))) == {False}  # nothing is known of its own clock


@CLOCKS
def test_only_by_event_time_has_a_contract_to_say_what_is_late(spark: SparkSession, time: str) -> None:
    table = tumbling(time)
    view_clock = told(late_after={}, **{time: AT + timedelta(days=9)})

    found = finals(spark, table, {table.name: states(spark, table)}, view_clock)

    assert found == [None if time == EVENT_TIME else True]


@pytest.mark.parametrize("kind", ["interval", "as of"])
def test_a_joined_row_is_final_when_the_clocks_of_both_sides_have_passed(
    spark: SparkSession, kind: str
) -> None:
    """The sides are of one topic, and go by different clocks of it."""
    sides = {"asks": kept("asks", PROCESSING_TIME), "hits": kept("hits", EVENT_TIME)}
    columns = {"asked": "left.on"}
    join: Any
    if kind == "interval":
        join = IntervalJoin(
            name="near", left="asks", right="hits", on=("key",), after="1 minute", how="left", columns=columns
        )  # fmt: skip
        settled = AT + MINUTE
    else:
        join = AsOfJoin(name="then", left="asks", right="hits", on=("key",), columns=columns)
        settled = AT
    join = join.bound(sides)
    relations = {name: states(spark, table) for name, table in sides.items()}

    def at(event: datetime, processing: datetime) -> list[Any]:
        view_clock = told(**{EVENT_TIME: event, PROCESSING_TIME: processing})
        return finals(spark, join, relations, view_clock)

    assert at(settled + LATE + TICK, settled + TICK) == [True]
    assert at(settled + LATE, settled + TICK) == [False]  # one at the bound itself may still come
    assert at(settled + LATE + TICK, settled) == [False]


@CLOCKS
def test_the_last_windows_are_those_before_the_clock_of_the_aggregate(spark: SparkSession, time: str) -> None:
    of = replace(tumbling(time), name="of")
    rolling = Rolling(name="rolling", of="of", last=("1 minute",)).bound({"of": of})
    relations = {"of": states(spark, of)}

    def at(view_clock: datetime) -> list[tuple[str, int]]:
        text = rolling.view(relations, told(**{time: view_clock}))
        return [(row["last"], row["n"]) for row in spark.sql(text).collect()]

    assert at(AT + MINUTE) == [("1 minute", 1)]
    assert at(AT) == [] and at(AT + 2 * MINUTE) == []
