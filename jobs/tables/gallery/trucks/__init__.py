"""Trucks on their way: where each is now, and the merchandise in each region, each truck counted once."""

from jobs.tables.gallery.trucks import region_merchandise, truck_now
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (truck_now.TABLE, region_merchandise.TABLE)
