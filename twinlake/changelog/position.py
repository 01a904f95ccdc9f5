"""Position: what a changelog has sent last, as its position topic keeps it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from twinlake.changelog.target import Made
from twinlake.lake.catalog.version import Find, Pin, pin_of


@dataclass(frozen=True, kw_only=True)
class SentEvents:
    """How far events are sent besides: which topics there were, how often all of history was asked for again
    by then, and the newest row of the log up to the position (its batch, and when that was added, in
    microseconds; None where there was none): a lake that was restored and has read on has another one.
    """

    topics: dict[str, Made]
    resends: int
    newest: tuple[int, int | None] | None


@dataclass(frozen=True, kw_only=True)
class Position:
    """Of changes: the topic's newest records per key are what the table showed at this pin, in this release.
    `topic_id` is the broker's, which a topic of the same name has not; `key_id` the schema of its keys,
    `partitions` how many the topic had.

    Of events: the rows of all batches up to the pin's position are sent.
    """

    lake: str
    table: str
    release: int
    pin: dict[str, Any]
    topic_id: str = ""
    key_id: int = 0
    partitions: int = 0
    events: SentEvents | None = None

    @property
    def version(self) -> str:
        return str(self.pin["version"])

    @property
    def batches(self) -> dict[str, int]:
        return dict(self.pin["position"])

    def made(self, topic: str) -> Made | None:
        """The topic as it was when this was sent; None where it was none of them."""
        if self.events is not None:
            return self.events.topics.get(topic)
        return Made(id=self.topic_id, partitions=self.partitions)

    def pinned(self, find: Find) -> Pin | None:
        """The pin, None where one of its versions is no longer living."""
        return pin_of(self.table, self.pin, find)

    def to_bytes(self) -> bytes:
        whole = asdict(self)
        of_changes = ("topic_id", "key_id", "partitions")
        left_out = ("events",) if self.events is None else of_changes
        return json.dumps({k: v for k, v in whole.items() if k not in left_out}, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Position:
        """ValueError for what is not a position."""
        try:
            said = json.loads(data)
            events = said.pop("events", None)
            return cls(**said, events=_events(**events) if events is not None else None)
        except (AttributeError, TypeError) as error:
            raise ValueError(str(error)) from error


def _events(
    *, topics: dict[str, dict[str, Any]], resends: int, newest: tuple[int, int | None] | None
) -> SentEvents:  # fmt: skip
    made = {name: Made(**one) for name, one in topics.items()}
    return SentEvents(topics=made, resends=resends, newest=(newest[0], newest[1]) if newest else None)
