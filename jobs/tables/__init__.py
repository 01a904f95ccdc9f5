"""Every table, listed by hand: one file each, and nothing registers itself."""

from jobs.tables import latest_order, orders, sales_per_region
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (orders.TABLE, sales_per_region.TABLE, latest_order.TABLE)
