"""Clicks, kept where joins find them."""

from twinlake import Events, Store

TABLE = Events(
    name="kept_clicks",
    inputs=("clicks",),
    columns={"user": "user", "page": "page", "clicked_at": "clicked_at"},
    store=Store(keys=("user",), on="clicked_at", cell="1 hour"),
)
