"""Clicks with the profile that the user had at the time, not the one of today."""

from twinlake import AsOfJoin

TABLE = AsOfJoin(
    name="clicks_with_profile",
    left="kept_clicks",
    right="kept_profiles",
    on=("user",),
    columns={
        "page": "left.page",
        "clicked_at": "left.clicked_at",
        "plan": "right.plan",
        "country": "right.country",
    },
)
