"""Sampled: what a changed definition would change, judged on a sample of the log, as it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from twinlake.base.as_json import to_json
from twinlake.releases.comparison import Comparison

CHANGED = "changed"
"""The name of the changed definition, where a comparison names a version."""


@dataclass(frozen=True, kw_only=True)
class Against:
    """The live version that the changed definition is judged against, and the release that has it.

    Of records in files it is a commit of git, and no release.
    """

    version: str
    release: int | None


@dataclass(frozen=True, kw_only=True)
class SampledTopic:
    """What the sample has of one topic: the batches `first_batch` to `last_batch`, both included.

    `records` counts all of their records, whatever their verdict; `begin` and `end` are the earliest and the
    latest time that Kafka gave one of them, None where there are none.
    """

    first_batch: int
    last_batch: int
    records: int
    begin: str | None
    end: str | None


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Which records both definitions saw: `records` of the `of_records` that the logs hold.

    By keys these are the ones that the keys were drawn among, and of `keys`, so many, every record was read
    that the logs hold. By files, each record is a batch of its own. `whole`: the sample is all that the logs
    hold, as what a build would be made of.
    """

    by: Literal["records", "keys", "files"]
    records: int
    of_records: int
    topics: Mapping[str, SampledTopic]
    keys: int | None = None
    whole: bool = False


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a build of the changed definition would cost, as a plan says it."""

    builds: bool
    records: int
    bytes: int
    minutes_estimate: float
    reaches_back: bool
    history: str


@dataclass(frozen=True, kw_only=True)
class SampledChange:
    """`changed` is False where the definition means what is live: nothing is sampled and compared then.

    `why` says what differs in the definitions, or that nothing does; `limits` what the sample cannot say.
    """

    table: str
    against: Against
    changed: bool
    why: tuple[str, ...]
    sample: Taken | None = None
    limits: tuple[str, ...] = ()
    comparison: Comparison | None = None
    cost: Cost | None = None
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether both definitions give the same over the sample."""
        return self.comparison is None or self.comparison.equal

    def to_json(self) -> dict[str, Any]:
        compared = self.comparison.to_json() if self.comparison else None
        return {**to_json(asdict(self)), "comparison": compared, "equal": self.equal}
