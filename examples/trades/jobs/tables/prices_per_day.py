"""Minimum, maximum and average price of each symbol per day (UTC), and what was traded."""

from twinlake import Aggregate, Avg, Count, Max, Min, Sum, Tumbling

TABLE = Aggregate(
    name="prices_per_day",
    inputs=("trades",),
    columns={"symbol": "symbol", "price": "price", "quantity": "quantity", "traded_at": "traded_at"},
    keys=("symbol",),
    window=Tumbling(on="traded_at", size="1 day"),
    measures={
        "lowest": Min("price"),
        "highest": Max("price"),
        "average": Avg("price"),
        "volume": Sum("quantity"),
        "trades": Count(),
    },
)
