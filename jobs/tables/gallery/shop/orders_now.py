"""The orders as their database has them."""

from twinlake.kinds.latest import Latest
from twinlake.kinds.mirror import mirror

TABLE = Latest(
    name="orders_now",
    inputs=("shop_orders",),
    **mirror("mysql", keys=("id",), values=("customer_id", "amount")),
)
