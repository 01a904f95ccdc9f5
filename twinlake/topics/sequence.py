"""An endless sequence of one topic's records, fixed by its seed, and their JSON, for `records.py`.

Events happen in a story of their own; when they are said to have happened, and which are sent twice, is
decided here. All chance comes from two streams that are read once per record and never by the clock, so the
sequence does not depend on how many records are asked for at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Protocol

from twinlake.topics.records import Draw, Sources, Wanted
from twinlake.topics.topic import Topic
from twinlake.topics.values import value_writer

DUPLICATE, LATE, TIE = 0.03, 0.02, 0.05
"""Shares of all records: sent before, later than the contract's `lateAfter`, at the same time as the last."""
USUAL_LAG_S = 2.0
REMEMBERED = 1_000  # how far back a duplicate may reach, in records


class Story(Protocol):
    """What happens, one event after the other; its state and its stream of chance are its own."""

    key: str
    """The field whose value is the record's key; in change data, of the row."""

    def event(self, at: datetime) -> dict[str, Any]:
        """The next event's fields but its id; it happens at `at`, and nothing of it depends on that."""


def stories(of_topics: Mapping[str, Callable[[Random], Story]]) -> Sources:
    """SOURCES of a `records.py`: for each topic the sequence of what happens in its story."""

    def source(name: str, wanted: Wanted) -> Sequence:
        return Sequence(
            topic=wanted.topic, story=of_topics[name](Random(f"{wanted.seed}/{name}/story")),
            seed=wanted.seed, run=wanted.run, schema_id=max(wanted.schemas, default=0),
            span_ms=wanted.span_ms,
        )  # fmt: skip

    return {name: partial(source, name) for name in of_topics}


@dataclass(kw_only=True)
class Sequence:
    """The records of one (topic, seed, run); `draw` continues where it stopped.

    `run` tells two sequences of one seed apart by their event ids and by nothing else; change data has none:
    of one seed it is the same database's, sent once more. With a span the events
    lie anywhere in so many milliseconds before now, otherwise a few seconds before.
    """

    topic: Topic
    story: Story
    seed: int
    run: str
    schema_id: int
    span_ms: int = 0
    _number: int = field(default=0, init=False)
    _before: timedelta = field(default=timedelta(0), init=False)
    _recent: deque[tuple[bytes, bytes]] = field(default_factory=lambda: deque(maxlen=REMEMBERED), init=False)

    def __post_init__(self) -> None:
        self._random = Random(f"{self.seed}/{self.topic.name}/time")
        self._written = value_writer(self.topic, self.schema_id)

    def draw(self, count: int, now_ms: int) -> Draw:
        """The next `count` records as if they happened around (or, with a span, up to) `now_ms`."""
        now = datetime.fromtimestamp(now_ms // 1000, UTC) + timedelta(milliseconds=now_ms % 1000)
        keys: list[bytes] = []
        values: list[bytes | None] = []
        faults = {"duplicate": 0, "late": 0}
        for _ in range(count):
            fault, which = self._random.random(), self._random.random()
            if fault < DUPLICATE and self._recent:
                key, value = self._recent[int(which * len(self._recent))]
                faults["duplicate"] += 1
            else:
                late = DUPLICATE <= fault < DUPLICATE + LATE
                key, value = self._record(now, late, which)
                faults["late"] += late
            keys.append(key)
            values.append(value)
        return Draw(keys=keys, values=values, faults=faults)

    def _record(self, now: datetime, late: bool, which: float) -> tuple[bytes, bytes]:
        contract = self.topic.contract
        assert contract.late_after  # every topic has one
        if which >= TIE or late:
            usual = timedelta(milliseconds=self.span_ms * which) if self.span_ms else self._usual()
            self._before = contract.late_after * (1.1 + which) if late else usual
        at = now - timedelta(milliseconds=self._before // timedelta(milliseconds=1))
        event = self.story.event(at)
        self._number += 1
        if contract.unique:
            event[contract.unique] = f"{self.topic.name}-{self.run}-{self._number:08d}"
        keyed = event["after"] or event["before"] if contract.change_data else event
        sent = (str(keyed[self.story.key] or "").encode(), self._written(event))
        self._recent.append(sent)
        return sent

    def _usual(self) -> timedelta:
        return timedelta(seconds=self._random.expovariate(1 / USUAL_LAG_S))
