"""Every valid order event, as it was sent."""

from twinlake import Events

TABLE = Events(
    name="orders",
    inputs=("orders",),
    columns={
        "event_id": "event_id",
        "order_id": "order_id",
        "customer": "customer",
        "region": "region",
        "status": "status",
        "amount": "amount",
        "ordered_at": "ordered_at",
    },
)
