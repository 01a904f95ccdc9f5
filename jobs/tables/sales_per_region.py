"""Sales of each region per minute of event time."""

from twinlake import Aggregate, Avg, Count, CountDistinct, Max, Min, Sum, Tumbling

TABLE = Aggregate(
    name="sales_per_region",
    inputs=("orders",),
    columns={"region": "region", "ordered_at": "ordered_at", "amount": "amount", "customer": "customer"},
    keys=("region",),
    window=Tumbling(on="ordered_at", size="1 minute"),
    measures={
        "sales": Sum("amount"),
        "orders": Count(),
        "average": Avg("amount"),
        "smallest": Min("amount"),
        "largest": Max("amount"),
        "customers": CountDistinct("customer"),
    },
)
