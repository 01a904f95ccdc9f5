"""The ten songs that were played most in the last five minutes, day and week."""

from twinlake import Derived

TABLE = Derived(
    name="top_songs",
    reads=("songs_lately",),
    columns=("last", "song", "place", "plays"),
    keys=("last", "song"),
    by=("last",),
    sql="""
        SELECT `last`, song, place, plays
        FROM (
          SELECT `last`, song, plays,
            row_number() OVER (PARTITION BY `last` ORDER BY plays DESC, song) AS place
          FROM songs_lately
        )
        WHERE place <= 10
    """,
)
