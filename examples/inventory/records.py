"""Owns the sequences of the gallery's store: goods that come, and goods that are sold before they do."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

ITEMS = ("anchor", "bollard", "compass", "dinghy", "fender", "halyard", "jib", "keel", "lantern", "mast",
         "oar", "rudder", "sail", "tiller", "winch")  # fmt: skip


class Shipments:
    key = "item"

    def __init__(self, random: Random) -> None:
        self._random = random

    def event(self, at: datetime) -> dict[str, Any]:
        # the last one never comes: it is sold all the same
        return {
            "item": self._random.choice(ITEMS[:-1]),
            "quantity": self._random.randrange(1, 30),
            "arrived_at": at,
        }


class ItemSales:
    key = "item"

    def __init__(self, random: Random) -> None:
        self._random = random

    def event(self, at: datetime) -> dict[str, Any]:
        # the first one is never sold
        return {
            "item": self._random.choice(ITEMS[1:]),
            "quantity": self._random.randrange(1, 30),
            "sold_at": at,
        }


SOURCES = stories({"shipments": Shipments, "item_sales": ItemSales})
