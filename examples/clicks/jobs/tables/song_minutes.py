"""How often each song was played in each minute: what longer times are added up from."""

from twinlake import Aggregate, Count, Tumbling

TABLE = Aggregate(
    name="song_minutes",
    inputs=("plays",),
    columns={"song": "song", "played_at": "played_at"},
    keys=("song",),
    window=Tumbling(on="played_at", size="1 minute"),
    measures={"plays": Count()},
)
