"""Searches, kept in every cell that a click up to thirty seconds later may be in."""

from twinlake import Events, Store

TABLE = Events(
    name="kept_searches",
    inputs=("searches",),
    columns={"user": "user", "words": "words", "searched_at": "searched_at"},
    store=Store(keys=("user",), on="searched_at", cell="1 hour", ahead="30 seconds"),
)
