"""How often each song was played in each minute: what longer times are added up from."""

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.windows import Tumbling

TABLE = Aggregate(
    name="song_minutes",
    inputs=("plays",),
    columns={"song": "song", "played_at": "played_at"},
    keys=("song",),
    window=Tumbling(on="played_at", size="1 minute"),
    measures={"plays": Count()},
)
