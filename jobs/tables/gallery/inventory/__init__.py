"""Inventory: what is on hand, what is owed to customers, and what to order, by two sums per item."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.inventory import items_shipped, items_sold

TABLES: tuple[Kind, ...] = (items_shipped.TABLE, items_sold.TABLE)
