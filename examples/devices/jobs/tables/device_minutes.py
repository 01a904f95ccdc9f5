"""How warm each device was in each minute, whatever unit it speaks."""

from twinlake import Aggregate, Avg, Count, Max, Min, Tumbling

TABLE = Aggregate(
    name="device_minutes",
    inputs=("readings",),
    columns={
        "device": "device",
        "celsius": "if(unit = 'F', round((temperature - 32) * 5 / 9, 2), temperature)",
        "read_at": "read_at",
    },
    keys=("device",),
    window=Tumbling(on="read_at", size="1 minute"),
    measures={
        "readings": Count(),
        "coldest": Min("celsius"),
        "warmest": Max("celsius"),
        "average": Avg("celsius"),
    },
)
