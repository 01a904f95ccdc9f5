"""What is small is read by one task, and nothing exchanges its rows, whatever a view asks of large tables."""

from __future__ import annotations

import pytest

from tests.reading.conftest import Released, SqlServer

pytestmark = pytest.mark.services


@pytest.mark.parametrize("asked", [
    "SELECT region, sum(orders) FROM serve.sales_per_region GROUP BY region",
    "SELECT region, count(*) FROM (SELECT /*+ REPARTITION(region) */ * FROM serve.sales_per_region) "
    "GROUP BY region",
])  # fmt: skip
def test_no_rows_of_a_small_table_are_exchanged(sql: SqlServer, released: Released, asked: str) -> None:
    (plan,) = sql.rows(f"EXPLAIN {asked}")

    assert "HashAggregate" in plan["plan"] and "Exchange" not in plan["plan"]
