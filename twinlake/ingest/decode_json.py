"""Decoding JSON as Spark SQL: which bytes are an object of the contract's shape, and its fields.

As with Avro, records that nobody has looked at are decoded with doubt, and those found sound once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from twinlake.base import quote
from twinlake.ingest.decode_avro import SEPARATOR
from twinlake.lake.log.log_fields import base_name, kept_as
from twinlake.topics import json_sql, verdict
from twinlake.topics.schema import Field
from twinlake.topics.spark_type import Plain, Struct, Type, is_nested, parse
from twinlake.topics.topic import Topic

SCHEMA_ID = "CAST(NULL AS int)"
_TEXT = "CAST(value AS string)"
DOC, _END = "doc", "doc_end"


def unchecked(end_marker: bytes, wrapped: bool, text: str = _TEXT) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns to add, one list after the other: `doc`, the document as a variant, and `doc_end`.

    Spark leaves unread what comes after a document, so it is read as the first item of an array whose second
    is the marker: that is there only where the bytes are one document and nothing else. Where they may be
    `wrapped`, the document is what Kafka Connect has put beside its schema.
    """
    array = f"concat('[', {text}, ',\"{end_marker.hex()}\"]')"
    parsed = f"CASE WHEN is_valid_utf8({text}) THEN try_parse_json({array}) END AS parsed"
    doc = "try_variant_get(parsed, '$[0]', 'variant')"
    doc = f"{_unwrapped(doc) if wrapped else doc} AS {DOC}"
    return (parsed,), (doc, f"try_variant_get(parsed, '$[1]', 'string') AS {_END}")


def undecodable(
    promised: Iterable[Field], end_marker: bytes, closely: bool = False, text: str = _TEXT
) -> str:
    """Reasons why a document is no event with these fields, as text; NULL where it is one. `closely` as in
    `json_sql.type_errors`."""
    bad = []
    for field in promised:
        doc = json_sql.member(DOC, field.name)
        for code, path, wrong in json_sql.type_errors(doc, parse(field.type), field.name, closely):
            bad.append(f"CASE WHEN {wrong} THEN '{verdict.reason(code, path)}' END")
    broken = (
        f"{_END} IS NULL OR {_END} <> '{end_marker.hex()}' OR NOT {text} RLIKE '^[ \\\\t\\\\n\\\\r]*\\\\{{' "
        f"OR {json_sql.has_half(text)}"
    )
    return (
        f"CASE WHEN NOT is_valid_utf8({text}) THEN '{verdict.INVALID_UTF8}' "
        f"WHEN {broken} THEN '{verdict.MALFORMED_BODY}' "
        f"ELSE nullif(concat_ws('{SEPARATOR}', {', '.join(bad)}), '') END"
    )


def fields(topic: Topic, whole: Collection[str] = ()) -> dict[str, str]:
    """SQL of every field of the topic; of a nested one, unless it is asked for as a `whole`, whether it is
    there."""
    found = {}
    for field in topic.newest.fields:
        doc = json_sql.member(DOC, field.name)
        if is_nested(field.type) and field.name not in whole:
            found[field.name] = f"CASE WHEN {is_there(doc)} THEN true END"
        else:
            found[field.name] = json_sql.value(doc, parse(field.type))
    return found


def event_micros(topic: Topic) -> str:
    """Event time in microseconds; NULL outside the years 1 to 9999."""
    return micros_of(json_sql.member(DOC, topic.contract.event_time or ""))


def micros_of(doc: str) -> str:
    """A document's time in microseconds; NULL outside the years 1 to 9999."""
    moment = json_sql.value(doc, Plain("timestamp"))
    low, high = json_sql.YEARS["timestamp"]
    return f"CASE WHEN unix_micros({moment}) BETWEEN {low} AND {high} THEN unix_micros({moment}) END"


def event_columns(topic: Topic, event: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The second pass's decoding, as `decode_avro.event_columns`. A field that the contract names no more is
    kept as long as it is sent: tables that are made with it read it."""
    known = {kept_as(event, field.name, field.type): field for field in topic.newest.fields}
    named = {field.name for field in topic.newest.fields}
    parts = []
    for name, type_ in event.items():
        field, sent_as = known.get(name), base_name(name)
        value = "NULL"
        if field is not None or sent_as not in named:
            doc = json_sql.member("sound", sent_as)
            value = _kept(doc, parse(type_), parse(field.type) if field else None)
        parts.append(f"{quote.string(name)}, CAST({value} AS {type_})")
    doc = f"try_parse_json({_TEXT})"
    doc = _unwrapped(doc) if topic.contract.change_data else doc
    sound = f"CASE WHEN decodable AND value IS NOT NULL THEN {doc} END AS sound"
    return (sound,), f"CASE WHEN sound IS NOT NULL THEN named_struct({', '.join(parts)}) END"


def _kept(doc: str, kept: Type, promised: Type | None) -> str:
    """SQL of a value of the log's type. Nobody has looked at what the contract does not promise: it is NULL
    where it is anything else."""
    if promised is None:
        wrong = (f"coalesce({one}, false)" for _, _, one in json_sql.type_errors(doc, kept, ""))
        return f"CASE WHEN NOT ({' OR '.join(wrong)}) THEN {json_sql.value(doc, kept)} END"
    if not (isinstance(kept, Struct) and isinstance(promised, Struct)):
        return json_sql.value(doc, kept)
    there = dict(promised.fields)
    parts = (
        f"{quote.string(name)}, {_kept(json_sql.member(doc, name), inner, there.get(name))}"
        for name, inner in kept.fields
    )
    return f"CASE WHEN {is_there(doc)} THEN named_struct({', '.join(parts)}) END"


def is_there(doc: str) -> str:
    """Of a member that is left out `is_variant_null` alone says false."""
    return f"{doc} IS NOT NULL AND NOT is_variant_null({doc})"


def _unwrapped(doc: str) -> str:
    """A document without the schema that Kafka Connect puts beside it (`schemas.enable`)."""
    return f"coalesce({json_sql.member(doc, 'payload')}, {doc})"
