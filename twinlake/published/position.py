"""Position: what a published table shows, as each of its commits says it, with its rows in one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from twinlake.lake.catalog.version import Find, Pin, pin_of

APP = "twinlake"
"""The Delta transaction app that counts the commits."""


@dataclass(frozen=True, kw_only=True)
class Position:
    """The rows are what the version showed at this pin, in this release. `starts` says by topic which
    retention of its log had been the last one, `way` how the changes were found, `changed` how many rows,
    `after` the folder's version that they were computed for, -1 for none (None where
    an earlier Twinlake has committed)."""

    lake: str
    table: str
    release: int
    version: str
    position: dict[str, int]
    pin: dict[str, Any]
    starts: dict[str, int]
    way: str
    changed: int
    published_at: str
    after: int | None = None

    def pinned(self, find: Find) -> Pin | None:
        """The pin, None where one of its versions is no longer living."""
        return pin_of(self.table, self.pin, find)

    def is_at(self, release: int, batches: Mapping[str, int]) -> bool:
        return (self.release, self.position) == (release, dict(batches))

    def marks(self) -> dict[str, int]:
        """Delta transactions by which any reader of Delta knows release and position: by app, a number."""
        return {
            f"{APP}.release": self.release,
            **{f"{APP}:{topic}": batch for topic, batch in sorted(self.position.items())},
        }

    def to_json(self) -> dict[str, Any]:
        return {"kind": "published", **asdict(self)}

    @classmethod
    def from_json(cls, metadata: Mapping[str, Any]) -> Position | None:
        """None for what no commit of ours says."""
        try:
            return cls(**{name: value for name, value in metadata.items() if name != "kind"})
        except TypeError:
            return None
