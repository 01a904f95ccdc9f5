"""Inventory: what is on hand, what is owed to customers, and what to order, by two sums per item."""

from jobs.tables.gallery.inventory import items_shipped, items_sold, items_to_order, stock_on_hand
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (
    items_shipped.TABLE,
    items_sold.TABLE,
    stock_on_hand.TABLE,
    items_to_order.TABLE,
)
