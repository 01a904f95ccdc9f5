"""Every table, listed by hand: one file each, and nothing registers itself."""

from jobs.kinds.kind import Kind
from jobs.tables import latest_order, orders, sales_per_region

TABLES: tuple[Kind, ...] = (orders.TABLE, sales_per_region.TABLE, latest_order.TABLE)
