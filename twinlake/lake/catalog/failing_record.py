"""Failing record: the record, and the expression of a definition, that make the computing of rows raise."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.base.errors import StalledVersionError
from twinlake.kinds.expression import Stage
from twinlake.kinds.kind import Kind
from twinlake.kinds.raising import first_raising
from twinlake.lake.catalog.version import Version
from twinlake.topics.change import RELEASE_WIDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OF_DATA = re.compile(r"SQLSTATE: (22|23|P0)\w{3}")  # SQL's classes of errors that a value causes
REMEDY = (
    "write the expression so that it gives NULL where it cannot be computed (try_divide, try_cast, nullif; "
    "`twinlake check` names such places), then release the definition: `twinlake plan`, `build`, `promote`"
)


@dataclass(frozen=True, kw_only=True)
class FailingRecord:
    """The first record, by record id, for which the expression raises; `why` is what Spark says."""

    topic: str
    epoch: int
    partition: int
    offset: int
    expression: str
    why: str

    @property
    def what(self) -> str:
        """What raises, and for which record."""
        place = f"{self.topic} (epoch {self.epoch}, partition {self.partition}, offset {self.offset})"
        return f"{self.expression} raises for {place}"

    def stalls(self, version: Version, batch: int) -> StalledVersionError:
        """The error of a version that cannot go on from `batch`."""
        facts = {name: str(value) for name, value in vars(self).items() if name != "why"}
        why, outgrown, _ = self.why.partition(f": {RELEASE_WIDER}")
        return StalledVersionError(
            f"{version} does not advance from batch {batch}: {self.what}",
            why, f"{RELEASE_WIDER}: `twinlake plan`, `build`, `promote`" if outgrown else REMEDY, facts,
        )  # fmt: skip


def is_of_data(error: Exception) -> bool:
    """Whether Spark says that a value is to blame, and not the machine."""
    return _OF_DATA.search(str(error)) is not None


def failing_record(definition: Kind, rows: DataFrame) -> FailingRecord | None:
    """Who makes these rows of the definition's one topic raise; None if no expression does.

    Reads the rows once for each expression, until one is found.
    """
    (topic,) = definition.inputs
    return first_failing(topic, definition.stages({topic: rows}))


def first_failing(topic: str, stages: Iterable[Stage]) -> FailingRecord | None:
    """The same over the rows of stages, whose record id columns are those of the topic's records."""
    for stage in stages:
        seen = stage.rows
        for expression in stage.expressions:
            found = first_raising(expression, seen)
            if found is not None:
                at, why = found
                return FailingRecord(
                    topic=topic, epoch=at[0], partition=at[1], offset=at[2], why=why,
                    expression=f"{expression.what} ({expression.sql})",
                )  # fmt: skip
            if expression.filters:
                seen = seen.where(expression.sql)
    return None
