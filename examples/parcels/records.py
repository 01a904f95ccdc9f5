"""Owns the sequence of the gallery's parcels: they go from city to city until they are delivered."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

PARCELS = 60
CITIES = ("Bonn", "Kraków", "Lyon", "Málaga", "Oslo", "Turin")
REMARKS = ("wet", "heavy", 'says "this side up"', "")


class ParcelScans:
    key = "parcel"

    def __init__(self, random: Random) -> None:
        self._random = random
        self._weights = [Decimal(random.randrange(1, 30_000)).scaleb(-3) for _ in range(PARCELS)]

    def event(self, at: datetime) -> dict[str, Any]:
        number = self._random.randrange(PARCELS)
        city, shelf = self._random.choice(CITIES), self._random.randrange(-2, 40)
        remarks = self._random.sample(REMARKS, self._random.randrange(4))
        return {
            "parcel": f"parcel-{number:02d}",
            "status": "delivered" if self._random.random() < 0.1 else "moving",
            "address": {"city": city, "shelf": shelf if shelf >= 0 else None},
            "kilograms": self._weights[number],
            "remarks": remarks if remarks else None,
            "scanned_at": at,
        }


SOURCES = stories({"parcel_scans": ParcelScans})
