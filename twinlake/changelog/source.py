"""Source: what a changelog sends, from the position that it has sent to what its table shows now.

There are two: the changes of rows (`changes.py`), and rows that never change, as events (`new_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from twinlake.changelog.destination import Destination
from twinlake.changelog.position import Position
from twinlake.changelog.target import Record, Target
from twinlake.lake.catalog.maintained_version import Opened
from twinlake.lake.catalog.version import Pin

Sends = Literal["changes", "events"]


@dataclass(frozen=True, kw_only=True)
class Now:
    """The live version of the table, pinned, and the topics as they are."""

    opened: Opened
    pin: Pin
    release: int
    destination: Destination


@dataclass(frozen=True, kw_only=True)
class Found:
    """What goes into the next transaction: `records`, each with `headers`, and the position they lead to.

    `way` says in words how they were found; `rest_s` for how long none is looked for after a transaction that
    took so many seconds.
    """

    way: str
    records: Iterable[Record]
    headers: Mapping[str, str]
    position: Position
    rest_s: Callable[[float], float]


class Source(Protocol):
    """One thread asks it; `forget` is called after any error."""

    sends: Sends
    target: Target

    def is_asked(self, sent: Position) -> bool:
        """Whether more is to be sent though nothing has come since."""

    def is_known(self, sent: Position, opened: Opened) -> bool:
        """Whether this lake has sent it. One that was restored and has read on may be at the same batch with
        other records."""

    def find(self, sent: Position | None, now: Now) -> Found:
        """From what was sent last, None for nothing that is known, towards this pin."""

    def forget(self) -> None:
        """What the registry has said, and the like, is to be asked again."""
