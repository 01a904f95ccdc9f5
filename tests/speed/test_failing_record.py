"""A record for which an expression raises stalls its version alone, and the error names both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.history import LATEST, SALES, MemoryLog, Orders, version_of
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.batch.merge import merge_small
from twinlake.kinds.kind import Kind
from twinlake.kinds.steps import Explode
from twinlake.lake.catalog.failing_record import failing_record
from twinlake.lake.catalog.version import Version
from twinlake.speed import owner as module
from twinlake.speed.versions import Versions

RUN = Run(id="test")
SHARE = "CAST(100 / amount AS decimal(12,2))"
RISKY = replace(SALES, columns={**SALES.columns, "amount": SHARE})
CAREFUL = replace(
    SALES, columns={**SALES.columns, "amount": "CAST(100 / nullif(amount, 0) AS decimal(12,2))"}
)


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> MemoryLog:
    return MemoryLog(spark, tmp_path)


@pytest.fixture
def versions(log: MemoryLog, tmp_path: Path) -> Iterator[Versions]:
    made = Versions(tmp_path, {"orders": log}, merge_small)
    for table in (RISKY, LATEST):
        made.start(version_of(table))
    yield made
    made.stop()


def free(orders: Orders) -> dict[str, Any]:
    """A valid order of nothing."""
    return {**orders.record(), "amount": Decimal("0.00")}


def offered(versions: Versions, log: MemoryLog, records: list[dict[str, Any]]) -> None:
    end = log.append(records)
    versions.offer("orders", log.metadata(), log.rows(end - 1, end))


def error(versions: Versions, version: Version) -> dict[str, str]:
    """What stalls the version, once it is stalled."""

    def stalled() -> dict[str, str] | None:
        return next(one.error for one in versions.health() if one.table == version.table)

    return wait_for("the version to be stalled", stalled, 120)


@pytest.mark.parametrize("at_once", [True, False], ids=["from memory", "in a catch-up"])
def test_the_stalled_version_names_coordinate_and_expression_and_the_others_go_on(
    versions: Versions, log: MemoryLog, at_once: bool
) -> None:
    orders, version = Orders(1), version_of(RISKY)
    offered(versions, log, orders.batch(10))
    versions.advance_to(version, {"orders": 1}, RUN)
    frees = [free(orders), free(orders)]
    records = [*orders.batch(5), frees[0], *orders.batch(5), frees[1]]
    bad = min(frees, key=lambda record: (record["_partition"], record["_offset"]))
    if at_once:
        offered(versions, log, records)
    else:
        log.append(records)
        offered(versions, log, orders.batch(3))
    offered(versions, log, orders.batch(3))

    told = error(versions, version)

    place = f"(epoch 0, partition {bad['_partition']}, offset {bad['_offset']})"
    assert told["what"] == (
        f"{version} does not advance from batch 1: column amount ({SHARE}) raises for orders {place}"
    )
    assert "DIVIDE_BY_ZERO" in told["why"] and "try_divide" in told["remedy"]
    assert (told["topic"], told["offset"]) == ("orders", str(bad["_offset"]))
    assert versions.advance_to(version_of(LATEST), {"orders": log.end()}, RUN)["orders"] == log.end()
    assert [one.table for one in versions.health() if one.stalled] == [RISKY.name]


@pytest.mark.faults
def test_the_record_is_looked_for_once_and_no_other_error_is_laid_at_its_door(
    versions: Versions, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, version, asked = Orders(2), version_of(RISKY), []
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(module, "failing_record", lambda *given: asked.append(1) or failing_record(*given))
    offered(versions, log, [*orders.batch(3), free(orders)])
    owner = versions.owner(version)
    wait_for("three failures", lambda: owner.failures >= 3 or None, 120)
    searched = len(asked)

    def full(*_: Any) -> None:
        raise OSError("no space left on the disk")

    monkeypatch.setattr(module, "advance", full)
    failed = owner.failures
    wait_for("another failure", lambda: owner.failures > failed or None, 120)

    assert searched == 1 and "no space left" in error(versions, version)["why"]


def test_a_new_definition_beside_it_goes_past_the_record(versions: Versions, log: MemoryLog) -> None:
    orders, green = Orders(3), version_of(CAREFUL, build=2)
    offered(versions, log, [*orders.batch(10), free(orders)])
    error(versions, version_of(RISKY))

    versions.start(green)

    assert versions.advance_to(green, {"orders": 1}, RUN) == {"orders": 1}


def rows(spark: SparkSession, log: MemoryLog, count: int = 20) -> DataFrame:
    """So many orders, the last one of nothing."""
    orders = Orders(4)
    log.append([*orders.batch(count - 1), free(orders)])
    return log.rows(0, 1)


@pytest.mark.parametrize(
    ("table", "blamed"),
    [
        (replace(SALES, where="100 / amount > 1"), "where (100 / amount > 1)"),
        (replace(SALES, where="amount <> 0", columns=RISKY.columns), None),
        (replace(LATEST, columns={**LATEST.columns, "amount": "amount"}, delete_when="1 / amount > 5"),
         "delete_when (1 / amount > 5)"),
        (replace(SALES, explode=Explode(name="part", array="array(amount, 1 / amount)")),
         "explode (array(amount, 1 / amount))"),
        (CAREFUL, None),
    ],
)  # fmt: skip
def test_every_expression_is_tried_over_the_rows_that_it_sees(
    spark: SparkSession, log: MemoryLog, table: Kind, blamed: str | None
) -> None:
    found = failing_record(table, rows(spark, log))

    assert (found.expression if found else None) == blamed
