"""Owns the sequence of the gallery's trades: few symbols are traded much, and prices walk."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

SYMBOLS = (
    "ALBA", "BORE", "CIRR", "DELT", "EMBR", "FJRD", "GLAC", "HELI", "ISLE", "JUNI", "KARS", "LARK", "MIRA",
    "NOVA", "ONYX", "PINE", "QUAY", "RUNE", "SOLA", "TARN",
)  # fmt: skip


class Trades:
    key = "symbol"

    def __init__(self, random: Random) -> None:
        self._random = random
        self._cents = {symbol: random.randrange(500, 50_000) for symbol in SYMBOLS}
        self._weights = [1 / place for place in range(1, len(SYMBOLS) + 1)]

    def event(self, at: datetime) -> dict[str, Any]:
        (symbol,) = self._random.choices(SYMBOLS, self._weights)
        self._cents[symbol] = max(100, self._cents[symbol] + self._random.randint(-50, 50))
        quantity = self._random.choice((1, 5, 10, 100, 100, 500))
        price = Decimal(self._cents[symbol] * 100).scaleb(-4)
        return {"symbol": symbol, "price": price, "quantity": quantity, "traded_at": at}


SOURCES = stories({"trades": Trades})
