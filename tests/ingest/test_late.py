"""What came late for a window, or too late, against a plain count over Kafka's own records."""

from __future__ import annotations

import io
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from tests.ingest.stage import Stage
from tests.oracle.judge import judge
from tests.oracle.local_days import window_at
from tests.oracle.topic import Records, read
from tests.project import TABLES
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.steps import Explode
from twinlake.kinds.windows import Hopping, Tumbling
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.log import Log

pytestmark = pytest.mark.usefixtures("way")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTES, HOUR, DAY = timedelta(minutes=2), timedelta(hours=1), timedelta(days=1)
LATE_AFTER, DISCARD_AFTER = 3 * HOUR, 21 * DAY
_SHARED: dict[str, Any] = {
    "inputs": ("orders",), "keys": ("region",), "measures": {"n": Count()}, "where": "status <> 'cancelled'",
    "columns": {"region": "region", "on": "ordered_at"},
}  # fmt: skip
DAILY = Aggregate(name="daily", window=Tumbling(on="on", size="1 day"), **_SHARED)
SLIDING = Aggregate(name="sliding", window=Hopping(on="on", size="6 hours", every="2 hours"), **_SHARED)
ITEMS = Aggregate(  # the characters of the customer's name, each a day later than the one before
    name="items", explode=Explode(name="item", array="sequence(0, char_length(customer) - 1)"),
    window=Tumbling(on="on", size="1 day"),
    **{**_SHARED, "columns": {
        "region": "region", "on": "ordered_at + make_dt_interval(CAST(item DIV 2 AS INT))",
    }},
)  # fmt: skip
ARRIVED = Aggregate(
    name="arrived", window=Tumbling(on="on", size="1 day"),
    **{**_SHARED, "columns": {"region": "region", "on": "_timestamp"}},
)  # fmt: skip
ZONE = "Australia/Lord_Howe"
LOCAL = Aggregate(name="local", window=Tumbling(on="on", size="1 day", time_zone=ZONE), **_SHARED)
Told = dict[datetime, tuple[datetime, int, int, datetime, datetime]]
"""By the window's start: its end, late, discarded, the first and the last that came."""


def aligned(at: datetime, size: timedelta) -> datetime:
    return at - (at - EPOCH) % size


def windows(table: Aggregate, event: dict[str, Any], came: datetime) -> set[tuple[datetime, datetime]]:
    """The windows that a record is in, or would be."""
    at = event["ordered_at"]
    if table is SLIDING:
        last = aligned(at, 2 * HOUR)
        return {(last - hop * 2 * HOUR, last - hop * 2 * HOUR + 6 * HOUR) for hop in range(3)}
    if table is LOCAL:
        return {window_at(ZONE, at)}
    if table is ITEMS:
        days = {aligned(at, DAY) + item // 2 * DAY for item in range(len(event["customer"]))}
    else:
        days = {aligned(came if table is ARRIVED else at, DAY)}
    return {(day, day + DAY) for day in days}


def expected(table: Aggregate, records: Records, schema: dict[str, Any], schema_id: int) -> Told:
    judged = judge(records, {schema_id: schema})
    valid, parsed = set(judged.rows), fastavro.parse_schema(schema, named_schemas={})
    came: dict[tuple[datetime, datetime], list[datetime]] = defaultdict(list)
    counts: dict[tuple[datetime, datetime], list[int]] = defaultdict(lambda: [0, 0])
    for row, value in enumerate(records.values):
        discarded = judged.refused.get(row, ("", []))[0] == "too_late"
        if not discarded and row not in valid:
            continue
        assert value is not None
        event: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed, None)
        at = EPOCH + timedelta(milliseconds=records.timestamps_ms[row])
        lateness = at - event["ordered_at"]
        assert discarded == (lateness > DISCARD_AFTER)
        late = lateness > LATE_AFTER and table is not ARRIVED  # nothing is late by when it came
        if event["status"] == "cancelled" or not (discarded or late):
            continue
        for window in windows(table, event, at):
            counts[window][discarded] += 1
            came[window].append(at)
    return {
        start: (end, *counts[start, end], min(came[start, end]), max(came[start, end]))
        for start, end in counts
    }


def told(log: Log, table: Aggregate) -> Told:
    text = table.late(f"({log.late_sql(relation_sql(log.path))})")
    assert text is not None
    found: Told = {}
    for start, *values in log.spark.sql(text).collect():
        found[start.astimezone(UTC)] = tuple(  # type: ignore[assignment]
            value.astimezone(UTC) if isinstance(value, datetime) else value for value in values
        )
    return found


def test_what_came_late_is_told_for_every_window_as_kafka_s_records_say(stage: Stage) -> None:
    stage.create()
    now = datetime.now(UTC).replace(microsecond=0)
    for number, ago in enumerate((MINUTES, 4 * HOUR, 5 * HOUR, DAY, 9 * DAY, 22 * DAY, 22 * DAY, 400 * DAY)):
        changes = {"ordered_at": now - ago, "customer": "anna" * (1 + number % 2)}
        stage.orders(f"a{number}", partition=number % 2, **changes)
        stage.orders(f"c{number}", status="cancelled", **changes)
    stage.orders("a2", partition=0, ordered_at=now - 5 * HOUR)  # counted already
    stage.orders("broken", ordered_at=now - 5 * HOUR, amount=Decimal("-1"))
    stage.orders("b", ordered_at=now - 30 * DAY)
    log = stage.run()
    records, _ = read(stage.broker.login.client(), stage.topic.name)

    for table in (DAILY, SLIDING, ITEMS, ARRIVED, LOCAL):
        found = told(log, table)

        assert found == expected(table, records, stage.schema, stage.schema_id), table.name
        assert sum(row[2] for row in found.values()) >= 4, table.name
        assert any(row[1] for row in found.values()) == (table is not ARRIVED), table.name


def test_what_was_judged_again_is_discarded_no_more(stage: Stage) -> None:
    stage.create()
    stage.orders("a", "b", ordered_at=datetime.now(UTC) - 30 * DAY)
    log = stage.run()
    assert [row[2] for row in told(log, DAILY).values()] == [2]

    again = log.all(0, 1).where("offset = 0").drop("verdict", "reasons", "late", "replay", "batch")
    changed = "'valid' AS verdict", "CAST(array() AS array<string>) AS reasons", "true AS late"
    copies = again.selectExpr("*", *changed, "true AS replay", "2L AS batch")
    copies.write.format("delta").mode("append").save(str(log.path))

    assert [row[1:3] for row in told(log, DAILY).values()] == [(1, 1)]


def test_a_table_without_windows_of_time_tells_nothing_of_what_came_late() -> None:

    told = {table.name for table in TABLES if table.late("records") is not None}

    assert told == {"sales_per_region"}
