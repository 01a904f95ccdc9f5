"""At how many merchants and in how many countries each card was used in each hour, counted exactly."""

from twinlake import Aggregate, Count, CountDistinct, Max, Tumbling

TABLE = Aggregate(
    name="card_hours",
    inputs=("card_payments",),
    columns={
        "card": "card",
        "merchant": "merchant",
        "country": "country",
        "amount": "amount",
        "paid_at": "paid_at",
    },
    keys=("card",),
    window=Tumbling(on="paid_at", size="1 hour"),
    measures={
        "payments": Count(),
        "merchants": CountDistinct("merchant", exact=True),
        "countries": CountDistinct("country", exact=True),
        "largest": Max("amount"),
    },
)
