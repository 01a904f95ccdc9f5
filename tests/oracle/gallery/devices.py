"""What the gallery's tables of devices must show."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from tests.oracle.gallery.records import Record, Rows

MINUTE = timedelta(minutes=1)


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    newest: dict[str, Record] = {}
    minutes: dict[tuple[str, datetime], list[Decimal]] = {}
    readings = valid["readings"]
    for reading in sorted(readings, key=lambda one: (one["read_at"], one["partition"], one["offset"])):
        newest[reading["device"]] = reading
        start = reading["read_at"].replace(second=0, microsecond=0)
        minutes.setdefault((reading["device"], start), []).append(celsius(reading))
    return {
        "device_now": {
            (device,): {"celsius": celsius(reading), "read_at": reading["read_at"]}
            for device, reading in newest.items()
        },
        "device_minutes": {
            key: {
                "window_end": key[1] + MINUTE,
                "readings": len(held),
                "coldest": min(held),
                "warmest": max(held),
                "average": (sum(held, Decimal(0)) / len(held)).quantize(Decimal("1e-6"), ROUND_HALF_UP),
            }
            for key, held in minutes.items()
        },
    }


def celsius(reading: Record) -> Decimal:
    found: Decimal = reading["temperature"]
    if reading["unit"] == "F":
        found = ((found - 32) * 5 / 9).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return found
