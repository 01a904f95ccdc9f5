"""Parcels that are scanned on their way, in JSON: where each is now, and the scans of each city per hour."""

from jobs.tables.gallery.parcels import parcel_now, scans_per_city
from twinlake.kinds.kind import Kind

TABLES: tuple[Kind, ...] = (parcel_now.TABLE, scans_per_city.TABLE)
