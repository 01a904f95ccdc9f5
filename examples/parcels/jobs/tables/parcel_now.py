"""Where each parcel was scanned last: fields of a field, and the key. A delivered one is shown no more."""

from twinlake import Latest

TABLE = Latest(
    name="parcel_now",
    inputs=("parcel_scans",),
    columns={
        "parcel": "_key",
        "city": "address.city",
        "address": "address",
        "remarks": "coalesce(size(remarks), 0)",
        "scanned_at": "scanned_at",
        "delivered": "status = 'delivered'",
    },
    keys=("parcel",),
    order=("scanned_at",),
    delete_when="delivered",
    values=("city", "address", "remarks", "scanned_at"),
)
