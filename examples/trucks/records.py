"""Owns the sequence of the gallery's trucks: they go from region to region, load and unload."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

TRUCKS = 40
REGIONS = ("coast", "hills", "lakes", "moor", "plains")


class TruckReports:
    key = "truck"

    def __init__(self, random: Random) -> None:
        self._random = random
        self._place = [random.randrange(len(REGIONS)) for _ in range(TRUCKS)]
        self._load = [random.randrange(0, 20_000) for _ in range(TRUCKS)]

    def event(self, at: datetime) -> dict[str, Any]:
        number, move, load, retires = (self._random.random() for _ in range(4))
        truck = int(number * TRUCKS)
        if move < 0.3:
            self._place[truck] = (self._place[truck] + 1) % len(REGIONS)
        if load < 0.2:
            self._load[truck] = int(load / 0.2 * 20_000)
        return {
            "truck": f"truck-{truck:02d}",
            "region": REGIONS[self._place[truck]],
            "load_kg": self._load[truck],
            "retired": True if retires < 0.05 else None if retires < 0.1 else False,
            "reported_at": at,
        }


SOURCES = stories({"truck_reports": TruckReports})
