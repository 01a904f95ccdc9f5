"""Changes of profiles, kept where joins find them."""

from twinlake import Events, Store

TABLE = Events(
    name="kept_profiles",
    inputs=("profiles",),
    columns={"user": "user", "plan": "plan", "country": "country", "valid_from": "valid_from"},
    store=Store(keys=("user",), on="valid_from", cell="1 day"),
)
