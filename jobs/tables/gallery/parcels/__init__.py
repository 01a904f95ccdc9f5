"""Parcels that are scanned on their way, in JSON: where each is now, and the scans of each city per hour."""

from jobs.kinds.kind import Kind
from jobs.tables.gallery.parcels import parcel_now, scans_per_city

TABLES: tuple[Kind, ...] = (parcel_now.TABLE, scans_per_city.TABLE)
