"""Decoding JSON behind Confluent's header as Spark SQL: each record is read as its own writer's schema says.

What a document must be is what `decode_json` asks of one; which fields it has, and what a field is read from
that its writer had under another name or not at all, is as with Avro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinlake.base import quote
from twinlake.ingest import decode_json
from twinlake.ingest.decode_avro import by_writer, framed
from twinlake.ingest.decode_json import DOC, is_there, micros_of
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import Writer
from twinlake.lake.log.log_fields import kept_as
from twinlake.topics import json_sql
from twinlake.topics.change import promoted, source
from twinlake.topics.default_value import default_sql
from twinlake.topics.schema import Field
from twinlake.topics.spark_type import is_nested, parse
from twinlake.topics.topic import Topic
from twinlake.topics.wire import HEADER_BYTES

_TEXT = f"CAST(substring(value, {HEADER_BYTES + 1}) AS string)"


def unchecked(end_marker: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """As `decode_json.unchecked`, of what is behind the header."""
    return decode_json.unchecked(end_marker, wrapped=False, text=_TEXT)


def undecodable(
    writers: Sequence[Writer], unreadable: Sequence[Unreadable], end_marker: bytes, closely: bool = False
) -> str:
    """As `decode_avro.undecodable`; a value's type is that of its writer's schema."""
    return framed(
        unreadable,
        {one.id: decode_json.undecodable(one.fields, end_marker, closely, _TEXT) for one in writers},
    )


def fields(topic: Topic, writer: Writer) -> dict[str, str]:
    """SQL of every field of the newest schema, read from what this writer wrote; of a nested one whether it
    is there."""
    found = {}
    for field in topic.newest.fields:
        theirs = source(field, writer.fields)
        if theirs is None:
            value = default_sql(field)
            found[field.name] = (
                f"CASE WHEN {value} IS NOT NULL THEN true END" if is_nested(field.type) else value
            )
            continue
        doc = json_sql.member(DOC, theirs.name)
        if is_nested(field.type):
            found[field.name] = f"CASE WHEN {is_there(doc)} THEN true END"
        else:
            found[field.name] = promoted(json_sql.value(doc, parse(theirs.type)), theirs.type, field.type)
    return found


def event_micros(topic: Topic, writers: Sequence[Writer]) -> str:
    """Event time in microseconds; NULL outside the years 1 to 9999."""
    field = topic.newest.field(topic.contract.event_time or "")
    if field is None:
        return "CAST(NULL AS bigint)"
    found = {writer.id: _micros(field, writer) for writer in writers}
    return by_writer(found) if found else "CAST(NULL AS bigint)"


def _micros(field: Field, writer: Writer) -> str:
    theirs = source(field, writer.fields)
    if theirs is None:
        return f"unix_micros(CAST({default_sql(field)} AS timestamp))"
    return micros_of(json_sql.member(DOC, theirs.name))


def event_columns(writers: Sequence[Writer], event: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The second pass's decoding, as `decode_avro.event_columns`."""
    sound = f"CASE WHEN decodable AND value IS NOT NULL THEN try_parse_json({_TEXT}) END AS sound"
    if not writers:
        fields = ", ".join(f"{quote.name(name)}: {type_}" for name, type_ in event.items())
        return (sound,), f"CAST(NULL AS struct<{fields}>)"
    return (sound,), by_writer({writer.id: _event(writer, event) for writer in writers})


def _event(writer: Writer, event: Mapping[str, str]) -> str:
    stored = writer.stored
    theirs = {kept_as(event, name, type_): name for name, type_ in stored.items()}
    parts = []
    for name, type_ in event.items():
        value = "NULL"
        if name in theirs:
            sent = stored[theirs[name]]
            value = json_sql.value(json_sql.member("sound", theirs[name]), parse(sent))
            value = (
                value if sent == type_ else f"transform(array({value}), v -> {promoted('v', sent, type_)})[0]"
            )
        parts.append(f"{quote.string(name)}, CAST({value} AS {type_})")
    return f"CASE WHEN sound IS NOT NULL THEN named_struct({', '.join(parts)}) END"
