"""No table has the name of the view that stands beside another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jobs.kinds.aggregate import Aggregate
from jobs.releases import check as module
from jobs.releases.check import check
from jobs.settings import PROJECT
from jobs.tables import latest_order, sales_per_region

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES: Aggregate = sales_per_region.TABLE


@pytest.mark.parametrize(
    ("table", "refused"),
    [(SALES, True), (replace(SALES, window=None), False), (latest_order.TABLE, False)],
    ids=["with windows", "without", "of another kind"],
)
def test_a_table_named_like_the_view_of_what_came_late_is_refused_at_its_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: Aggregate, refused: bool
) -> None:
    other = replace(SALES, name=f"{table.name}_LATE", window=None, place=SALES.place)
    monkeypatch.setattr(module, "defined", lambda examples: (table, other))

    found = [str(problem) for problem in check(PROJECT, lambda: spark).problems]

    why = f"it has the name of the view of what came late for {table.name}"
    assert [problem.split(": ")[0] for problem in found if why in problem] == (
        [f"jobs/tables/sales_per_region.py:{SALES.place.line}"] if refused and SALES.place else []
    )
