"""Every table, listed by hand: one file each, and nothing registers itself."""

from jobs.kinds.table import Table
from jobs.tables import latest_order, orders, sales_per_region

TABLES: tuple[Table, ...] = (orders.TABLE, sales_per_region.TABLE, latest_order.TABLE)
