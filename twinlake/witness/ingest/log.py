"""Owns what is read of a log's files: a drawn sample with what ingest has decided, and earlier records.

A record that a replay has validated again counts by its latest copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from twinlake.witness import default
from twinlake.witness.database import Database
from twinlake.witness.ingest.change_data import PLACES
from twinlake.witness.ingest.question import Era, TopicQuestion
from twinlake.witness.ingest.record import Raw, Value
from twinlake.witness.refused import Refused
from twinlake.witness.types import Type, identifier, text_literal

_SHARE = 4
"""Of each verdict that is not `valid`, size / _SHARE records are drawn besides."""
_RECORD = 'epoch, "partition", "offset"'
_PLACE = f"batch, {_RECORD}"
_HAVE_TIMES = ("timestamp", "timestamp_ntz", "date")
_AS_TEXT = ("boolean", "int", "bigint", "string", "date", "timestamp", "decimal", "binary")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A record of the log."""

    raw: Raw
    batch: int
    is_replay: bool
    verdict: str
    reasons: tuple[str, ...]
    late: bool
    schema_id: int | None
    event: Mapping[str, Value] | None


@dataclass(frozen=True)
class Asked:
    """A record whose identity may have come before; `identity` is text. `at` tells it from others."""

    at: int
    row: Row
    identity: str


class Log:
    """The rows up to the position, and the fields of their `event` that can be compared."""

    def __init__(self, database: Database, question: TopicQuestion, files: str) -> None:
        self._database, self._question = database, question
        self._tables = 0
        present = database.columns(files)
        late = "late" if "late" in present else "false AS late"
        replay = "replay" if "replay" in present else "false AS replay"
        shown = ", ".join(
            (_PLACE, "epoch_us(timestamp) AS micros", "key", "value", "schema_id", "event", "verdict",
             "reasons", late, replay)
        )  # fmt: skip
        self._rows = database.view(
            "_log", f"SELECT {shown} FROM {files} WHERE batch <= {int(question.position)}"
        )
        there = database.fields(files, "event")
        self.kept = {name: type_ for name, type_ in self._types() if name in there}

    def _types(self) -> Iterator[tuple[str, Type]]:
        for name, text in self._question.event.items():
            try:
                yield name, Type.parse(text)
            except Refused:
                continue  # of no type that a topic may have: its writer alone knows it

    def counts(self, after: int) -> tuple[int, int]:
        """How many records there are after a batch, and up to it."""
        return self._database.one(
            f"SELECT count(*) FILTER (batch > {after}), count(*) FILTER (batch <= {after})"
            f" FROM {self._rows} WHERE NOT replay"
        )  # type: ignore[return-value]

    def sample(self, after: int) -> list[Row]:
        """Records by chance, and some of each verdict that is rare; in the order of the log."""
        replays = self._database.table(
            "_replays", f"SELECT {_RECORD}, max(batch) AS batch FROM {self._rows} WHERE replay GROUP BY ALL"
        )
        same = 'r.epoch = l.epoch AND r."partition" = l."partition" AND r."offset" = l."offset"'
        known = self._database.view(
            "_drawable",
            f"SELECT {_PLACE}, verdict, hash({int(self._question.seed)}, {_RECORD}) AS chance"
            f" FROM {self._rows} AS l WHERE batch > {after}"
            f" AND NOT EXISTS (SELECT 1 FROM {replays} AS r WHERE r.batch > l.batch AND {same})",
        )
        size = int(self._question.size)
        rare = f"row_number() OVER (PARTITION BY verdict ORDER BY chance) <= {max(1, size // _SHARE)}"
        chosen = self._database.table(
            "_drawn",
            f"(SELECT {_PLACE} FROM {known} ORDER BY chance LIMIT {size}) UNION"
            f" (SELECT {_PLACE} FROM {known} WHERE verdict <> 'valid' QUALIFY {rare})",
        )
        return self._read(f"SELECT l.* FROM {self._rows} AS l JOIN {chosen} USING ({_PLACE})")

    def _read(self, rows: str) -> list[Row]:
        shown = ", ".join(
            f"{identifier(name)} := {_plain(f'event.{identifier(name)}', type_)}"
            for name, type_ in self.kept.items()
        )
        event = f"CASE WHEN event IS NOT NULL THEN struct_pack({shown}) END" if shown else "NULL"
        found = self._database.run(
            f"SELECT {_PLACE}, micros, key, value, schema_id, verdict, reasons, late, replay, {event}"
            f" FROM ({rows}) ORDER BY {_PLACE}"
        )
        return [
            Row(
                raw=Raw(
                    value=value, key=key, timestamp=at, epoch=epoch, partition=partition, offset=offset
                ),
                batch=batch, is_replay=bool(replay), verdict=verdict, reasons=tuple(reasons or ()),
                late=bool(late), schema_id=schema_id, event=event,
            )
            for batch, epoch, partition, offset, at, key, value, schema_id, verdict, reasons, late, replay,
            event in found
        ]  # fmt: skip

    def was_known(self, schema_id: int, before: int) -> bool:
        """Whether a record of that schema had been read in an earlier batch."""
        return bool(
            self._database.one(
                f"SELECT count(*) > 0 FROM {self._rows} WHERE schema_id = {int(schema_id)}"
                f" AND verdict = 'valid' AND batch < {int(before)}"
            )[0]
        )

    def repeated(self, asked: Sequence[Asked], era: Era, window: int) -> set[int]:
        """Those of a contract with a unique field before which the whole log has a valid record of their
        identity, within the window."""
        identities = self._identities(era)
        relation = self._asked(asked)
        found = self._database.run(
            f"SELECT DISTINCT a.n FROM {relation} AS a JOIN (SELECT {_PLACE}, micros,"
            f" {identities} AS identity FROM {self._rows} WHERE verdict = 'valid' AND event IS NOT NULL) AS l"
            f" ON l.identity = a.identity WHERE {_before(window)}"
        )
        return {at for (at,) in found}

    def earlier(self, asked: Sequence[Asked], era: Era, window: int) -> Iterator[tuple[int, Raw]]:
        """Of change data: valid records before with the same key and place in the database's log."""
        relation = self._asked(asked)
        place = self._place(era)
        found = self._database.run(
            f"SELECT a.n, l.key, l.value, l.micros FROM {relation} AS a JOIN {self._rows} AS l"
            f" ON l.key IS NOT DISTINCT FROM a.key AND {place} = a.identity"
            f" WHERE l.verdict = 'valid' AND l.event IS NOT NULL AND {_before(window)}"
        )
        for at, key, value, timestamp in found:
            yield at, Raw(value=value, key=key, timestamp=timestamp)

    def _place(self, era: Era) -> str:
        """SQL of `place_of` the envelope of a row."""
        kept = self.kept.get("source")
        if kept is None or len([name for name in self.kept if name.split(":")[0] == "source"]) > 1:
            return "''"
        there = [name for name in PLACES[era.contract["change_data"]] if name in dict(kept.fields)]
        parts = (f"coalesce(CAST(l.event.source.{identifier(name)} AS VARCHAR), '')" for name in there)
        return f"concat_ws('/', {', '.join(parts)})"

    def place_of(self, fields: Mapping[str, Value], era: Era) -> str:
        """What narrows down which records may be the same change."""
        if self._place(era) == "''":
            return ""
        source, kept = fields["source"] or {}, dict(self.kept["source"].fields)
        values = (source.get(name) for name in PLACES[era.contract["change_data"]] if name in kept)
        return "/".join("" if value is None else str(value) for value in values)

    def _identities(self, era: Era) -> str:
        """SQL of the unique field as text: what the writer sent in one of its places, or its default."""
        field = next(one for one in era.fields if one.name == era.contract["unique"])
        places = [name for own in field.names for name in self.kept if name.split(":")[0] == own]
        texts = []
        for name in places:
            type_ = self.kept[name]
            if type_.name not in _AS_TEXT or (
                type_.name != Type.parse(field.type).name and ("binary" in (type_.name, field.type))
            ):
                raise Refused(f"unique {field.name}", f"an id that was sent as {type_.spark}")
            texts.append(_text(f"event.{identifier(name)}", type_))
        sent = f"coalesce({', '.join(texts)})" if texts else "NULL"
        if field.has_default and field.default is not None:
            lacking = [
                number for number, names in self._question.met.items()
                if not {name.split(":")[0] for name in names} & set(field.names)
            ]  # fmt: skip
            if lacking:
                shown = text_literal(text_of(default.value(field)))
                return f"CASE WHEN schema_id IN ({', '.join(lacking)}) THEN {shown} ELSE {sent} END"
        return sent

    def _asked(self, asked: Sequence[Asked]) -> str:
        self._tables += 1
        values = ", ".join(
            f"({one.at}, {one.row.batch}, {one.row.raw.epoch}, {one.row.raw.partition}, {one.row.raw.offset},"
            f" {one.row.raw.timestamp}::BIGINT, {str(one.row.is_replay).lower()},"
            f" {_blob(one.row.raw.key)}, {text_literal(one.identity)})"
            for one in asked
        )
        return self._database.table(
            f"_asked_{self._tables}",
            f"SELECT * FROM (VALUES {values})"
            ' AS t(n, batch, epoch, "partition", "offset", micros, replay, key, identity)',
        )


def _before(window: int) -> str:
    """A row `l` of the log before a record `a`; a replay has also looked at records of a later time."""
    return (
        '(l.batch, l.epoch, l."partition", l."offset") < (a.batch, a.epoch, a."partition", a."offset")'
        f" AND CASE WHEN a.replay THEN abs(a.micros - l.micros) ELSE a.micros - l.micros END <= {window}"
    )


def text_of(value: Value) -> str:
    """A plain value as `_text` writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex().upper()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _text(sql: str, type_: Type) -> str:
    return f"hex({sql})" if type_.name == "binary" else f"CAST({_plain(sql, type_)} AS VARCHAR)"


def _blob(value: bytes | None) -> str:
    return "NULL::BLOB" if value is None else f"unhex('{value.hex()}')"


def _plain(sql: str, type_: Type, depth: int = 0) -> str:
    """SQL of a value in the form of `record.Value`."""
    if not _has_times(type_):
        return sql
    if type_.name == "date":
        return f"({sql} - DATE '1970-01-01')"
    if type_.name in _HAVE_TIMES:
        return f"epoch_us({sql})"
    if type_.name == "struct":
        parts = (
            f"{identifier(name)} := {_plain(f'({sql}).{identifier(name)}', inner, depth)}"
            for name, inner in type_.fields
        )
        return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"
    one = f"x{depth}"
    if type_.name == "array":
        return f"list_transform({sql}, lambda {one}: {_plain(one, type_.element, depth + 1)})"
    inner = _plain(f"{one}.value", type_.value, depth + 1)
    entries = f"list_transform(map_entries({sql}), lambda {one}: struct_pack(k := {one}.key, v := {inner}))"
    return f"CASE WHEN {sql} IS NOT NULL THEN map_from_entries({entries}) END"


def _has_times(type_: Type) -> bool:
    return type_.name in _HAVE_TIMES or any(_has_times(inner) for _, inner in type_.fields)
