"""The orders as their database has them."""

from twinlake import Latest, mirror

TABLE = Latest(
    name="orders_now",
    inputs=("shop_orders",),
    **mirror("mysql", keys=("id",), values=("customer_id", "amount")),
)
