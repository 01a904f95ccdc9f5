"""Each profile that a user has had, and from when until when."""

from twinlake import History

TABLE = History(
    name="profile_history",
    inputs=("profiles",),
    columns={"user": "user", "plan": "plan", "country": "country", "changed_at": "valid_from"},
    keys=("user",),
    order=("changed_at",),
    values=("plan", "country"),
)
