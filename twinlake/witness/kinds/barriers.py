"""Owns what hides rows of a mirrored table: complete snapshots, and truncates (docs/change_data.md).

A barrier hides every key whose newest row is older than the barrier's first record: by the offset in a
partition that has a record of it, by an older epoch, elsewhere by Kafka's time and, where both have one in
the same log, the place in the database's log. Without places in the definition it is its first record alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twinlake.witness.database import Database, Types
from twinlake.witness.expressions import translate
from twinlake.witness.text import RECORD_NUMBER, order_key

_TRUNCATE, _LOG, _AT = "_truncate", "_place_of", "_place_at"
_RECORD = ("_epoch", "_partition", "_offset", "_timestamp")
_MARKED, _FIRSTS, _BARRIERS, _WITHIN, _OTHERS = (
    "_marked", "_barrier_firsts", "_barriers", "_barriers_within", "_barriers_elsewhere",
)  # fmt: skip


@dataclass(frozen=True)
class Barriers:
    """Those of one definition, none where it has neither snapshots nor truncates."""

    snapshot: Mapping[str, str] | None
    truncate_when: str | None
    place: Mapping[str, str] | None

    @classmethod
    def of(cls, definition: Mapping[str, Any]) -> Barriers:
        names = ("snapshot", "truncate_when", "source_place")
        return cls(*(definition.get(name) for name in names))

    def __bool__(self) -> bool:
        return self.snapshot is not None or self.truncate_when is not None

    @property
    def columns(self) -> dict[str, str]:
        """Expressions over the topic's rows that a row of a key needs besides."""
        found = {} if self.truncate_when is None else {_TRUNCATE: self.truncate_when}
        if self and self.place is not None:
            found |= {_LOG: _text(self.place["of"]), _AT: self.place["at"]}
        return found

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of a key's newest row that tell whether it is older."""
        return () if not self else (*_RECORD, *((_LOG, _AT) if self.place else ()))

    @property
    def without_truncates(self) -> str:
        """A truncate is a record of no key."""
        return "" if self.truncate_when is None else f" WHERE NOT coalesce({_TRUNCATE}, false)"

    def hides(self, database: Database, source: str, types: Types, row: str) -> str:
        """SQL that is true where a key's newest row, a struct, is hidden; never NULL. `source` has all of the
        topic's rows: what `where` leaves out may be a barrier."""
        if not self:
            return "false"
        self._mark(database, source, types)
        database.table(_BARRIERS, self._complete())
        database.table(
            _WITHIN,
            "SELECT epoch, f.part AS part, max(f.num) AS num"
            f" FROM (SELECT epoch, unnest(firsts) AS f FROM {_BARRIERS}) GROUP BY epoch, f.part",
        )
        database.table(_OTHERS, _not_hidden_by_another())
        same = f"{row}._epoch = b.epoch"
        newer = ""
        if self.place is not None:
            at = order_key(f"{row}.{_AT}", translate(self.place["at"], types).type)
            known = f"{row}.{_LOG} = b.source AND {row}.{_AT} IS NOT NULL"
            newer = f" AND NOT coalesce({known} AND {at} >= b.spot, false)"
        elsewhere = (
            f"{same} AND NOT list_contains(b.parts, {row}._partition) AND b.stamp > {row}._timestamp{newer}"
        )
        return (
            f"(coalesce({row}._epoch < (SELECT max(epoch) FROM {_BARRIERS}), false)"
            f" OR EXISTS (SELECT 1 FROM {_WITHIN} AS b WHERE {same} AND {row}._partition = b.part"
            f" AND {row}._offset < b.num)"
            f" OR coalesce(list_bool_or(list_transform((SELECT list(b) FROM {_OTHERS} AS b),"
            f" lambda b: {elsewhere})), false))"
        )

    def _mark(self, database: Database, source: str, types: Types) -> None:
        """Each record of a barrier: the barrier's name, whether it ends it, and its place."""
        truncates, name, ends = "false", "CAST(NULL AS VARCHAR)", "false"
        if self.truncate_when is not None:
            truncates = f"coalesce({translate(self.truncate_when, types).sql}, false)"
        if self.snapshot is not None:
            name = f"'snapshot/' || {translate(_text(self.snapshot['of']), types).sql}"
            ends = f"coalesce({translate(self.snapshot['last'], types).sql}, false)"
        log, at = "CAST(NULL AS VARCHAR)", "CAST(NULL AS INTEGER)"
        if self.place is not None:
            log, place = translate(_text(self.place["of"]), types).sql, translate(self.place["at"], types)
            known = f"{log} IS NOT NULL AND {place.sql} IS NOT NULL"
            log, at = (f"CASE WHEN {known} THEN {sql} END" for sql in (log, order_key(place.sql, place.type)))
        database.view(
            _MARKED,
            f"SELECT CASE WHEN {truncates} THEN 'truncate/' || CAST({RECORD_NUMBER} AS VARCHAR)"
            f" ELSE {name} END AS name, {truncates} OR {ends} AS ends, {log} AS source, {at} AS spot,"
            f" _epoch AS epoch, _partition AS part, _offset AS num, _timestamp AS stamp,"
            f" {RECORD_NUMBER} AS record FROM {source}",
        )

    def _complete(self) -> str:
        """SELECT text: every barrier whose last record is there, by epoch."""
        if self.place is None:
            first = "arg_min(struct_pack(epoch, part, num, stamp), struct_pack(stamp, record))"
            return (
                "SELECT began.epoch AS epoch, began.stamp AS stamp, CAST(NULL AS VARCHAR) AS source,"
                " CAST(NULL AS INTEGER) AS spot, [began.part] AS parts,"
                " [struct_pack(part := began.part, num := began.num)] AS firsts"
                f" FROM (SELECT {first} AS began, bool_or(ends) AS ends FROM {_MARKED} WHERE name IS NOT NULL"
                " GROUP BY name) WHERE ends"
            )
        place = "min(struct_pack(source, spot)) FILTER (WHERE source IS NOT NULL)"
        return (
            "SELECT epoch, min(stamp) AS stamp, min(place).source AS source, min(place).spot AS spot,"
            " list_sort(list(part)) AS parts, list(struct_pack(part, num)) AS firsts"
            f" FROM (SELECT name, epoch, part, min(num) AS num, arg_min(stamp, num) AS stamp,"
            f" {place} AS place, bool_or(ends) AS ends FROM {_MARKED} WHERE name IS NOT NULL"
            " GROUP BY name, epoch, part) GROUP BY name, epoch HAVING bool_or(ends)"
        )


def _not_hidden_by_another() -> str:
    """SELECT text: of barriers with records in the same partitions and places in the same log, those that no
    later one at a later place makes superfluous: few, however many there were."""
    order = "PARTITION BY epoch, parts, source ORDER BY stamp DESC, spot DESC"
    before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    return (
        f"SELECT epoch, stamp, source, spot, parts FROM (SELECT *, max(spot) OVER ({order} {before}) AS best,"
        f" row_number() OVER ({order}) AS nth FROM {_BARRIERS}) WHERE nth = 1 OR spot > best"
    )


def _text(sql: str) -> str:
    # a comment at the end of the expression cannot swallow the rest
    return f"CAST((\n{sql}\n) AS STRING)"
