"""Scans and weight in each city per hour (UTC); a city is a field of a field."""

from twinlake import Aggregate, Count, Sum, Tumbling

TABLE = Aggregate(
    name="scans_per_city",
    inputs=("parcel_scans",),
    columns={"city": "address.city", "kilograms": "kilograms", "scanned_at": "scanned_at"},
    keys=("city",),
    window=Tumbling(on="scanned_at", size="1 hour"),
    measures={"scans": Count(), "kilograms": Sum("kilograms")},
)
