"""The median and the 95th percentile of what is paid with each card, at most 1 % off, and how many payments
are small and large."""

from twinlake import Aggregate, Count, Histogram, Quantile

TABLE = Aggregate(
    name="card_amounts",
    inputs=("card_payments",),
    columns={"card": "card", "amount": "amount"},
    keys=("card",),
    measures={
        "payments": Count(),
        "median": Quantile("amount", 0.5),
        "nearly_all": Quantile("amount", 0.95),
        "sizes": Histogram("amount", edges=(10, 100, 1000)),
    },
)
