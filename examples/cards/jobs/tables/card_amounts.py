"""The median and the 95th percentile of what is paid with each card, at most 1 % off."""

from twinlake import Aggregate, Count, Quantile

TABLE = Aggregate(
    name="card_amounts",
    inputs=("card_payments",),
    columns={"card": "card", "amount": "amount"},
    keys=("card",),
    measures={
        "payments": Count(),
        "median": Quantile("amount", 0.5),
        "nearly_all": Quantile("amount", 0.95),
    },
)
