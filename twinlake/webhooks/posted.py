"""Posted: how far a webhook is, in a file of the lake: what was accepted, and what is on its way.

What is on its way is written down before its first part is posted: after a kill the very same parts go out
again, by the same keys, and not others that lead further.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from twinlake.base.location import Location
from twinlake.lake.catalog.version import Find, Pin, pin_json, pin_of
from twinlake.lake.storage import store


@dataclass(frozen=True, kw_only=True)
class Place:
    """A pin in a release."""

    release: int
    pin: dict[str, Any]

    def pinned(self, table: str, find: Find) -> Pin | None:
        """None where one of its versions is no longer living."""
        return pin_of(table, self.pin, find)


@dataclass(frozen=True, kw_only=True)
class Posted:
    """Of one address: another one has had nothing. `next_whole` says that what goes out next is the whole."""

    url: str
    sent: Place | None = None
    next: Place | None = None
    next_whole: bool = False

    def begins(self, place: Place, is_whole: bool) -> Posted:
        return replace(self, next=place, next_whole=is_whole)


def place_of(release: int, pin: Pin) -> Place:
    return Place(release=release, pin=pin_json(pin))


def load(folder: Location, table: str, url: str) -> Posted:
    """What this address has had."""
    try:
        found = store.read_json(folder / f"{table}.json")
    except FileNotFoundError:
        return Posted(url=url)
    with store.reading(folder / f"{table}.json"):
        places = {name: Place(**found[name]) if found[name] else None for name in ("sent", "next")}
        known = Posted(url=found["url"], next_whole=found["next_whole"], **places)
    return known if known.url == url else Posted(url=url)


def save(folder: Location, table: str, posted: Posted) -> None:
    store.replace(folder / f"{table}.json", json.dumps(asdict(posted), indent=2, sort_keys=True))
