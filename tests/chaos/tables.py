"""The tables of a run beside the project's own, and how a release changes them.

`tag` is in the rows of two tables: a reader who gets different ones has met a mixture of releases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobs.tables import latest_order, orders, sales_per_region
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store

_COLUMNS = {name: name for name in ("region", "customer", "amount", "ordered_at")}
_STORE = Store(keys=("customer",), on="ordered_at", cell="10 minutes", back="1 minute", ahead="1 minute")
ASKED = Events(
    name="asked", inputs=("orders",), where="status = 'pending' AND amount > 100", columns=_COLUMNS,
    store=_STORE,
)  # fmt: skip
CANCELLED = replace(ASKED, name="cancelled", where="status = 'cancelled' AND amount > 150")
NEAR = IntervalJoin(
    name="near", left="asked", right="cancelled", on=("customer",), how="left",
    before="30 seconds", after="1 minute", columns={"asked": "left.amount", "undone": "right.amount"},
)  # fmt: skip
GAP = Derived(
    name="gap", reads=("totals", "sales_per_region"), columns=("region", "records", "missing"),
    keys=("region",), by=("region",),
    sql="""
        SELECT region, records, records - coalesce(shown, 0) AS missing
        FROM totals LEFT JOIN (SELECT region, sum(orders) AS shown FROM sales_per_region GROUP BY region)
        USING (region)
    """,
)  # fmt: skip

_SUMS = {"spent": "decimal(38,2)", "records": "bigint"}
_ORDER = {"region": "string", "customer": "string", "amount": "decimal(12,2)", "ordered_at": "timestamp"}
PROMISED = {
    "totals": {"region": "string", "tag": "int", **_SUMS, "buyers": "bigint"},
    "visits": {
        "customer": "string",
        "tag": "int",
        "session_start": "timestamp",
        "session_end": "timestamp",
        **_SUMS,
        "final": "boolean",
    },
    "asked": _ORDER,
    "cancelled": _ORDER,
    "near": {"customer": "string", "asked": "decimal(12,2)", "undone": "decimal(12,2)", "final": "boolean"},
    "gap": {"region": "string", "records": "bigint", "missing": "bigint"},
}
"""By table, columns and types that its contract promises."""


def without_cancelled(tag: int) -> bool:
    """Every other definition of the sales leaves them out."""
    return tag % 2 == 1


def tables(tag: int) -> tuple[Kind, ...]:
    """Every table, as it is with this tag."""
    tagged = {**_COLUMNS, "tag": f"{tag}"}
    totals = Aggregate(
        name="totals", inputs=("orders",), columns=tagged, keys=("region", "tag"),
        measures={
            "spent": Sum("amount"), "records": Count(), "buyers": CountDistinct("customer", exact=True),
        },
    )  # fmt: skip
    visits = Sessions(
        name="visits", inputs=("orders",), columns=tagged, keys=("customer", "tag"), on="ordered_at",
        gap="5 minutes", grid="1 hour", measures={"spent": Sum("amount"), "records": Count()},
    )  # fmt: skip
    sales = replace(sales_per_region.TABLE, where="status <> 'cancelled'" if without_cancelled(tag) else None)
    return (orders.TABLE, sales, latest_order.TABLE, totals, visits, ASKED, CANCELLED, NEAR, GAP)


def definitions(tag: int) -> dict[str, Any]:
    return {table.name: table.to_json() for table in tables(tag)}
