"""Each payment with what its card did before it: how often in five minutes, how much and where in an hour."""

from twinlake import ArgMax, Avg, Count, CountDistinct, Sum, Trailing

TABLE = Trailing(
    name="card_pace",
    inputs=("card_payments",),
    columns={
        "card": "card",
        "country": "country",
        "amount": "amount",
        "paid_at": "paid_at",
    },
    keys=("card",),
    on="paid_at",
    last={
        "5 minutes": {"payments_in_5_minutes": Count()},
        "1 hour": {
            "payments_in_1_hour": Count(),
            "spent_in_1_hour": Sum("amount"),
            "usual_in_1_hour": Avg("amount"),
            "countries_in_1_hour": CountDistinct("country"),
            "last_country": ArgMax("country", by="paid_at"),
        },
    },
)
