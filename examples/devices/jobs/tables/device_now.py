"""How warm each device is. An engineer had taken all readings for Celsius once; the definition that looks at
the unit was built beside it from all of history, and made live by one commit: readers of the table and of its
changelog saw rows of the older devices change, and nothing else."""

from twinlake import Latest

TABLE = Latest(
    name="device_now",
    inputs=("readings",),
    columns={
        "device": "device",
        "celsius": "if(unit = 'F', round((temperature - 32) * 5 / 9, 2), temperature)",
        "read_at": "read_at",
    },
    keys=("device",),
    order=("read_at",),
    values=("celsius", "read_at"),
)
