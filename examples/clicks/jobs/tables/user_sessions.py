"""Clicks of each user without a pause of more than thirty minutes; who did not sign in is one user, NULL."""

from twinlake import Count, Sessions

TABLE = Sessions(
    name="user_sessions",
    inputs=("clicks",),
    columns={"user": "user", "clicked_at": "clicked_at"},
    keys=("user",),
    on="clicked_at",
    gap="30 minutes",
    measures={"clicks": Count()},
)
