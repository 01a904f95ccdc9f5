"""Owns the sequences of the gallery's users: where they are seen, and what they buy."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

USERS = 80
LOCATIONS = ("berlin", "kraków", "lyon", "málaga", "oslo", "turin", None)


def user(random: Random) -> str:
    """Few are busy, and many are hardly seen."""
    return f"user-{min(int(random.expovariate(1 / 15)), USERS - 1):02d}"


class CheckIns:
    key = "user"

    def __init__(self, random: Random) -> None:
        self._random = random

    def event(self, at: datetime) -> dict[str, Any]:
        return {"user": user(self._random), "location": self._random.choice(LOCATIONS), "seen_at": at}


class Purchases:
    key = "user"

    def __init__(self, random: Random) -> None:
        self._random = random

    def event(self, at: datetime) -> dict[str, Any]:
        amount = Decimal(self._random.randrange(100, 50_000)).scaleb(-2)
        return {"user": user(self._random), "amount": amount, "bought_at": at}


SOURCES = stories({"check_ins": CheckIns, "purchases": Purchases})
