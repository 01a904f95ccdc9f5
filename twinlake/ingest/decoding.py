"""How a topic's records are decoded, by the format that its contract says; what a null value is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from twinlake.ingest import decode_avro, decode_json, decode_json_schema
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import Writer
from twinlake.topics import change_data, verdict
from twinlake.topics.contract import DELETE, IGNORE, JSON, Contract
from twinlake.topics.formats import JSON_SCHEMA
from twinlake.topics.topic import Topic

IGNORED = "ignored_null"  # never leaves ingest: stands for a verdict, not for a reason


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """Spark SQL of the first pass over Kafka's records."""

    schema_id: str
    columns: tuple[tuple[str, ...], ...]
    """To add one list after the other; the texts below read them."""
    undecodable: str
    """Reasons why a record is not an event, as text; NULL where it is one."""
    fields: Mapping[str, str]
    """Every field of the topic's newest schema; of a nested one that no identity is made of whether it is
    there, for nobody asks more of it."""
    event_micros: str


def decoding(
    topic: Topic,
    writers: Sequence[Writer],
    unreadable: Sequence[Unreadable],
    end_marker: bytes,
    closely: bool = False,
) -> Decoding:
    """`writers` are those of an Avro topic, `unreadable` the schemas that it cannot read; `end_marker` and
    `closely` as in `first_pass.selections`."""
    whole = change_data.FIELDS if topic.contract.change_data else ()
    if topic.contract.format == JSON:
        read = decode_json.fields(topic, whole)
        return Decoding(
            schema_id=schema_id(topic),
            columns=decode_json.unchecked(end_marker, wrapped=bool(whole)),
            undecodable=_or_null(
                topic.contract, decode_json.undecodable(topic.newest.fields, end_marker, closely)
            ),
            fields=read,
            event_micros=change_data.event_micros(f"({read[change_data.SOURCE]})")
            if whole
            else decode_json.event_micros(topic),
        )
    if topic.contract.format == JSON_SCHEMA:
        bad = decode_json_schema.undecodable(writers, unreadable, end_marker, closely)
        micros = decode_json_schema.event_micros(topic, writers)
        return Decoding(
            schema_id=schema_id(topic),
            columns=decode_json_schema.unchecked(end_marker),
            undecodable=_or_null(topic.contract, bad),
            fields=_by_field(topic, {one.id: decode_json_schema.fields(topic, one) for one in writers}),
            event_micros=of_values(topic.contract, micros),
        )
    by_field = _by_field(topic, {one.id: decode_avro.fields(topic, one, whole) for one in writers})
    if whole and writers:
        micros = change_data.event_micros(f"({by_field[change_data.SOURCE]})")
    else:
        micros = decode_avro.event_micros(topic, writers)
    return Decoding(
        schema_id=schema_id(topic),
        columns=(tuple(decode_avro.unchecked(writer, end_marker) for writer in writers),),
        undecodable=_or_null(
            topic.contract, decode_avro.undecodable(topic, writers, unreadable, end_marker, closely)
        ),
        fields=by_field,
        # a writer without the field gives its default, which a record without a value has not
        event_micros=of_values(topic.contract, micros),
    )


def _by_field(topic: Topic, per_writer: Mapping[int, Mapping[str, str]]) -> dict[str, str]:
    return {
        field.name: decode_avro.by_writer({i: columns[field.name] for i, columns in per_writer.items()})
        for field in topic.newest.fields
    }


def schema_id(topic: Topic) -> str:
    """SQL of the id that a value names its schema by, NULL where it names none."""
    return decode_json.SCHEMA_ID if topic.contract.format == JSON else decode_avro.SCHEMA_ID


def event_columns(
    topic: Topic, writers: Sequence[Writer], event: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """The second pass's decoding, see `decode_avro.event_columns`."""
    if topic.contract.format == JSON:
        return decode_json.event_columns(topic, event)
    if topic.contract.format == JSON_SCHEMA:
        return decode_json_schema.event_columns(writers, event)
    return decode_avro.event_columns(writers, event)


def may_hide_decimals(topic: Topic) -> str:
    """The reason under which a decimal of too many digits may be, where nobody has looked closely."""
    return verdict.WRONG_TYPE if topic.contract.format in (JSON, JSON_SCHEMA) else verdict.MALFORMED_BODY


def of_values(contract: Contract, sql: str, otherwise: str = "NULL") -> str:
    """The SQL where a valid record may have no value, and something else where it has none."""
    return f"CASE WHEN value IS NOT NULL THEN {sql} ELSE {otherwise} END" if _may_delete(contract) else sql


def _or_null(contract: Contract, undecodable: str) -> str:
    null = f"'{verdict.NULL_VALUE}'"
    if contract.null_values == IGNORE:
        null = f"'{IGNORED}'"
    elif _may_delete(contract):
        null = f"CASE WHEN key IS NULL THEN {null} END"  # it deletes nothing
    return f"CASE WHEN value IS NULL THEN {null} ELSE {undecodable} END"


def _may_delete(contract: Contract) -> bool:
    return contract.null_values == DELETE
