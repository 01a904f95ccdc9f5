"""Owns the sequence of the gallery's devices: each says ten times a second how warm it is, in its unit."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

DEVICES = 20
OLD = 5
"""Every so many devices one is old, and speaks of Fahrenheit."""


class Readings:
    key = "device"

    def __init__(self, random: Random) -> None:
        self._random = random
        self._celsius = [random.randrange(-1_500, 4_000) for _ in range(DEVICES)]

    def event(self, at: datetime) -> dict[str, Any]:
        device, change = self._random.randrange(DEVICES), self._random.randrange(-40, 41)
        self._celsius[device] = min(9_000, max(-4_000, self._celsius[device] + change))
        hundredths = self._celsius[device]
        is_old = device % OLD == 0
        return {
            "device": f"device-{device:02d}",
            "unit": "F" if is_old else "C",
            "temperature": Decimal(hundredths * 9 // 5 + 3_200 if is_old else hundredths).scaleb(-2),
            "read_at": at,
        }


SOURCES = stories({"readings": Readings})
