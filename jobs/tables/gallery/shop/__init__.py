"""A shop's databases, mirrored from their changes: customers in PostgreSQL, orders in MySQL, joined."""

from jobs.tables.gallery.shop import customers_now, customers_with_orders, orders_now
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (customers_now.TABLE, orders_now.TABLE, customers_with_orders.TABLE)
