"""What the gallery's tables of parcels must show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.gallery.records import Record, Rows

HOUR = timedelta(hours=1)
BERLIN = ZoneInfo("Europe/Berlin")


def tables(valid: dict[str, list[Record]], watermarks: dict[str, datetime]) -> dict[str, Rows]:
    scans = valid["parcel_scans"]
    newest: dict[str, Record] = {}
    for scan in sorted(scans, key=lambda one: (one["scanned_at"], one["partition"], one["offset"])):
        newest[scan["parcel"]] = scan
    hours: dict[tuple[str, datetime], list[Decimal]] = {}
    for scan in scans:
        start = scan["scanned_at"].replace(minute=0, second=0, microsecond=0)
        hours.setdefault((scan["address"]["city"], start), []).append(scan["kilograms"])
    days: dict[tuple[str, datetime], list[Decimal]] = {}
    for scan in scans:
        day = _midnight(scan["scanned_at"])
        days.setdefault((scan["address"]["city"], day), []).append(scan["kilograms"])
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
        "scans_per_city": {key: _window(key[1] + HOUR, weights) for key, weights in hours.items()},
        "scans_per_day": {key: _window(_midnight(key[1], 1), weights) for key, weights in days.items()},
    }


def _midnight(at: datetime, days: int = 0) -> datetime:
    """Of the day in Berlin, or of a later one; there each midnight is there once."""
    there = at.astimezone(BERLIN).replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    return (there + timedelta(days=days)).replace(tzinfo=BERLIN).astimezone(UTC)


def _window(end: datetime, weights: list[Decimal]) -> dict[str, Any]:
    return {"window_end": end, "scans": len(weights), "kilograms": sum(weights, Decimal(0))}
