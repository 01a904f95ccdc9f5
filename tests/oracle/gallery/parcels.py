"""What the gallery's tables of parcels must show."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.oracle.gallery.records import Record, Rows

HOUR = timedelta(hours=1)


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    scans = valid["parcel_scans"]
    newest: dict[str, Record] = {}
    for scan in sorted(scans, key=lambda one: (one["scanned_at"], one["partition"], one["offset"])):
        newest[scan["parcel"]] = scan
    hours: dict[tuple[str, datetime], list[Decimal]] = {}
    for scan in scans:
        start = scan["scanned_at"].replace(minute=0, second=0, microsecond=0)
        hours.setdefault((scan["address"]["city"], start), []).append(scan["kilograms"])
    return {
        "parcel_now": {
            (parcel,): {
                "city": scan["address"]["city"],
                "address": scan["address"],
                "remarks": len(scan["remarks"] or []),
                "scanned_at": scan["scanned_at"],
            }
            for parcel, scan in newest.items()
            if scan["status"] != "delivered"
        },
        "scans_per_city": {key: _hour(key[1], weights) for key, weights in hours.items()},
    }


def _hour(start: datetime, weights: list[Decimal]) -> dict[str, Any]:
    return {"window_end": start + HOUR, "scans": len(weights), "kilograms": sum(weights, Decimal(0))}
