"""Visits of each page per minute of event time."""

from twinlake import Aggregate, Avg, Count, CountDistinct, Tumbling

TABLE = Aggregate(
    name="visits_per_page",
    inputs=("visits",),
    columns={"page": "page", "visitor": "visitor", "seconds": "seconds", "visited_at": "visited_at"},
    keys=("page",),
    window=Tumbling(on="visited_at", size="1 minute"),
    measures={"visits": Count(), "visitors": CountDistinct("visitor"), "seconds": Avg("seconds")},
)
