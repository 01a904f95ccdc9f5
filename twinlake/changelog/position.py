"""Position: what a changelog has sent last, as its position topic keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from twinlake.lake.catalog.version import Find, Pin, pin_of


@dataclass(frozen=True, kw_only=True)
class Position:
    """The topic's newest records per key are what the table showed at this pin, in this release.

    `topic_id` is the broker's, which a topic of the same name has not; `key_id` the schema of its keys,
    `partitions` how many the topic had.
    """

    lake: str
    table: str
    release: int
    topic_id: str
    key_id: int
    pin: dict[str, Any]
    partitions: int

    @property
    def version(self) -> str:
        return str(self.pin["version"])

    @property
    def batches(self) -> dict[str, int]:
        return dict(self.pin["position"])

    def pinned(self, find: Find) -> Pin | None:
        """The pin, None where one of its versions is no longer living."""
        return pin_of(self.table, self.pin, find)

    def to_bytes(self) -> bytes:
        return json.dumps(vars(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Position:
        """ValueError for what is not a position."""
        try:
            return cls(**json.loads(data))
        except TypeError as error:
            raise ValueError(str(error)) from error
