"""Which Avro types a topic may have, what they are read as, and where one that cannot be is."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.base.errors import ContractError
from twinlake.topics.default_value import default_sql
from twinlake.topics.schema import Schema, parse_schema

ADDRESS = {"type": "record", "name": "Address", "fields": [
    {"name": "city", "type": "string"},
    {"name": "since", "type": ["null", {"type": "int", "logicalType": "date"}]},
]}  # fmt: skip


def schema(*types: Any, **more: Any) -> Schema:
    """A record with one field for each type: a, b, c, ..."""
    fields = [{"name": chr(97 + at), "type": type_, **more} for at, type_ in enumerate(types)]
    avro = {"type": "record", "name": "T", "namespace": "shop", "fields": fields}
    return parse_schema(avro, topic="t", number=1, file="t.v1.avsc")


def logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


def fixed(size: int, name: str = "F", **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


@pytest.mark.parametrize(
    ("avro", "type_"),
    [
        (ADDRESS, "struct<city:string,since:date>"),
        (["null", ADDRESS], "struct<city:string,since:date>"),
        ({"type": "array", "items": ["null", ADDRESS]}, "array<struct<city:string,since:date>>"),
        ({"type": "map", "values": {"type": "array", "items": "long"}}, "map<string,array<bigint>>"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "string"),
        (fixed(4), "binary"),
        (fixed(8, logicalType="decimal", precision=18, scale=2), "decimal(18,2)"),
        (logical("bytes", "decimal", precision=38, scale=0), "decimal(38,0)"),
        (logical("int", "time-millis"), "int"),
        (logical("long", "time-micros"), "bigint"),
        (logical("long", "timestamp-micros"), "timestamp"),
        (logical("long", "local-timestamp-millis"), "bigint"),
        (logical("long", "local-timestamp-micros"), "bigint"),
        (logical("string", "uuid"), "string"),
        (fixed(16, logicalType="uuid"), "binary"),
        (fixed(12, logicalType="duration"), "binary"),
    ],
)
def test_every_type_of_avro_is_read_as_one_that_holds_its_values(avro: Any, type_: str) -> None:
    assert [field.type for field in schema(avro).fields] == [type_]


def test_a_named_type_is_used_again_by_either_of_its_names() -> None:
    found = schema(ADDRESS, ["null", "Address"], {"type": "array", "items": "shop.Address"})

    assert [field.type for field in found.fields] == [
        "struct<city:string,since:date>", "struct<city:string,since:date>",
        "array<struct<city:string,since:date>>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("avro", "path", "words"),
    [
        (["int", "string"], "fields[0].type", "null and one other"),
        ({"type": "array", "items": ["int", "string"]}, "fields[0].type.items", "null and one other"),
        ({"type": "map", "values": "time"}, "fields[0].type.values", "unsupported type 'time'"),
        (
            {"type": "record", "name": "Tree", "fields": [{"name": "below", "type": ["null", "Tree"]}]},
            "fields[0].type.fields[0].type", "holds itself",
        ),
        (
            {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in "xX"]},
            "fields[0].type.fields[1].name", "used twice",
        ),
        ({"type": "record", "name": "R", "fields": []}, "fields[0].type.fields", "empty"),
        ({"type": "record", "name": "R", "fields": [{"name": "_x", "type": "int"}]},
         "fields[0].type.fields[0].name", "not a field name"),
        (fixed(2, logicalType="decimal", precision=5, scale=0), "fields[0].type", "5 digits have no room"),
        (fixed(8, logicalType="duration"), "fields[0].type", "unsupported"),
        (logical("long", "date"), "fields[0].type", "unsupported"),
        ({"type": "array", "items": "int", "order": "ignore"}, "fields[0].type", "unknown key 'order'"),
    ],
)  # fmt: skip
def test_what_no_column_can_hold_is_refused_with_its_place(avro: Any, path: str, words: str) -> None:
    with pytest.raises(ContractError) as refused:
        schema(avro)

    assert refused.value.path == path and words in refused.value.why_text


@pytest.mark.parametrize(
    ("avro", "default", "sql"),
    [
        ({"type": "array", "items": "string"}, [], "CAST(array() AS array<string>)"),
        (
            {"type": "map", "values": "long"}, {"a": 1},
            "CAST(map('a', CAST('1' AS bigint)) AS map<string,bigint>)",
        ),
        (
            ADDRESS, {"city": "Bonn", "since": None},
            "CAST(named_struct('city', 'Bonn', 'since', CAST(NULL AS date)) "
            "AS struct<city:string,since:date>)",
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "'A'"),
        (fixed(2), "\u0001\u00ff", "X'01ff'"),
    ],
)  # fmt: skip
def test_a_default_of_any_type_is_a_literal_of_its_type(avro: Any, default: Any, sql: str) -> None:
    (field,) = schema(avro, default=default).fields

    assert default_sql(field) == sql


@pytest.mark.parametrize(
    ("avro", "default"),
    [
        ("string", 5), ("int", "5"), ("int", 1 << 31), ("int", True), ("int", 1.0),
        ("long", -(1 << 63) - 1), ("boolean", "true"), ("boolean", 1), ("double", "0.5"), ("bytes", 1),
        ("bytes", "€"), (logical("int", "date"), "2026-01-31"), ({"type": "array", "items": "int"}, ["a"]),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"), (ADDRESS, {"city": 5, "since": None}),
        (["null", "long"], "0"),
    ],
)  # fmt: skip
def test_a_default_that_is_no_value_of_its_type_is_refused(avro: Any, default: Any) -> None:
    (field,) = schema(avro, default=default).fields

    with pytest.raises(ValueError, match=r"is no|is beyond|is none of the symbols|can't encode"):
        default_sql(field)


@pytest.mark.parametrize(
    ("avro", "default"),
    [
        ("int", -(1 << 31)), ("long", (1 << 63) - 1), ("double", 1), ("float", 0.5), ("boolean", False),
        (["null", "string"], None), (["string", "null"], "a"), (logical("int", "date"), 20_000),
        (logical("long", "timestamp-micros"), 0),
    ],
)  # fmt: skip
def test_a_default_that_is_a_value_of_its_type_is_taken(avro: Any, default: Any) -> None:
    (field,) = schema(avro, default=default).fields

    assert default_sql(field)


def test_a_field_and_its_aliases_have_names_of_their_own() -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "aliases": ["A"]}]

    with pytest.raises(ContractError, match="'A' is used twice"):
        parse_schema({"type": "record", "name": "T", "fields": fields}, topic="t", number=1, file="f")
