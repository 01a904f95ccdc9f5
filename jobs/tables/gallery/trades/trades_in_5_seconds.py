"""Trades in each five seconds, sliding by one: a trade is in five of these windows."""

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.windows import Hopping

TABLE = Aggregate(
    name="trades_in_5_seconds",
    inputs=("trades",),
    columns={"quantity": "quantity", "traded_at": "traded_at"},
    keys=(),
    window=Hopping(on="traded_at", size="5 seconds", every="1 second"),
    measures={"trades": Count(), "volume": Sum("quantity")},
)
