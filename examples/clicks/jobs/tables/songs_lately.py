"""How often each song was played in the last five minutes, day and week before the watermark."""

from twinlake import Rolling

TABLE = Rolling(name="songs_lately", of="song_minutes", last=("5 minutes", "1 day", "7 days"))
