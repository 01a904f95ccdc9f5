"""Decoding Avro in Confluent's wire format as Spark SQL: which bytes are an event, and its fields.

Messages of Protobuf are made Avro first (`protobuf_body`), and go the same way from there on.

Twice over the same records: bodies that nobody has looked at yet are decoded into unchecked types, to find
out what is wrong with them; those found sound are decoded again into the log's column `event`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from twinlake.base import quote
from twinlake.ingest import nested, protobuf_body
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import RANGES, Writer
from twinlake.lake.log.log_fields import kept_as
from twinlake.topics import verdict
from twinlake.topics.change import promoted, source
from twinlake.topics.default_value import default_sql
from twinlake.topics.schema import Field, logical_type
from twinlake.topics.spark_type import is_nested
from twinlake.topics.topic import Topic
from twinlake.topics.wire import HEADER_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DecimalType, StructType

NO_SCHEMA_YET = "no_schema_yet"  # never leaves ingest: the registry is asked first
SEPARATOR = ","

MAKE = {
    "date": "date_from_unix_date",
    "timestamp-millis": "timestamp_millis",
    "timestamp-micros": "timestamp_micros",
}

SCHEMA_ID = (
    f"CASE WHEN length(value) >= {HEADER_BYTES} AND substring(value, 1, 1) = X'00' "
    "THEN try_cast(conv(hex(substring(value, 2, 4)), 16, 10) AS int) END"
)


def unchecked(writer: Writer, end_marker: bytes) -> str:
    """The column e<id>: the body of a record of this writer, decoded without trust; NULL for another's."""
    body = f"concat({body_of(writer)}, X'{end_marker.hex()}')"
    decoded = _from_avro(body, writer.checking_schema_text, "PERMISSIVE")
    return f"CASE WHEN schema_id = {writer.id} THEN {decoded} END AS e{writer.id}"


def body_of(writer: Writer) -> str:
    """SQL of what is behind the header, in Avro; NULL for what is none of the writer's messages."""
    if (function := protobuf_body.function_of(writer.avro)) is not None:
        return f"{function}(value)"
    return f"substring(value, {HEADER_BYTES + 1})"


def _from_avro(body: str, schema: str, mode: str) -> str:
    options = f"map('mode', '{mode}', 'datetimeRebaseMode', 'CORRECTED')"
    return f"from_avro({body}, {quote.string(schema)}, {options})"


def undecodable(
    topic: Topic,
    writers: Sequence[Writer],
    unreadable: Sequence[Unreadable],
    end_marker: bytes,
    closely: bool = False,
) -> str:
    """Reasons why the bytes of a value are no event, as text; NULL where they are one. Only `closely` a
    decimal of more than 38 digits is distinguished from a malformed body."""
    bodies = {}
    for writer in writers:
        bad, body = _bad(topic, writer, f"e{writer.id}", _beyond, nested.beyond), f"e{writer.id}"
        unlike = _unreadable(topic, writer, end_marker) if closely else f"'{verdict.MALFORMED_BODY}'"
        is_unlike = _unlike(f"{body}.{writer.end}", end_marker)
        bodies[writer.id] = f"CASE WHEN {is_unlike} THEN {unlike} ELSE {bad} END"
    return framed(unreadable, bodies)


def framed(unreadable: Sequence[Unreadable], bodies: Mapping[int, str]) -> str:
    """Reasons why a value in Confluent's frame is no event, by those of each writer's bodies."""
    cases = [
        f"WHEN length(value) < {HEADER_BYTES} OR substring(value, 1, 1) <> X'00' THEN '{verdict.BAD_HEADER}'",
        *(f"WHEN schema_id = {one.id} THEN {quote.string(one.reason)}" for one in unreadable),
        *(f"WHEN schema_id = {number} THEN {bad}" for number, bad in bodies.items()),
    ]
    # ids beyond 31 bits cannot be registered
    cases.append(f"WHEN schema_id IS NULL OR schema_id < 0 THEN '{verdict.UNKNOWN_SCHEMA}'")
    return f"CASE {' '.join(cases)} ELSE '{NO_SCHEMA_YET}' END"


def _unlike(end: str, end_marker: bytes) -> str:
    """Whether the body does not end where it should."""
    return f"{end} IS NULL OR {end} <> X'{end_marker.hex()}'"


def _unreadable(topic: Topic, writer: Writer, end_marker: bytes) -> str:
    """The reasons of a body that could not be decoded: its decimals, where the rest of it is sound.

    It is decoded once more, its decimals as bytes; in a lambda, of which Spark makes no code.
    """
    malformed = f"'{verdict.MALFORMED_BODY}'"
    if (schema := writer.bytes_schema_text) is None:
        return malformed
    body = f"concat({body_of(writer)}, X'{end_marker.hex()}')"
    bad = _bad(topic, writer, "b", _beyond_as_bytes, _beyond_inside)
    empty = " OR ".join(_empty_decimals(writer, "b")) or "false"
    return (
        f"transform(array({_from_avro(body, schema, 'PERMISSIVE')}), b -> "
        f"CASE WHEN {_unlike(f'b.{writer.end}', end_marker)} OR {empty} "
        f"THEN {malformed} ELSE coalesce({bad}, {malformed}) END)[0]"
    )


def _bad(
    topic: Topic, writer: Writer, body: str, beyond: Callable[[str, Field], str], inside: nested.Beyond
) -> str:
    """What is wrong with a body's values, as text; NULL where nothing is."""
    plain = [_bad_field(body, field, beyond) for field in writer.plain]
    found = [*filter(None, plain), *nested.bad_fields(writer, body, inside), *_bad_texts(topic, writer, body)]
    return f"nullif(concat_ws('{SEPARATOR}', {', '.join(found) or 'NULL'}), '')"


def _beyond(value: str, field: Field) -> str:
    return f"{value} IS NOT NULL AND try_cast({value} AS {field.type}) IS NULL"


def _beyond_as_bytes(value: str, field: Field) -> str:
    return nested.decimal_is_beyond(value, (field.precision or (0, 0))[0])


def _beyond_inside(value: str, kept: DecimalType) -> str:
    return nested.decimal_is_beyond(value, kept.precision)


def _empty_decimals(writer: Writer, body: str) -> list[str]:
    """SQL by decimal, at any depth: whether it has no bytes."""
    found = [
        f"({nested.decimal_is_empty(f'{body}.{quote.name(field.name)}')})"
        for field in writer.plain
        if field.precision
    ]
    return [f"coalesce({one}, false)" for one in (*found, *nested.decimals(writer, body))]


def _bad_field(body: str, field: Field, beyond: Callable[[str, Field], str]) -> str | None:
    """SQL: the reason if the field's value cannot be kept, else NULL; no SQL for types always fine."""
    value = f"{body}.{quote.name(field.name)}"
    logical = logical_type(field)
    if field.type == "string":
        code = verdict.reason(verdict.INVALID_UTF8, field.name)
        return f"CASE WHEN NOT is_valid_utf8({value}) THEN '{code}' END"
    if field.precision:
        code = verdict.reason(verdict.DECIMAL_OUT_OF_RANGE, field.name)
        return f"CASE WHEN {beyond(value, field)} THEN '{code}' END"
    if logical in RANGES:
        low, high = RANGES[logical]
        code = verdict.reason(verdict.TIME_OUT_OF_RANGE, field.name)
        return f"CASE WHEN {value} NOT BETWEEN {low} AND {high} THEN '{code}' END"
    return None


def _bad_texts(topic: Topic, writer: Writer, body: str) -> list[str]:
    """The same for what is sent as bytes and read as text."""
    found = []
    for field in topic.newest.fields:
        theirs = source(field, writer.fields)
        if theirs is not None and (theirs.type, field.type) == ("binary", "string"):
            code = verdict.reason(verdict.INVALID_UTF8, field.name)
            value = f"CAST({body}.{quote.name(theirs.name)} AS string)"
            found.append(f"CASE WHEN NOT is_valid_utf8({value}) THEN '{code}' END")
    return found


def fields(topic: Topic, writer: Writer, whole: Collection[str] = ()) -> dict[str, str]:
    """SQL of every field of the newest schema, read from what this writer wrote; of a nested one, unless it
    is asked for as a `whole`, whether it is there."""
    found = {}
    for field in topic.newest.fields:
        theirs = source(field, writer.fields)
        value = default_sql(field) if theirs is None else f"e{writer.id}.{quote.name(theirs.name)}"
        if is_nested(field.type) and field.name in whole:
            value = value if theirs is None else promoted(value, theirs.type, field.type)
            found[field.name] = f"try_cast({value} AS {field.type})"  # decimals have had room for more digits
            continue
        if is_nested(field.type):
            found[field.name] = f"CASE WHEN {value} IS NOT NULL THEN true END"
            continue
        if theirs is None:
            found[field.name] = value
            continue
        logical = logical_type(theirs)
        if theirs.precision:
            value = f"try_cast({value} AS {field.type})"
        elif logical in RANGES:
            low, high = RANGES[logical]
            make = MAKE[logical]
            value = f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {make}({value}) END"
        found[field.name] = promoted(value, theirs.type, field.type)
    return found


def by_writer(per_writer: Mapping[int, str]) -> str:
    """The SQL of the record's own writer."""
    if len(per_writer) == 1:
        return next(iter(per_writer.values()))
    cases = " ".join(f"WHEN schema_id = {i} THEN {sql}" for i, sql in per_writer.items())
    return f"CASE {cases} END" if cases else "NULL"


def event_micros(topic: Topic, writers: Sequence[Writer]) -> str:
    """Event time in microseconds, straight from the number that was written."""
    field = topic.newest.field(topic.contract.event_time or "")
    if field is None:
        return "CAST(NULL AS bigint)"
    per_writer = {}
    for writer in writers:
        theirs = source(field, writer.fields)
        logical = logical_type(theirs or field)
        if theirs is None or logical not in RANGES:
            per_writer[writer.id] = f"unix_micros(CAST({default_sql(field)} AS timestamp))"
            continue
        low, high = RANGES[logical]
        value = f"e{writer.id}.{quote.name(theirs.name)}"
        factor = {"date": 86_400_000_000, "timestamp-millis": 1000}.get(logical, 1)
        per_writer[writer.id] = f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} * {factor}L END"
    return by_writer(per_writer) if per_writer else "CAST(NULL AS bigint)"


def decoded_type(spark: SparkSession, schema: str) -> StructType:
    """What decoding with that schema yields; ValueError where Spark cannot decode with it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    decoded = _from_avro("CAST(NULL AS binary)", schema, "PERMISSIVE")
    protobuf_body.register(spark, schema)
    try:
        found = spark.range(0).selectExpr(f"{decoded} AS decoded").schema["decoded"].dataType
    except (PySparkException, Py4JJavaError) as error:
        raise ValueError(str(error)[:500]) from error
    return cast("StructType", found)


def event_columns(writers: Sequence[Writer], event: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The second pass's decoding: columns to add to the records, and the SQL of the log's `event` on top.

    `event` has the log's fields and their types; those of every writer whose records are there are among
    them. Only for records that the first pass found decodable (column `decodable`): else it fails loudly.
    """
    columns = []
    cases = {}
    for writer in writers:
        decoded = _from_avro(body_of(writer), writer.schema_text, "FAILFAST")
        columns.append(f"CASE WHEN decodable AND schema_id = {writer.id} THEN {decoded} END AS e{writer.id}")
        cases[writer.id] = _event(writer, event)
    fields = ", ".join(f"{quote.name(name)}: {type_}" for name, type_ in event.items())
    return tuple(columns), by_writer(cases) if cases else f"CAST(NULL AS struct<{fields}>)"


def _event(writer: Writer, event: Mapping[str, str]) -> str:
    """A struct of the log's fields, as the writer wrote them; NULL where it had none."""
    stored = writer.stored
    if [*stored.items()] == [*event.items()] and len(stored) == len(writer.names):
        return f"e{writer.id}"
    theirs = {kept_as(event, name, type_): name for name, type_ in stored.items()}
    parts = []
    for name, type_ in event.items():
        value = "NULL"
        if name in theirs:
            value = promoted(f"e{writer.id}.{quote.name(theirs[name])}", stored[theirs[name]], type_)
        parts.append(f"{quote.string(name)}, CAST({value} AS {type_})")
    return f"CASE WHEN e{writer.id} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
