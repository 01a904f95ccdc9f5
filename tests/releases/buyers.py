"""Two tables of orders, and one that reads them: what tests about releases of views are over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum

SPENT = Aggregate(
    name="spent", inputs=("orders",), columns={"customer": "customer", "amount": "amount"},
    keys=("customer",), measures={"spent": Sum("amount")},
)  # fmt: skip
COUNTED = replace(SPENT, name="counted", measures={"n": Count()})
NEWEST = Latest(
    name="newest", inputs=("orders",), keys=("customer",), order=("at",), values=("status",),
    columns={"customer": "customer", "status": "status", "at": "ordered_at"},
)  # fmt: skip
BUYERS = Derived(
    name="buyers", reads=("spent", "newest"), columns=("customer", "spent", "status"), keys=("customer",),
    by=("customer",), sql="SELECT customer, spent, status FROM newest LEFT JOIN spent USING (customer)",
)  # fmt: skip
LARGE = replace(
    BUYERS, reads=("spent", "newest", "counted"),
    sql="""
        SELECT customer, spent, status FROM newest LEFT JOIN spent USING (customer)
        JOIN counted USING (customer) WHERE n > 1
    """,
)  # fmt: skip
TABLES: dict[str, Any] = {table.name: table for table in (SPENT, NEWEST, BUYERS)}
CHANGED: dict[str, Any] = {
    **TABLES, "spent": replace(SPENT, where="status <> 'cancelled'"), "counted": COUNTED, "buyers": LARGE,
}  # fmt: skip
"""One table has other rows, one is new, and the view reads both."""
PROMISED = {
    "spent": {"customer": "string", "spent": "decimal(38,2)"},
    "counted": {"customer": "string", "n": "bigint"},
    "newest": {"customer": "string", "status": "string"},
    "buyers": {"customer": "string", "spent": "decimal(38,2)", "status": "string"},
}
