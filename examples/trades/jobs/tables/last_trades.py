"""The five newest trades of each symbol."""

from twinlake import TopRows

TABLE = TopRows(
    name="last_trades",
    inputs=("trades",),
    columns={"symbol": "symbol", "price": "price", "quantity": "quantity", "traded_at": "traded_at"},
    keys=("symbol",),
    order=("traded_at",),
    rows=5,
    values=("traded_at", "price", "quantity"),
)
