"""Stalled: the living versions that do not keep up with their logs, as the lake server tells readers.

`<lake>/stalled.json`, replaced as a whole when it changes: a list of objects with table, version, why and
position (by topic, the batch up to which its rows are). Without the file there are none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from jobs.lake import store
from jobs.lake.version import Health
from jobs.location import Location

BEHIND_S = 60.0
"""A version whose oldest record waits for so long is named, too: it may catch up, but readers should know."""


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """A version of which readers see an old position."""

    table: str
    version: str
    why: str
    position: dict[str, int]


def stalled(health: Iterable[Health]) -> list[Stalled]:
    """Those that are stalled, or read one that is, and those that are far behind."""
    return [
        Stalled(table=one.table, version=one.version, why=why, position=one.position)
        for one in health
        if (why := _why(one)) is not None
    ]


def _why(one: Health) -> str | None:
    if one.stalled:
        error = one.error or {}
        said = [error.get("what", "it is stalled"), error.get("why", "")]
        return ": ".join(filter(None, said))
    if (one.lag_seconds or 0.0) >= BEHIND_S:
        return f"records have been waiting for more than {BEHIND_S:g} s"
    return None


class Publisher:
    """The lake server's: writes the file when something has changed."""

    def __init__(self, lake: Location) -> None:
        self._lake = lake
        self._written: str | None = None

    def publish(self, health: Iterable[Health]) -> None:
        text = json.dumps([asdict(one) for one in stalled(health)], indent=2)
        if text != self._written:
            store.replace(_file(self._lake), text)
            self._written = text


def published(lake: Location) -> list[Stalled]:
    """What the lake server told last."""
    try:
        text = store.read_text(_file(lake))
    except FileNotFoundError:
        return []
    return [Stalled(**one) for one in json.loads(text)]


def _file(lake: Location) -> Location:
    return lake / "stalled.json"
