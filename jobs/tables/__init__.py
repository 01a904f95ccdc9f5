"""Every table, listed by hand: one file each, and nothing registers itself."""

from jobs.table import Definition
from jobs.tables import latest_order, orders, sales_per_region

TABLES: tuple[Definition, ...] = (orders.TABLE, sales_per_region.TABLE, latest_order.TABLE)
