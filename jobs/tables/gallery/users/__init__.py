"""Users: where each is now, in how many places each was, and sales by where the buyers are."""

from jobs.tables.gallery.users import region_sales, user_location, user_places, user_sales
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (user_location.TABLE, user_places.TABLE, user_sales.TABLE, region_sales.TABLE)
