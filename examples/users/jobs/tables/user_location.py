"""Where each user was seen last; NULL where that is hidden."""

from twinlake import Latest

TABLE = Latest(
    name="user_location",
    inputs=("check_ins",),
    columns={"user": "user", "location": "location", "seen_at": "seen_at"},
    keys=("user",),
    order=("seen_at",),
    values=("location", "seen_at"),
)
