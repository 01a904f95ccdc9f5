"""Owns the sequences of the gallery's music site: what visitors click, search and play, and who they are."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

USERS, SONGS = 50, 40
PAGES = ("/", "/album", "/artist", "/radio", "/settings")
PLANS, COUNTRIES = ("free", "family", "premium"), ("AT", "PL", "PT", None)
WORDS = ("autumn", "harbour", "lullaby", "northern lights", "polka")


class _Visitors:
    key = "user"

    def __init__(self, random: Random) -> None:
        self._random = random

    def _user(self) -> str:
        """Few are on the site all day."""
        return f"user-{min(int(self._random.expovariate(1 / 10)), USERS - 1):02d}"

    def _visitor(self) -> str | None:
        """Some have not signed in."""
        user = self._user()
        return None if self._random.random() < 0.1 else user


class Clicks(_Visitors):
    def event(self, at: datetime) -> dict[str, Any]:
        return {"user": self._visitor(), "page": self._random.choice(PAGES), "clicked_at": at}


class Profiles(_Visitors):
    def event(self, at: datetime) -> dict[str, Any]:
        plan, country = self._random.choice(PLANS), self._random.choice(COUNTRIES)
        return {"user": self._user(), "plan": plan, "country": country, "valid_from": at}


class Searches(_Visitors):
    def event(self, at: datetime) -> dict[str, Any]:
        return {"user": self._visitor(), "words": self._random.choice(WORDS), "searched_at": at}


class Plays(_Visitors):
    def event(self, at: datetime) -> dict[str, Any]:
        song = min(int(self._random.expovariate(1 / 8)), SONGS - 1)
        return {"user": self._user(), "song": f"song {song:02d}", "played_at": at}


SOURCES = stories({
    "clicks": Clicks,
    "profiles": Profiles,
    "searches": Searches,
    "plays": Plays,
})
