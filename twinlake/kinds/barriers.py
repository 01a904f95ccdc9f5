"""Owns barriers: moments in a change topic before which all that had been said of the mirrored table is void.

A complete snapshot is one (a key that it does not have had been deleted while nobody looked), and a truncate.
Their states lie beside those of the keys, marked by `_barrier`; their hashes are NULL. There is one per
barrier and partition: within a partition the offset says for sure what came before, and across them Kafka
keeps no order (a linger, a retry, a slow leader), so that its time alone must not hide a row. Of a definition
without `source_place`, as all were once, it is one per barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base import quote
from twinlake.kinds.definition import refuse_keys
from twinlake.kinds.evidence import ROWS
from twinlake.kinds.expression import Expression, holds_sql
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BARRIER = "_barrier"
"""What tells barriers apart; NULL in the states of keys."""
_IN, _BEGAN, _COMPLETE, _PLACE = "_barrier_in", "_began", "_complete", "_place"
_EPOCH, _PARTITION, _OFFSET = (quote.name(name) for name in record_id.KEY)
_TIME = quote.name(record_id.TIMESTAMP)


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
class SourcePlace:
    """Where in its source's own log a record was; SQL over the topic's rows."""

    of: str
    """Which log, as text: places can be compared where this is equal."""
    at: str
    """What grows along that log."""

    def to_json(self) -> dict[str, Any]:
        return {"of": self.of, "at": self.at}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SourcePlace:
        """The inverse of `to_json`; an unknown key is refused by name."""
        refuse_keys(data, {"of", "at"}, "source_place")
        return cls(**data)


@dataclass(frozen=True, kw_only=True)
class Barriers:
    """Those of one definition; without any it adds nothing to states or view."""

    snapshot: Snapshot | None
    truncate_when: str | None
    place: SourcePlace | None

    def __bool__(self) -> bool:
        return self.snapshot is not None or self.truncate_when is not None

    @property
    def state_keys(self) -> tuple[str, ...]:
        return () if not self else (BARRIER, _IN) if self.place else (BARRIER,)

    @property
    def kept(self) -> tuple[str, ...]:
        """What the state of a key keeps of its newest row, so that it can be said to be before a barrier."""
        return (record_id.TIMESTAMP, *self._placed) if self else ()

    @property
    def columns(self) -> dict[str, str]:
        """Columns, as SQL over the topic's rows, that a row has besides those of its definition."""
        if not self or self.place is None:
            return {}
        of, at = f"CAST({quote.expression(self.place.of)} AS STRING)", quote.expression(self.place.at)
        known = f"{of} IS NOT NULL AND {at} IS NOT NULL"
        return {_PLACE: f"CASE WHEN {known} THEN named_struct('of', {of}, 'at', {at}) END"}

    def expressions(self) -> Iterator[Expression]:
        if self.snapshot is not None:
            yield Expression(what="snapshot.of", sql=self.snapshot.of)
            yield Expression(what="snapshot.last", sql=self.snapshot.last, type="boolean")
        if self.truncate_when is not None:
            yield Expression(what="truncate_when", sql=self.truncate_when, type="boolean")
        if self.place is not None:
            yield Expression(what="source_place.of", sql=self.place.of)
            yield Expression(what="source_place.at", sql=self.place.at)

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
        within = f"concat_ws('/', {_EPOCH}, {_PARTITION})"
        marked = rows.select(
            F.expr(self._named).alias(BARRIER), F.expr(within).alias(_IN), F.expr(self._ends).alias("ends"),
            *record_id.NAMES, *(F.expr(sql).alias(name) for name, sql in self.columns.items()),
        )  # fmt: skip
        found = marked.where(f"{BARRIER} IS NOT NULL").groupBy(*self.state_keys).agg(
            F.expr(f"min(struct({self._first}))").alias(_BEGAN),
            F.expr("bool_or(ends)").alias(_COMPLETE),
            *(F.min(name).alias(name) for name in self._placed),
            F.expr("count(1)").alias(ROWS),
        )  # fmt: skip
        return self._beside(keys, found)

    def merged(self, keys: DataFrame, states: DataFrame) -> DataFrame:
        """The merged states of keys, and the merged barriers of the states."""
        from pyspark.sql import functions as F

        if not self:
            return keys
        found = states.where(f"{BARRIER} IS NOT NULL").groupBy(*self.state_keys).agg(
            F.min(_BEGAN).alias(_BEGAN),
            F.expr(f"bool_or({_COMPLETE})").alias(_COMPLETE),
            *(F.min(name).alias(name) for name in self._placed),
            F.sum(ROWS).alias(ROWS),
        )  # fmt: skip
        return self._beside(keys, found)

    def since(self, relation: str) -> str:
        """SQL of all that `is_before` must know of the complete barriers in the states.

        `firsts`: by epoch and partition, where the last of them began. `others`: when, and at which place,
        those began that had no record in a row's partition; one is left out where another hides all that it
        hides, so there are few, however many barriers there were.
        """
        places_of = ("", "") if not self.place else (f", min(`{_PLACE}`) AS place", ", min(place) AS place")
        begun = (
            f"SELECT `{BARRIER}`, min(`{_BEGAN}`) AS began,"
            f" bool_or(`{_COMPLETE}`) AS complete{places_of[0]}\n"
            f"    FROM {relation} WHERE `{BARRIER}` IS NOT NULL GROUP BY {quote.names(self.state_keys)}"
        )
        barriers = (
            f"SELECT began.{_EPOCH} AS epoch, min(began.{_TIME}) AS time,\n"
            f"    array_sort(collect_list(struct(began.{_PARTITION} AS partition,"
            f" began.{_OFFSET} AS offset))) AS firsts{places_of[1]}\n"
            f"  FROM (\n    {begun}\n  ) GROUP BY `{BARRIER}`, began.{_EPOCH} HAVING bool_or(complete)"
        )
        one = f"struct(epoch, time, firsts.partition AS partitions{', place' if self.place else ''})"
        places = (
            " AND coalesce(a.place IS NULL OR a.place.of = b.place.of AND a.place.at >= b.place.at, false)"
            if self.place else ""
        )  # fmt: skip
        hides_more = (
            "a.epoch > b.epoch OR a.epoch = b.epoch AND a.time >= b.time"
            f" AND size(array_except(a.partitions, b.partitions)) = 0{places}"
        )
        within = "a.epoch = b.epoch AND a.partition = b.partition"
        return (
            f"(SELECT struct(\n"
            f"  aggregate(firsts, slice(firsts, 1, 0), (found, b) -> IF(\n"
            f"    exists(found, a -> {within} AND a.offset >= b.offset), found,\n"
            f"    array_append(filter(found, a -> NOT ({within})), b))) AS firsts,\n"
            f"  aggregate(others, slice(others, 1, 0), (found, b) -> IF(\n"
            f"    exists(found, a -> {hides_more}), found, array_append(found, b))) AS others)\n"
            f"FROM (SELECT\n"
            f"  flatten(collect_list(transform(firsts,"
            f" a -> struct(epoch, a.partition, a.offset)))) AS firsts,\n"
            f"  reverse(array_sort(collect_list({one}))) AS others\n"
            f"FROM (\n  {barriers}\n)))"
        )

    def is_before(self, row: str, since: str) -> str:
        """SQL that is true where the row, a struct, is older than a barrier: than where that began.

        A later epoch's barrier is newer. In a partition with a record of the barrier the offset says so. In
        another one Kafka's time must say so, where what came in the very millisecond in which the barrier
        began is newer, and the place, where both have one of the same log.
        """
        newer_place = f"{row}.{_PLACE}.of = b.place.of AND {row}.{_PLACE}.at >= b.place.at"
        places = f" AND NOT coalesce({newer_place}, false)" if self.place else ""
        first = (
            f"a.epoch > {row}.{_EPOCH} OR a.epoch = {row}.{_EPOCH} AND a.partition = {row}.{_PARTITION}"
            f" AND a.offset > {row}.{_OFFSET}"
        )
        other = (
            f"b.epoch = {row}.{_EPOCH} AND NOT array_contains(b.partitions, {row}.{_PARTITION})"
            f" AND b.time > {row}.{_TIME}{places}"
        )
        return f"(exists({since}.firsts, a -> {first})\n    OR exists({since}.others, b -> {other}))"

    @property
    def _placed(self) -> tuple[str, ...]:
        return (_PLACE,) if self.place else ()

    @property
    def _first(self) -> str:
        """What orders the records of a barrier's state: of a partition the offset, of several the time."""
        time, key = (record_id.TIMESTAMP,), record_id.KEY
        return quote.names((*key, *time) if self.place else (*time, *key))

    @property
    def _truncates(self) -> str:
        return holds_sql(self.truncate_when)

    @property
    def _named(self) -> str:
        snapshot = quote.expression(self.snapshot.of) if self.snapshot else "CAST(NULL AS STRING)"
        numbers = ", ".join(record_id.KEY)
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
        return both.select(*map(quote.name, (*keys.columns, *self.state_keys, _BEGAN, _COMPLETE)))
