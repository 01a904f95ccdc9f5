"""The ten symbols with the greatest volume of each day, out of the sums per symbol and day."""

from twinlake import Derived

TABLE = Derived(
    name="top_symbols",
    reads=("prices_per_day",),
    columns=("day", "symbol", "place", "volume"),
    keys=("day", "symbol"),
    by=("day",),
    sql="""
        SELECT day, symbol, place, volume
        FROM (
          SELECT window_start AS day, symbol, volume,
            row_number() OVER (PARTITION BY window_start ORDER BY volume DESC, symbol) AS place
          FROM prices_per_day
        )
        WHERE place <= 10
    """,
)
