"""What a store tells of a file without opening it."""

from __future__ import annotations

from typing import NamedTuple


class Stat(NamedTuple):
    bytes: int
    modified_ns: int
    """By the store's clock, since 1970."""

    @property
    def modified_s(self) -> float:
        return self.modified_ns / 1e9
