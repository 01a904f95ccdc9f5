"""A shop's databases, mirrored from their changes: customers in PostgreSQL, orders in MySQL, joined."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.shop import customers_now, customers_with_orders, orders_now

TABLES: tuple[Kind, ...] = (customers_now.TABLE, orders_now.TABLE, customers_with_orders.TABLE)
