"""What each user bought: the sums that `region_sales` adds up by where the users are."""

from twinlake import Aggregate, Count, Sum

TABLE = Aggregate(
    name="user_sales",
    inputs=("purchases",),
    columns={"user": "user", "amount": "amount"},
    keys=("user",),
    measures={"sales": Sum("amount"), "purchases": Count()},
)
