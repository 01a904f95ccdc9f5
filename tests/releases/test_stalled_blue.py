"""A live version that an expression has stopped is shown as such, and the next release resolves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import sales_per_region
from tests.project import TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.waiting import wait_for
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog import release_log

SALES = sales_per_region.TABLE
SHARE = "CAST(100 / amount AS decimal(12,2))"


def tables(amount: str) -> dict[str, Kind]:
    """The project's tables, the sales with another amount."""
    changed = replace(SALES, columns={**SALES.columns, "amount": amount})
    return {**{table.name: table for table in TABLES}, SALES.name: changed}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """Release 1 divides by the amount; the second batch has an order of nothing."""
    with following_sql_server(tmp_path / "lake") as sql_url:
        lake = Lake(spark, tmp_path, sql_url)
        lake.promote(lake.build(tables(SHARE)))
        lake.append([order(number) for number in range(1, 40)])
        version = lake.server.lake.version(SALES.name)
        wait_for("the first batch", lambda: lake.server.lake.versions.position(version)["orders"] or None, 60)
        lake.append([order(40), order(41, amount=Decimal("0.00")), order(42)])
        yield lake
        lake.stop()


def shown(lake: Lake) -> dict[str, Any]:
    """The live version of the sales as `twinlake status` gets it, once it is stalled."""

    def stalled() -> dict[str, Any] | None:
        versions = lake.server.status()["versions"]
        return next((one for one in versions if one["table"] == SALES.name and one["stalled"]), None)

    return wait_for("the version to be stalled", stalled, 120)


@pytest.mark.faults
def test_status_names_record_and_expression_and_a_new_definition_resolves_it(lake: Lake) -> None:
    blue = shown(lake)
    plan = lake.build(tables(SHARE.replace("amount", "nullif(amount, 0)")))
    report = wait_for("readers to be told", lake.told_of_some, 60)
    compared = lake.do("diff", table=SALES.name, plan=plan)
    gate = lake.do("gate", plan=plan)
    lake.promote(plan)

    assert (
        f"column amount ({SHARE}) raises for orders (epoch 0, partition 0, offset 40)"
        in (blue["error"]["what"])
    )
    (told,) = report.stalled
    assert (told.table, told.version, told.position) == (SALES.name, blue["version"], {"orders": 1})
    assert told.why.startswith(blue["error"]["what"])
    assert blue["position"] == {"orders": 1} and blue["lag_records"] == 3
    # both sides where blue stopped, and nothing differs there
    assert (compared["position"], compared["equal"], compared["common"]) == ({"orders": 1}, True, 5)
    assert gate["passed"], gate["checks"]
    live = release_log.live(lake.path)
    assert live is not None and live.number == 2 and live.positions[SALES.name] == {"orders": 2}
