"""Owns the sequence of the gallery's card payments: most are usual, a few are a thief's."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

CARDS, MERCHANTS = 60, 200
COUNTRIES = ("AT", "CH", "DE", "FR", "IT")
STOLEN, UNNAMED = 0.03, 0.05
"""Shares of payments: by a thief, without a merchant's name."""


class CardPayments:
    key = "card"

    def __init__(self, random: Random) -> None:
        self._random = random
        self._usual = [random.randrange(500, 20_000) for _ in range(CARDS)]
        self._home = [random.choice(COUNTRIES) for _ in range(CARDS)]

    def event(self, at: datetime) -> dict[str, Any]:
        card = min(int(self._random.expovariate(1 / 12)), CARDS - 1)
        is_stolen = self._random.random() < STOLEN
        merchant = f"merchant-{self._random.randrange(MERCHANTS):03d}"
        # far from each other, so that no quantile's error decides whether a payment is unusual
        times = self._random.uniform(200, 400) if is_stolen else self._random.uniform(0.25, 4)
        return {
            "card": f"card-{card:02d}",
            "merchant": None if self._random.random() < UNNAMED else merchant,
            "country": self._random.choice(COUNTRIES) if is_stolen else self._home[card],
            "amount": Decimal(int(self._usual[card] * times)).scaleb(-2),
            "paid_at": at,
        }


SOURCES = stories({"card_payments": CardPayments})
