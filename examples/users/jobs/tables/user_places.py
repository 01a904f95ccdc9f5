"""In how many places each user was seen; hidden ones are none."""

from twinlake import Aggregate, Count, CountDistinct

TABLE = Aggregate(
    name="user_places",
    inputs=("check_ins",),
    columns={"user": "user", "location": "location"},
    keys=("user",),
    measures={"places": CountDistinct("location", exact=True), "check_ins": Count()},
)
