"""A contract of change data says what every envelope of Debezium has, or it is refused with the place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.envelopes import ROW, SOURCES, avro, contract, document, properties
from twinlake.base.errors import ContractError
from twinlake.topics.contract import Contract
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.schema import parse_schema

DATABASES = pytest.mark.parametrize("database", SOURCES)


def without(database: str, field: str) -> list[dict[str, Any]]:
    source = {name: kind for name, kind in SOURCES[database].items() if name != field}
    return properties(database, source=source)


@DATABASES
def test_a_contract_of_change_data_has_its_time_and_its_nulls_by_itself(database: str) -> None:
    found = contract("people", database)

    assert (found.event_time, found.null_values, found.key_format) == ("source.ts_ms", "ignore", "bytes")
    assert (found.discard_after, found.unique, found.is_topic) == (None, None, True)
    assert Contract.from_json(found.to_json()) == found
    assert found.meaning()["change_data"] == database
    assert found.unreadable_records == "stop" and "unreadable_records" not in found.meaning()
    other = contract("people", database, unreadableRecords="quarantine")
    assert other.unreadable_records == "quarantine" and other.fingerprint != found.fingerprint


@DATABASES
def test_debezium_s_avro_schema_agrees_with_a_contract(database: str) -> None:
    schema = parse_schema(avro(database), topic="people", number=1, file="schemas/people.v1.avsc")

    assert contract("people", database).disagreement(schema) is None


@pytest.mark.parametrize(
    ("custom", "words"),
    [
        ({"changeData": "oracle"}, "'oracle' is not a value of changeData"),
        ({"discardAfter": "7 days"}, "discardAfter beside changeData: a change that is left out"),
        ({"eventTime": "ts_ms"}, "eventTime beside changeData: changes happen at their source.ts_ms"),
        ({"nullValues": "delete"}, "nullValues beside changeData: deletes are changes of their own"),
        ({"keyFormat": "json"}, "keyFormat json beside changeData"),
        ({"unreadableRecords": "leave"}, "'leave' is not a value of unreadableRecords"),
        ({"unreadableRecords": "stop", "format": "json"}, "unreadableRecords beside format json"),
        ({"uniqueWithin": None}, "uniqueWithin is missing"),
        ({"lateAfter": None}, "lateAfter is missing"),
    ],
)
def test_what_change_data_has_by_itself_or_cannot_have_is_refused(
    custom: dict[str, str | None], words: str
) -> None:
    with pytest.raises(ContractError) as refused:
        contract("people", "postgresql", **custom)

    assert words in str(refused.value) and refused.value.path.startswith("customProperties")


@pytest.mark.parametrize(
    ("database", "promised", "path", "words"),
    [
        ("mysql", properties("mysql")[1:], "schema[0].properties", "'before' is missing"),
        ("mysql", properties("mysql", source=SOURCES["postgresql"]), "properties[2].physicalType", "'file'"),
        ("postgresql", without("postgresql", "lsn"), "properties[2].physicalType", "no 'lsn'"),
        ("postgresql", without("postgresql", "snapshot"), "properties[2].physicalType", "no 'snapshot'"),
        (
            "postgresql",
            properties("postgresql", source={**SOURCES["postgresql"], "ts_ms": "string"}),
            "properties[2].physicalType", "'ts_ms' must be bigint",
        ),
        (
            "mysql", [properties("mysql", {**ROW, "more": "int"})[0], *properties("mysql")[1:]],
            "properties[1].physicalType", "other fields than 'before'",
        ),
        (
            "mysql", [{**properties("mysql")[5], "name": "before"}, *properties("mysql")[1:]],
            "properties[0].physicalType", "Debezium writes an object",
        ),
        (
            "mysql", [*properties("mysql")[:4], {**properties("mysql")[5], "name": "op"}],
            "properties[4].physicalType", "Debezium writes text",
        ),
    ],
)  # fmt: skip
def test_properties_that_are_no_envelope_are_refused_with_their_place(
    database: str, promised: list[dict[str, Any]], path: str, words: str
) -> None:
    with pytest.raises(ContractError) as refused:
        parse_contract(document("people", database, promised), name="people", file="people.yaml")

    assert refused.value.path.endswith(path) and words in str(refused.value)


def test_an_id_beside_change_data_is_refused() -> None:
    promised = properties("mysql")
    promised[4]["unique"] = True

    with pytest.raises(ContractError, match="'op' is unique beside changeData"):
        parse_contract(document("people", "mysql", promised), name="people", file="people.yaml")
