"""Joins and rolling windows are built, verified, compared and released together with what they read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kill.views import Views
from tests.releases.lake import START, Lake, following_sql_server, order
from tests.releases.promised import project_of
from tests.releases.regrets import COLUMNS, GONE, PAID, REGRETS
from twinlake.base.errors import DifferenceError
from twinlake.base.job import Run
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.windows import Tumbling
from twinlake.lake.catalog import release_log

REACH = timedelta(seconds=20)
BEFORE = AsOfJoin(
    name="before", left="paid", right="gone", on=("customer",),
    columns={"paid": "left.order_id", "cancelled": "right.order_id"},
)  # fmt: skip
MINUTES = Aggregate(
    name="minutes", inputs=("orders",), columns=COLUMNS, keys=("customer",),
    window=Tumbling(on="at", size="1 minute"), measures={"n": Count()},
)  # fmt: skip
LATELY = Rolling(name="lately", of="minutes", last=("1 minute", "1 hour"))
TABLES: dict[str, Kind] = {one.name: one for one in (LATELY, REGRETS, BEFORE, PAID, GONE, MINUTES)}
CHANGED = TABLES | {"gone": replace(GONE, where="status = 'cancelled' AND order_id % 20 = 0")}
SEEN = {"customer": "string", "order_id": "bigint", "at": "timestamp"}
PROMISED = {
    "paid": SEEN,
    "gone": SEEN,
    "regrets": {"customer": "string", "paid": "bigint", "cancelled": "bigint", "final": "boolean"},
    "before": {"customer": "string", "paid": "bigint", "cancelled": "bigint", "final": "boolean"},
    "minutes": {
        "customer": "string", "window_start": "timestamp", "window_end": "timestamp", "n": "bigint",
        "final": "boolean",
    },
    "lately": {
        "window_start": "timestamp", "window_end": "timestamp", "last": "string", "customer": "string",
        "n": "bigint",
    },
}  # fmt: skip
Row = tuple[str, int, int | None]
"""Customer, the paid order and the cancelled one."""


def joined(records: Iterable[Mapping[str, Any]], every: int) -> tuple[list[Row], list[Row]]:
    """What both joins show, where only each so-many-th order is taken for cancelled."""
    paid = [one for one in records if one["status"] == "paid"]
    gone = [one for one in records if one["status"] == "cancelled" and one["order_id"] % every == 0]
    near: list[Row] = []
    before: list[Row] = []
    for one in paid:
        of = [other for other in gone if other["customer"] == one["customer"]]
        late = [
            other["order_id"]
            for other in of
            if timedelta(0) <= other["ordered_at"] - one["ordered_at"] <= REACH
        ]
        near += [(one["customer"], one["order_id"], number) for number in late or [None]]
        last = max(
            (other["order_id"] for other in of if other["ordered_at"] <= one["ordered_at"]), default=None
        )
        before.append((one["customer"], one["order_id"], last))
    return sorted(near, key=str), sorted(before, key=str)


def shown(lake: Lake, views: Views) -> tuple[list[Row], list[Row]]:
    """Both joins, as soon as every live version has taken what was appended."""
    versions, live = lake.server.lake.versions, release_log.live(lake.path)
    assert live is not None
    versions.pin_together([versions.get(*one) for one in live.tables.items()], Run(id="settle"))
    views.follow()
    near, before = (
        [
            (row["customer"], row["paid"], row["cancelled"])
            for row in views.rows(f"SELECT * FROM serve.{name}")
        ]
        for name in ("regrets", "before")
    )
    return sorted(near, key=str), sorted(before, key=str)


@pytest.mark.faults
def test_joins_and_rolling_windows_are_released_together_with_what_they_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = [order(number, customer=f"c{number % 7}") for number in range(150)]
    with following_sql_server(tmp_path / "home" / "lake") as sql_url:
        lake = Lake(spark, tmp_path / "home", sql_url, project_of(tmp_path / "project", PROMISED))
        views = Views(spark, lake.path)
        try:
            lake.promote(lake.build(TABLES))
            lake.append(records[:70])
            first = shown(lake, views)
            plan = lake.build(CHANGED)
            lake.append(records[70:])
            found = {name: lake.do("diff", table=name, plan=plan) for name in ("regrets", "before")}
            second = shown(lake, views)
            verified = [lake.do("verify", table=name)["equal"] for name in TABLES]
            lake.promote(plan)
            third = shown(lake, views)
            lately = views.rows("SELECT * FROM serve.lately")
            gone = lake.server.lake.version("gone")
            spark.sql(f"DELETE FROM delta.`{gone.path(lake.path)}` WHERE NOT _home")
            with pytest.raises(DifferenceError, match="keys of regrets"):
                lake.do("verify", table="regrets")
        finally:
            views.close()
            lake.stop()

    assert (first, second) == (joined(records[:70], 10), joined(records, 10)) and first != second
    assert third == joined(records, 20) != second
    assert verified == [True] * len(TABLES)
    assert {name: one["position"] for name, one in found.items()} == {name: {"orders": 2} for name in found}
    assert found["before"]["changed"] > 0 and found["regrets"]["only_blue"] > 0
    assert rolled(lately) == {
        (last, f"c{customer}"): len([n for n in within if n % 7 == customer])
        for last, within in (("1 minute", range(60, 120)), ("1 hour", range(120)))
        for customer in range(7)
    }


def rolled(rows: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    """By length and customer; the watermark is in the third minute."""
    end: set[datetime] = {row["window_end"].astimezone(UTC) for row in rows}
    assert end == {START + timedelta(minutes=2)}
    return {(row["last"], row["customer"]): row["n"] for row in rows}
