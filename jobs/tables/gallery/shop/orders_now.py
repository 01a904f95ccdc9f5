"""The orders as their database has them."""

from jobs.kinds.latest import Latest
from jobs.kinds.mirror import mirror

TABLE = Latest(
    name="orders_now",
    inputs=("shop_orders",),
    **mirror("mysql", keys=("id",), values=("customer_id", "amount")),
)
