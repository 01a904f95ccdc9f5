"""Trades in each five seconds, sliding by one: a trade is in five of these windows."""

from twinlake import Aggregate, Count, Hopping, Sum

TABLE = Aggregate(
    name="trades_in_5_seconds",
    inputs=("trades",),
    columns={"quantity": "quantity", "traded_at": "traded_at"},
    keys=(),
    window=Hopping(on="traded_at", size="5 seconds", every="1 second"),
    measures={"trades": Count(), "volume": Sum("quantity")},
)
