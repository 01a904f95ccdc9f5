"""Sample records for `twinlake produce visits`: a few pages are visited much."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

PAGES = ("/", "/prices", "/docs", "/docs/start", "/blog", "/about")


class Visits:
    key = "visitor"

    def __init__(self, random: Random) -> None:
        self._random = random
        self._weights = [1 / place for place in range(1, len(PAGES) + 1)]

    def event(self, at: datetime) -> dict[str, Any]:
        """The next visit, without its id."""
        return {
            "page": self._random.choices(PAGES, self._weights)[0],
            "visitor": f"visitor-{self._random.randrange(500):03d}",
            "seconds": round(self._random.expovariate(1 / 40), 1),
            "visited_at": at,
        }


SOURCES = stories({"visits": Visits})
