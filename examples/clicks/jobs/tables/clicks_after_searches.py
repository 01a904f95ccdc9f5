"""Clicks with the searches of the thirty seconds before, and those without any."""

from twinlake import IntervalJoin

TABLE = IntervalJoin(
    name="clicks_after_searches",
    left="kept_clicks",
    right="kept_searches",
    on=("user",),
    how="left",
    before="30 seconds",
    columns={
        "page": "left.page",
        "clicked_at": "left.clicked_at",
        "words": "right.words",
        "searched_at": "right.searched_at",
    },
)
