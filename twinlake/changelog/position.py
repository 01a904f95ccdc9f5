"""Position: what a changelog has sent last, as its position topic keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twinlake.base.errors import NotFoundError
from twinlake.lake.catalog.version import Pin, Version

Find = Callable[[str, str], Version]
"""The living version of a table by name; NotFoundError."""


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
        try:
            return _pin(self.table, self.pin, find)
        except NotFoundError:
            return None

    def to_bytes(self) -> bytes:
        return json.dumps(vars(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Position:
        """ValueError for what is not a position."""
        try:
            return cls(**json.loads(data))
        except TypeError as error:
            raise ValueError(str(error)) from error


def pin_json(pin: Pin) -> dict[str, Any]:
    """A pin as plain data; its versions by name."""
    return {
        **vars(pin), "version": pin.version.name,
        "reads": {table: pin_json(read) for table, read in pin.reads.items()},
    }  # fmt: skip


def _pin(table: str, data: Mapping[str, Any], find: Find) -> Pin:
    reads = {name: _pin(name, read, find) for name, read in data["reads"].items()}
    return Pin(**{**data, "version": find(table, data["version"]), "reads": reads})
