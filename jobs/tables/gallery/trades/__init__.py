"""Stock trades: prices per day, the symbols traded most, and trades in a window that slides."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.trades import prices_per_day, top_symbols, trades_in_5_seconds

TABLES: tuple[Kind, ...] = (prices_per_day.TABLE, top_symbols.TABLE, trades_in_5_seconds.TABLE)
