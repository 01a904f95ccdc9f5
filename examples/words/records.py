"""Owns the sequences of the gallery's sentences and log lines."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import Any

from twinlake.topics.sequence import stories

WORDS = (
    "the", "lake", "stream", "is", "a", "table", "and", "every", "record", "counts", "once", "Über", "déjà",
    "late", "early", "Twin", "don't", "re-read", "2nd",
)  # fmt: skip
SERVICES = ("checkout", "search", "payments", "mail")
LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR", None)
MESSAGES = ("took 31 ms", "timed out, tried again", "unknown customer", "", "queue is full: ERROR 17")


class Sentences:
    key = "text"

    def __init__(self, random: Random) -> None:
        self._random = random

    def event(self, at: datetime) -> dict[str, Any]:
        words = self._random.choices(WORDS, k=self._random.randrange(0, 9))
        return {"text": self._random.choice((" ", ", ", "  ")).join(words).capitalize() + ".", "said_at": at}


class LogLines:
    key = "service"

    def __init__(self, random: Random) -> None:
        self._random = random

    def event(self, at: datetime) -> dict[str, Any]:
        service, level, message = (self._random.choice(some) for some in (SERVICES, LEVELS, MESSAGES))
        return {"service": service, "level": level, "message": message, "logged_at": at}


SOURCES = stories({"sentences": Sentences, "log_lines": LogLines})
