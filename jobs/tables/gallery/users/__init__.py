"""Users: where each is now, in how many places each was, and sales by where the buyers are."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.users import region_sales, user_location, user_places, user_sales

TABLES: tuple[Kind, ...] = (user_location.TABLE, user_places.TABLE, user_sales.TABLE, region_sales.TABLE)
