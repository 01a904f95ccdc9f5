"""What is said of a version that reads tables while one of these is stalled, or its definition is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from twinlake.base.waiting import wait_for
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.windows import Tumbling
from twinlake.lake.catalog.version import Health
from twinlake.releases.gate_checks import Check, lag_check

SHARE = "CAST(100 / amount AS decimal(12,2))"
MINUTES = Aggregate(
    name="minutes", inputs=("orders",), keys=("region",), window=Tumbling(on="at", size="1 minute"),
    columns={"region": "region", "at": "ordered_at", "share": SHARE}, measures={"shares": Sum("share")},
)  # fmt: skip
LATELY = Rolling(name="lately", of="minutes", last=("1 minute", "2 minutes"))
TOTALS = Derived(
    name="totals", reads=("lately",), columns=("last", "shares"), keys=("last",), by=("last",),
    sql="SELECT last, sum(shares) AS shares FROM lately GROUP BY last",
)  # fmt: skip
TABLES: dict[str, Kind] = {table.name: table for table in (MINUTES, LATELY, TOTALS)}
NULLED = MINUTES.columns | {"share": SHARE.replace("amount", "nullif(amount, 0)")}
CURED = TABLES | {
    "minutes": replace(MINUTES, columns=NULLED),
    "lately": replace(LATELY, last=("1 minute",)),
}
PROMISED = {
    "minutes": {
        "region": "string", "window_start": "timestamp", "window_end": "timestamp", "shares": "decimal(38,2)",
        "final": "boolean",
    },
    "lately": {
        "window_start": "timestamp", "window_end": "timestamp", "last": "string", "region": "string",
        "shares": "decimal(38,2)",
    },
    "totals": {"last": "string", "shares": "decimal(38,2)"},
}  # fmt: skip


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """Its tables are stalled after three minutes of orders: the next one is an order of nothing."""
    with promised_lake(spark, tmp_path, PROMISED) as lake:
        lake.promote(lake.build(TABLES))
        lake.append([order(number) for number in range(1, 200)])
        minutes, versions = lake.server.lake.version("minutes"), lake.server.lake.versions
        wait_for("the first batch", lambda: versions.position(minutes)["orders"] or None, 60)
        hours_later = range(20_000, 20_010)
        lake.append([order(number, amount=Decimal("0.00")) for number in hours_later])
        wait_for("it to stall", lambda: any(one.stalled for one in versions.health()) or None, 120)
        yield lake


@pytest.mark.faults
def test_what_is_shown_of_the_time_before_the_watermark_is_compared_where_a_table_below_stopped(
    lake: Lake,
) -> None:
    """Without its watermark a rolling window has no rows, and nothing would differ from nothing."""
    plan = lake.build(CURED)

    found = {name: lake.do("diff", table=name, plan=plan) for name in ("lately", "totals")}

    told = ("common", "changed", "only_blue", "only_green", "equal", "position")
    assert {name: tuple(one[what] for what in told) for name, one in found.items()} == {
        "lately": (5, 0, 5, 0, False, {"orders": 1}),
        "totals": (1, 0, 1, 0, False, {"orders": 1}),
    }
    assert {sample["key"]["last"] for sample in found["lately"]["samples"]} == {"2 minutes"}


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (None, "the version is stalled; it reads its logs, and has no lag"),
        (
            {"what": "buyers reads topic refunds, which is not open"},
            "the version is stalled; buyers reads topic refunds, which is not open",
        ),
    ],
)
def test_a_stalled_version_without_a_lag_does_not_pass(error: dict[str, Any] | None, detail: str) -> None:
    """As one is whose definition cannot be read: nobody knows how far it is."""
    health = Health(table="buyers", version="b-1", position={}, stalled=True, error=error)

    assert lag_check(health) == Check(table="buyers", name="lag", passed=False, detail=detail)
