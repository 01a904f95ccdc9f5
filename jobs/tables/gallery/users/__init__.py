"""Users: where each is now, in how many places each was, and sales by where the buyers are."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.users import user_location, user_sales

TABLES: tuple[Kind, ...] = (user_location.TABLE, user_sales.TABLE)
