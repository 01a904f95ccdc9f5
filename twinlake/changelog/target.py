"""Target: the topics that a changelog is sent to, and what holds of them."""

from __future__ import annotations

from dataclasses import dataclass, field

COMPACTED = {"cleanup.policy": "compact"}
KEPT_FOR_A_WHILE = {"cleanup.policy": "delete"}
PARTITIONS = 4


@dataclass(frozen=True, kw_only=True)
class Target:
    """`topics` get the records, `positions` the position: compacted, of one partition.

    Topics of changes are compacted: they are complete as long as the newest record of every key is kept.
    Those of events are not, which would leave out all but the newest. Both are made where they are missing.
    """

    topics: tuple[str, ...]
    positions: str
    has_events: bool = False
    keyed: bool = True
    """A key has one partition for ever, so that partitions may not be added."""
    partitions: int = PARTITIONS
    """How many a topic that is made has."""

    @property
    def shown(self) -> str:
        return ", ".join(self.topics)

    @property
    def names(self) -> tuple[str, ...]:
        """All its topics."""
        return (*self.topics, self.positions)

    @property
    def config(self) -> dict[str, str]:
        """Of a topic that is made."""
        return KEPT_FOR_A_WHILE if self.has_events else COMPACTED


@dataclass(frozen=True, kw_only=True)
class Made:
    """A topic as the broker has it: its id, which another one of its name has not, and its partitions."""

    id: str
    partitions: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """`partition` is chosen by the key where it is None; `headers` are those that other records have not."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


def position_topic(topic: str) -> str:
    """Where the positions of a changelog to one topic are."""
    return f"{topic}.position"


def changes_to(topic: str) -> Target:
    """Where the changes of rows go."""
    return Target(topics=(topic,), positions=position_topic(topic))
