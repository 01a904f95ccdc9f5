"""Sales of each region per minute of event time."""

from jobs.kinds.aggregate import Aggregate
from jobs.kinds.measures.counts import Count, CountDistinct
from jobs.kinds.measures.extremes import Max, Min
from jobs.kinds.measures.totals import Avg, Sum
from jobs.kinds.windows import Tumbling

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
