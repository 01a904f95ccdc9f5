"""A sample of a log that retention has shortened, and of a table that has stopped, says what it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.project import PROJECT, TABLES
from tests.releases.lake import Lake, append_orders, order
from twinlake.base.times import utc_now
from twinlake.base.waiting import wait_for

DEFINED: dict[str, Any] = {table.name: table for table in TABLES}
SALES = DEFINED["sales_per_region"]
RETENTION = "\nslaProperties:\n  - {property: retention, value: 30, unit: days}\n"
SHARE = "CAST(100 / amount AS decimal(12,2))"


def sales(**changed: Any) -> dict[str, Any]:
    return DEFINED | {SALES.name: replace(SALES, **changed)}


def priced(amount: str) -> dict[str, Any]:
    return sales(columns={**SALES.columns, "amount": amount})


def sample(lake: Lake, definitions: dict[str, Any], **params: Any) -> dict[str, Any]:
    given = {name: table.to_json() for name, table in definitions.items()}
    return lake.do("sample", table=SALES.name, definitions=given, **params)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Ours, whose orders are kept for 30 days."""
    folder = tmp_path / "project"
    shutil.copytree(PROJECT / "schemas", folder / "schemas")
    shutil.copytree(PROJECT / "contracts", folder / "contracts")
    with (folder / "contracts" / "orders.yaml").open("a") as contract:
        contract.write(RETENTION)
    return folder


@pytest.fixture
def shortened(spark: SparkSession, tmp_path: Path, project: Path) -> Iterator[Lake]:
    """A lake of 20 orders of today, and 60 of January that retention has deleted: all that reads them has
    states."""
    lake = Lake(spark, tmp_path / "home", project=project)
    lake.promote(lake.build({name: table for name, table in DEFINED.items() if table.stores_rows}))
    append_orders(lake, 60)
    now = utc_now()
    lake.append([order(n, ordered_at=now + timedelta(milliseconds=n)) for n in range(100, 120)])
    for version in lake.server.lake.versions.living():
        position = {"orders": lake.server.lake.logs["orders"].end()}
        wait_for(
            "the tables", lambda one=version, at=position: lake.server.lake.versions.position(one) == at, 60
        )
    assert lake.do("expire")["topics"][0]["deleted"]
    yield lake
    lake.stop()


@pytest.mark.faults
@pytest.mark.parametrize("params", [{"records": 1_000}, {"records": 1_000, "keys": 5}], ids=["all", "keys"])
def test_neither_version_has_what_retention_has_deleted(shortened: Lake, params: dict[str, int]) -> None:
    found = sample(shortened, sales(where="status <> 'cancelled'"), **params)
    orders = next(one for one in found["comparison"]["columns"] if one["name"] == "orders")

    assert (orders["blue_total"], orders["green_total"]) == ("20", "18")
    assert (found["sample"]["records"], found["sample"]["of_records"]) == (20, 20)
    deleted = "Retention has deleted the records of topic orders up to 2026-01-31T12:00:59Z"
    assert deleted in found["limits"][-1]
    assert not found["cost"]["reaches_back"] and "retention has deleted" in found["cost"]["history"]


@pytest.mark.faults
def test_a_table_that_an_expression_has_stopped_is_judged_and_what_raises_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path)
    try:
        lake.promote(lake.build(priced(SHARE)))
        lake.append([order(number) for number in range(1, 4)] + [order(4, amount=Decimal("0.00"))])
        found = sample(lake, priced(SHARE.replace("amount", "nullif(amount, 0)")))
    finally:
        lake.stop()

    raises = f"column amount ({SHARE}) raises for orders (epoch 0, partition 0, offset 3)"
    compared = found["comparison"]
    assert raises in compared["blue_raises"] and not found["equal"]
    by_name = {one["name"]: one["changed"] for one in compared["columns"]}
    assert (compared["common"], by_name["orders"], by_name["sales"]) == (4, 0, 3)
