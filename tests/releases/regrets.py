"""Orders that were paid or cancelled, and which came shortly after which: what joins are over."""

from __future__ import annotations

from dataclasses import replace

from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.store import Store

COLUMNS = {"customer": "customer", "order_id": "order_id", "at": "ordered_at"}
STORE = Store(keys=("customer",), on="at", cell="1 minute")
PAID = Events(name="paid", inputs=("orders",), where="status = 'paid'", columns=COLUMNS, store=STORE)
GONE = Events(
    name="gone", inputs=("orders",), where="status = 'cancelled'", columns=COLUMNS,
    store=replace(STORE, back="20 seconds"),
)  # fmt: skip
REGRETS = IntervalJoin(
    name="regrets", left="paid", right="gone", on=("customer",), how="left", after="20 seconds",
    columns={"paid": "left.order_id", "cancelled": "right.order_id"},
)  # fmt: skip
