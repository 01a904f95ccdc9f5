"""Tables of every sort over orders, and how they change: what tests about sampled changes are over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.releases.buyers import BUYERS, NEWEST, SPENT
from tests.releases.regrets import GONE, PAID, REGRETS
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.history import History
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.windows import Hopping, Tumbling

COLUMNS = {
    "customer": "customer", "order_id": "order_id", "at": "ordered_at", "amount": "amount",
    "price": "CAST(order_id AS double) / 4",  # a sum of such doubles is the same in any order
}  # fmt: skip
OF_CUSTOMER: dict[str, Any] = {"inputs": ("orders",), "columns": COLUMNS, "keys": ("customer",)}
MINUTES = Aggregate(
    name="minutes", window=Tumbling(on="at", size="1 minute"), **OF_CUSTOMER,
    measures={"n": Count(), "sales": Sum("amount"), "average": Avg("price")},
)  # fmt: skip
LINES = Events(name="lines", inputs=("orders",), columns={"order_id": "order_id", "amount": "amount"})
VISITS = Sessions(name="visits", on="at", gap="12 seconds", measures={"n": Count()}, **OF_CUSTOMER)
TABLES: dict[str, Any] = {
    table.name: table
    for table in (
        SPENT, NEWEST, BUYERS, MINUTES, LINES, PAID, GONE, REGRETS, VISITS,
        replace(MINUTES, name="hops", window=Hopping(on="at", size="2 minutes", every="1 minute")),
        Rolling(name="lately", of="minutes", last=("1 minute", "1 hour")),
        TopRows(name="dearest", order=("amount",), rows=2, values=("order_id",), **OF_CUSTOMER),
        History(name="prices", order=("at",), values=("amount",), **OF_CUSTOMER),
    )
}  # fmt: skip
NO_CANCELLED = "status <> 'cancelled'"
DEARER = COLUMNS | {"amount": "CAST(amount * 2 AS decimal(12,2))"}
CHANGED: dict[str, Any] = {
    **TABLES,
    "spent": replace(SPENT, where=NO_CANCELLED),
    "newest": replace(NEWEST, where="order_id < 145"),
    "minutes": replace(MINUTES, where="order_id % 7 <> 0"),
    "hops": replace(TABLES["hops"], where=NO_CANCELLED),
    "lines": replace(LINES, columns={"order_id": "order_id", "amount": "-amount"}),
    "gone": replace(GONE, where="status = 'cancelled' AND order_id % 20 = 0"),
    "visits": replace(VISITS, gap="5 seconds"),
    "dearest": replace(TABLES["dearest"], rows=1),
    "prices": replace(TABLES["prices"], columns=DEARER),
}
"""What reads one of those changes with it: `buyers`, `regrets`, `lately`."""
_WINDOW = {"window_start": "timestamp", "window_end": "timestamp"}
_SEEN = {"customer": "string", "order_id": "bigint", "at": "timestamp"}
_MEASURED = {"n": "bigint", "sales": "decimal(38,2)", "average": "double"}
PROMISED = {
    "spent": {"customer": "string", "spent": "decimal(38,2)"},
    "newest": {"customer": "string", "status": "string"},
    "buyers": {"customer": "string", "spent": "decimal(38,2)", "status": "string"},
    "minutes": {"customer": "string", **_WINDOW, **_MEASURED, "final": "boolean"},
    "hops": {"customer": "string", **_WINDOW, **_MEASURED, "final": "boolean"},
    "lines": {"order_id": "bigint", "amount": "decimal(12,2)"},
    "paid": _SEEN,
    "gone": _SEEN,
    "regrets": {"customer": "string", "paid": "bigint", "cancelled": "bigint", "final": "boolean"},
    "visits": {"customer": "string", "session_start": "timestamp", "session_end": "timestamp",
               "n": "bigint", "final": "boolean"},
    "lately": {**_WINDOW, "last": "string", "customer": "string", **_MEASURED},
    "dearest": {"customer": "string", "place": "int", "order_id": "bigint"},
    "prices": {"customer": "string", "valid_from": "timestamp", "valid_to": "timestamp",
               "is_current": "boolean", "amount": "decimal(12,2)"},
}  # fmt: skip
