"""Owns barriers: moments in a change topic before which all that had been said of the mirrored table is void.

A complete snapshot is one (a key that it does not have had been deleted while nobody looked), and a truncate.
Their states lie beside those of the keys, one per barrier, told apart by `_barrier`; their hashes are NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs import quote
from jobs.kinds.definition import refuse_keys
from jobs.kinds.evidence import ROWS
from jobs.kinds.expression import Expression, holds_sql
from jobs.topics import coordinate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BARRIER = "_barrier"
"""What tells barriers apart; NULL in the states of keys."""
_BEGAN, _COMPLETE = "_began", "_complete"
_COORDINATE = quote.names((coordinate.TIMESTAMP, *coordinate.KEY))


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """How a complete snapshot shows in a change topic; SQL over the topic's rows."""

    of: str
    """What all records of one snapshot have in common, as text; NULL for every other record."""
    last: str
    """True for the record that ends it."""

    def to_json(self) -> dict[str, Any]:
        return {"of": self.of, "last": self.last}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Snapshot:
        """The inverse of `to_json`; an unknown key is refused by name."""
        refuse_keys(data, {"of", "last"}, "snapshot")
        return cls(**data)


@dataclass(frozen=True, kw_only=True)
class Barriers:
    """Those of one definition; without any it adds nothing to states or view."""

    snapshot: Snapshot | None
    truncate_when: str | None

    def __bool__(self) -> bool:
        return self.snapshot is not None or self.truncate_when is not None

    @property
    def state_keys(self) -> tuple[str, ...]:
        return (BARRIER,) if self else ()

    @property
    def kept(self) -> tuple[str, ...]:
        """What the state of a key keeps of its newest row, so that it can be said to be before a barrier."""
        return (coordinate.TIMESTAMP,) if self else ()

    def expressions(self) -> Iterator[Expression]:
        if self.snapshot is not None:
            yield Expression(what="snapshot.of", sql=self.snapshot.of)
            yield Expression(what="snapshot.last", sql=self.snapshot.last, type="boolean")
        if self.truncate_when is not None:
            yield Expression(what="truncate_when", sql=self.truncate_when, type="boolean")

    def without(self, rows: DataFrame) -> DataFrame:
        """The rows that tell of a key: a truncate tells of none."""
        return rows if self.truncate_when is None else rows.where(f"NOT {self._truncates}")

    def of_keys(self, states: DataFrame) -> DataFrame:
        return states.where(f"{BARRIER} IS NULL") if self else states

    def from_rows(self, keys: DataFrame, rows: DataFrame) -> DataFrame:
        """The states of keys, and those of the barriers in the same rows of the topic."""
        from pyspark.sql import functions as F

        if not self:
            return keys
        told = rows.select(
            F.expr(self._named).alias(BARRIER), F.expr(self._ends).alias("ends"), *coordinate.NAMES
        )
        found = told.where(f"{BARRIER} IS NOT NULL").groupBy(BARRIER).agg(
            F.expr(f"min(struct({_COORDINATE}))").alias(_BEGAN),
            F.expr("bool_or(ends)").alias(_COMPLETE),
            F.expr("count(1)").alias(ROWS),
        )  # fmt: skip
        return self._beside(keys, found)

    def merged(self, keys: DataFrame, states: DataFrame) -> DataFrame:
        """The merged states of keys, and the merged barriers of the states."""
        from pyspark.sql import functions as F

        if not self:
            return keys
        found = states.where(f"{BARRIER} IS NOT NULL").groupBy(BARRIER).agg(
            F.min(_BEGAN).alias(_BEGAN),
            F.expr(f"bool_or({_COMPLETE})").alias(_COMPLETE),
            F.sum(ROWS).alias(ROWS),
        )  # fmt: skip
        return self._beside(keys, found)

    @staticmethod
    def newest(relation: str) -> str:
        """SQL of where the newest barrier of the states began, NULL where there is none."""
        barriers = (
            f"SELECT min(`{_BEGAN}`) AS began, bool_or(`{_COMPLETE}`) AS complete\n"
            f"  FROM {relation} WHERE `{BARRIER}` IS NOT NULL GROUP BY `{BARRIER}`"
        )
        return f"(SELECT max(began) FROM (\n  {barriers}\n) WHERE complete)"

    @staticmethod
    def is_before(row: str, barrier: str) -> str:
        """SQL that is true where the row, a struct, is older than a barrier: where that began.

        In the barrier's own partition the offset says so. Across partitions only Kafka's time can, and what
        came in the very millisecond in which the barrier began is taken for newer.
        """
        epoch, partition, offset = (quote.name(name) for name in coordinate.KEY)
        time = quote.name(coordinate.TIMESTAMP)
        own = f"{row}.{epoch} = {barrier}.{epoch} AND {row}.{partition} = {barrier}.{partition}"
        older = f"{row}.{offset} < {barrier}.{offset}", f"{row}.{time} < {barrier}.{time}"
        return f"coalesce(CASE WHEN {own} THEN {older[0]} ELSE {older[1]} END, false)"

    @property
    def _truncates(self) -> str:
        return holds_sql(self.truncate_when)

    @property
    def _named(self) -> str:
        snapshot = quote.expression(self.snapshot.of) if self.snapshot else "CAST(NULL AS STRING)"
        numbers = ", ".join(coordinate.KEY)
        return (
            f"CASE WHEN {self._truncates} THEN concat_ws('/', 'truncate', {numbers}) "
            f"ELSE concat('snapshot/', {snapshot}) END"
        )

    @property
    def _ends(self) -> str:
        return f"{self._truncates} OR {holds_sql(self.snapshot.last if self.snapshot else None)}"

    def _beside(self, keys: DataFrame, barriers: DataFrame) -> DataFrame:
        """Both with all columns: what one of them lacks is NULL in its rows."""
        both = keys.unionByName(barriers, allowMissingColumns=True)
        return both.select(*map(quote.name, (*keys.columns, BARRIER, _BEGAN, _COMPLETE)))
