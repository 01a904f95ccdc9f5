"""Stock trades: prices per day, the symbols traded most, and trades in a window that slides."""

from jobs.tables.gallery.trades import prices_per_day, top_symbols, trades_in_5_seconds
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (prices_per_day.TABLE, top_symbols.TABLE, trades_in_5_seconds.TABLE)
