"""Every valid order event, as it was sent."""

from jobs.kinds.table import Events

TABLE = Events(
    name="orders",
    source="orders",
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
