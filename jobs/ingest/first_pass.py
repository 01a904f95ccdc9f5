"""Verdicts as Spark SQL: what is wrong with a record by itself, and the columns of the log that follow.

Two passes over the same records. The first asks what each record says of itself (`look`); the driver then
decides duplicates and gives every record a code; the second writes the log's columns from the codes.
Whatever is decided is decided once: the second pass only looks it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from jobs import quote
from jobs.ingest.writer_schema import END, RANGES, Writer, default_sql, logical_type
from jobs.topics import verdict
from jobs.topics.contract import Contract
from jobs.topics.schema import Field
from jobs.topics.topic import Topic

NO_SCHEMA_YET = "no_schema_yet"  # never leaves ingest: the registry is asked first
SEPARATOR = ","
HEADER_BYTES = 5

MAKE = {
    "date": "date_from_unix_date",
    "timestamp-millis": "timestamp_millis",
    "timestamp-micros": "timestamp_micros",
}
LATE, DISCARD, NO_ID = 1, 2, 4  # bits of the column `flags`

SCHEMA_ID = (
    f"CASE WHEN length(value) >= {HEADER_BYTES} AND substring(value, 1, 1) = X'00' "
    "THEN try_cast(conv(hex(substring(value, 2, 4)), 16, 10) AS int) END"
)


@dataclass(frozen=True, kw_only=True)
class Look:
    """The first pass: selections to apply one after the other.

    The last one yields partition, offset, micros (Kafka's), type (of the timestamp), event_micros, high and
    low (of the id's hash), flags, reasons (text, NULL where nothing is wrong) and schema_id.
    """

    steps: tuple[tuple[str, ...], ...]


def micros(duration: timedelta) -> int:
    """The duration in microseconds."""
    return duration // timedelta(microseconds=1)


def look(topic: Topic, writers: Sequence[Writer], end_marker: bytes) -> Look:
    """The first pass; a well-formed id that is none of these writers' gets the reason NO_SCHEMA_YET.

    `end_marker` is eight random bytes that no producer can know.
    """
    kept = ("partition", "offset", "timestamp", "timestampType")
    headed = (*kept, "value", f"{SCHEMA_ID} AS schema_id")
    decoded = (*kept, "value", "schema_id", *(_decoded(writer, end_marker) for writer in writers))
    per_writer = {writer.id: _reader(topic, writer) for writer in writers}
    contract = topic.contract
    read = (
        *kept,
        "schema_id",
        f"{_undecodable(writers, end_marker)} AS undecodable",
        *(
            f"{_by_writer({i: reader[name] for i, reader in per_writer.items()})} AS {_read(name)}"
            for name in _needed(contract)
        ),
        f"{_event_micros(topic, writers)} AS event_micros",
    )
    judged = (
        "partition",
        "offset",
        "unix_micros(timestamp) AS micros",
        "timestampType AS type",
        "coalesce(event_micros, unix_micros(timestamp)) AS event_micros",
        f"{_hash(contract, 0)} AS high",
        f"{_hash(contract, 1)} AS low",
        f"{_flags(contract)} AS flags",
        f"coalesce(undecodable, nullif({_broken(contract)}, '')) AS reasons",
        "coalesce(schema_id, -1) AS schema_id",
    )
    return Look(steps=(headed, decoded, read, judged))


def id_hash(column: str, half: int) -> str:
    """64 of the 128 bits that stand for an id."""
    return f"xxhash64({half}, {column})"


def _needed(contract: Contract) -> list[str]:
    names = [rule.column for rule in contract.rules]
    if contract.unique:
        names.append(contract.unique)
    return list(dict.fromkeys(names))


def _read(name: str) -> str:
    return quote.name(f"read_{name}")


def _decoded(writer: Writer, end_marker: bytes) -> str:
    body = f"concat(substring(value, {HEADER_BYTES + 1}), X'{end_marker.hex()}')"
    decoded = _from_avro(body, writer.checking_schema_text, "PERMISSIVE")
    return f"CASE WHEN schema_id = {writer.id} THEN {decoded} END AS e{writer.id}"


def _from_avro(body: str, schema: str, mode: str) -> str:
    options = f"map('mode', '{mode}', 'datetimeRebaseMode', 'CORRECTED')"
    return f"from_avro({body}, {quote.string(schema)}, {options})"


def _undecodable(writers: Sequence[Writer], end_marker: bytes) -> str:
    """Reasons why the bytes are no event, as text; NULL where they are one."""
    cases = [
        f"WHEN value IS NULL THEN '{verdict.NULL_VALUE}'",
        f"WHEN length(value) < {HEADER_BYTES} OR substring(value, 1, 1) <> X'00' THEN '{verdict.BAD_HEADER}'",
    ]
    for writer in writers:
        end = f"e{writer.id}.{END}"
        bad_fields = [_bad_field(writer, field) for field in writer.fields]
        bad = f"nullif(concat_ws('{SEPARATOR}', {', '.join(b for b in bad_fields if b) or 'NULL'}), '')"
        cases.append(
            f"WHEN schema_id = {writer.id} THEN CASE WHEN {end} IS NULL OR {end} <> X'{end_marker.hex()}' "
            f"THEN '{verdict.MALFORMED_BODY}' ELSE {bad} END"
        )
    # ids beyond 31 bits cannot be registered
    cases.append(f"WHEN schema_id IS NULL OR schema_id < 0 THEN '{verdict.UNKNOWN_SCHEMA}'")
    return f"CASE {' '.join(cases)} ELSE '{NO_SCHEMA_YET}' END"


def _bad_field(writer: Writer, field: Field) -> str | None:
    """SQL: the reason if the field's value cannot be kept, else NULL; no SQL for types always fine."""
    value = f"e{writer.id}.{quote.name(field.name)}"
    logical = logical_type(field)
    if field.type == "string":
        code = verdict.reason(verdict.INVALID_UTF8, field.name)
        return f"CASE WHEN NOT is_valid_utf8({value}) THEN '{code}' END"
    if field.precision:
        code = verdict.reason(verdict.DECIMAL_OUT_OF_RANGE, field.name)
        kept = f"try_cast({value} AS {field.type})"
        return f"CASE WHEN {value} IS NOT NULL AND {kept} IS NULL THEN '{code}' END"
    if logical in RANGES:
        low, high = RANGES[logical]
        code = verdict.reason(verdict.TIME_OUT_OF_RANGE, field.name)
        return f"CASE WHEN {value} NOT BETWEEN {low} AND {high} THEN '{code}' END"
    return None


def _reader(topic: Topic, writer: Writer) -> dict[str, str]:
    """SQL of every field of the newest schema, read from what this writer wrote."""
    found = {}
    for field in topic.newest.fields:
        theirs = writer.field(field.name)
        if theirs is None:
            found[field.name] = default_sql(field)
            continue
        value = f"e{writer.id}.{quote.name(field.name)}"
        logical = logical_type(theirs)
        if theirs.precision:
            value = f"try_cast({value} AS {field.type})"
        elif logical in RANGES:
            low, high = RANGES[logical]
            make = MAKE[logical]
            value = f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {make}({value}) END"
        elif theirs.type != field.type:
            value = f"CAST({value} AS {field.type})"
        found[field.name] = value
    return found


def _by_writer(per_writer: dict[int, str]) -> str:
    if len(per_writer) == 1:
        return next(iter(per_writer.values()))
    cases = " ".join(f"WHEN schema_id = {i} THEN {sql}" for i, sql in per_writer.items())
    return f"CASE {cases} END" if cases else "NULL"


def _event_micros(topic: Topic, writers: Sequence[Writer]) -> str:
    """Event time in microseconds, straight from the number that was written."""
    name = topic.contract.event_time
    field = topic.newest.field(name or "")
    if name is None or field is None:
        return "CAST(NULL AS bigint)"
    per_writer = {}
    for writer in writers:
        theirs = writer.field(name)
        logical = logical_type(theirs or field)
        if theirs is None or logical not in RANGES:
            per_writer[writer.id] = f"unix_micros(CAST({default_sql(field)} AS timestamp))"
            continue
        low, high = RANGES[logical]
        value = f"e{writer.id}.{quote.name(name)}"
        factor = {"date": 86_400_000_000, "timestamp-millis": 1000}.get(logical, 1)
        per_writer[writer.id] = f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {value} * {factor}L END"
    return _by_writer(per_writer) if per_writer else "CAST(NULL AS bigint)"


def _hash(contract: Contract, half: int) -> str:
    return id_hash(_read(contract.unique), half) if contract.unique else "0L"


def _flags(contract: Contract) -> str:
    late = "unix_micros(timestamp) - event_micros"
    bits = []
    if contract.late_after:
        bits.append(f"CASE WHEN {late} > {micros(contract.late_after)} THEN {LATE} ELSE 0 END")
    if contract.discard_after:
        bits.append(f"CASE WHEN {late} > {micros(contract.discard_after)} THEN {DISCARD} ELSE 0 END")
    without_id = f"{_read(contract.unique)} IS NULL" if contract.unique else "true"
    bits.append(f"CASE WHEN {without_id} THEN {NO_ID} ELSE 0 END")
    return " + ".join(bits)


def _broken(contract: Contract) -> str:
    """All rules that the record breaks, as text; '' where none."""
    broken = [
        f"CASE WHEN {rule.broken_sql(_read(rule.column))} THEN {quote.string(rule.reason)} END"
        for rule in contract.rules
    ]
    if contract.future_tolerance and contract.event_time:
        ahead = f"event_micros - unix_micros(timestamp) > {micros(contract.future_tolerance)}"
        code = verdict.reason(verdict.AHEAD_OF_KAFKA, contract.event_time)
        broken.append(f"CASE WHEN {ahead} THEN {quote.string(code)} END")
    return f"concat_ws('{SEPARATOR}', {', '.join(broken)})" if broken else "''"


def event_steps(topic: Topic, writers: Sequence[Writer]) -> tuple[tuple[str, ...], str]:
    """The second pass's decoding: columns to add to the records, and the SQL of the log's `event` on top.

    Only for records that the first pass found decodable (column `decodable`): anything else fails loudly.
    """
    columns = []
    cases = {}
    for writer in writers:
        body = f"substring(value, {HEADER_BYTES + 1})"
        decoded = _from_avro(body, writer.schema_text, "FAILFAST")
        columns.append(f"CASE WHEN decodable AND schema_id = {writer.id} THEN {decoded} END AS e{writer.id}")
        cases[writer.id] = f"e{writer.id}" if writer.reads_like(topic.newest) else _event(topic, writer)
    return tuple(columns), _by_writer(cases) if cases else "NULL"


def _event(topic: Topic, writer: Writer) -> str:
    """A struct of the newest schema's fields, as the writer wrote them; NULL where it had none."""
    parts = []
    for field in topic.newest.fields:
        value = f"e{writer.id}.{quote.name(field.name)}" if writer.field(field.name) else "NULL"
        parts.append(f"{quote.string(field.name)}, CAST({value} AS {field.type})")
    return f"CASE WHEN e{writer.id} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
