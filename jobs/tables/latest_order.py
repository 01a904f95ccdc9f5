"""The newest order of each customer."""

from twinlake import Latest

TABLE = Latest(
    name="latest_order",
    inputs=("orders",),
    columns={
        "customer": "customer",
        "order_id": "order_id",
        "region": "region",
        "status": "status",
        "amount": "amount",
        "ordered_at": "ordered_at",
    },
    keys=("customer",),
    order=("ordered_at",),
    values=("order_id", "region", "status", "amount", "ordered_at"),
)
