"""Passed: whether a table has come to a position, or to the offsets of records, that a service waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from twinlake.base.errors import UsageError
from twinlake.base.location import Location
from twinlake.lake.delta import delta
from twinlake.reading.as_of import parse_position

_OFFSET = re.compile(r"([A-Za-z0-9._-]+)/(\d{1,9})=(\d{1,18})")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """By topic a batch number; by topic and partition the offset of a record."""

    text: str
    batches: Mapping[str, int] = field(default_factory=dict)
    offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @property
    def topics(self) -> set[str]:
        return {*self.batches, *(topic for topic, _ in self.offsets)}

    def is_passed(self, logs: Location, at: Mapping[str, int]) -> bool:
        """Whether a table at this position, by topic a batch number, has all of it."""
        if any(at.get(topic, 0) < batch for topic, batch in self.batches.items()):
            return False
        return all(
            _has(logs / one[0], at.get(one[0], 0), one[1], offset) for one, offset in self.offsets.items()
        )


def parse_wanted(min_position: str | None, min_offsets: str | None) -> Wanted | None:
    """Of `orders=120,payments=7` and `orders/0=1234,orders/1=88`; None without both."""
    texts = [text for text in (min_position, min_offsets) if text is not None]
    if not texts:
        return None
    offsets = dict[tuple[str, int], int]()
    for part in min_offsets.split(",") if min_offsets is not None else ():
        found = _OFFSET.fullmatch(part)
        if not found or (found[1], int(found[2])) in offsets:
            why = "they are a topic, a partition and an offset each, and name a partition once"
            raise UsageError(f"{min_offsets!r} are not offsets", why, "write orders/0=1234,orders/1=88")
        offsets[found[1], int(found[2])] = int(found[3])
    batches = parse_position(min_position) if min_position is not None else {}
    return Wanted(text=",".join(texts), batches=batches, offsets=offsets)


def _has(log: Location, batch: int, partition: int, offset: int) -> bool:
    """Whether the log has the record in this batch or one before, of the epoch that it is in."""
    metadata = delta.newest_metadata(
        log, lambda found: "ends" in found and found.get("batch", batch + 1) <= batch
    )
    if not metadata:
        return False
    ends: Mapping[str, int] = metadata["ends"].get(str(metadata["epoch"]), {})
    return ends.get(str(partition), 0) > offset
