"""Scans and weight in each city per day of their time zone: some days have 23 or 25 hours."""

from twinlake import Aggregate, Count, Sum, Tumbling

TABLE = Aggregate(
    name="scans_per_day",
    inputs=("parcel_scans",),
    columns={"city": "address.city", "kilograms": "kilograms", "scanned_at": "scanned_at"},
    keys=("city",),
    window=Tumbling(on="scanned_at", size="1 day", time_zone="Europe/Berlin"),
    measures={"scans": Count(), "kilograms": Sum("kilograms")},
)
