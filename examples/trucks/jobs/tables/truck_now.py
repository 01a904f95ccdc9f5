"""Where each truck is now, by its newest report: repeated and late ones change nothing."""

from twinlake import Latest

TABLE = Latest(
    name="truck_now",
    inputs=("truck_reports",),
    columns={
        "truck": "truck",
        "region": "region",
        "load_kg": "load_kg",
        "retired": "retired",
        "reported_at": "reported_at",
    },
    keys=("truck",),
    order=("reported_at",),
    delete_when="retired",
    values=("region", "load_kg", "reported_at"),
)
