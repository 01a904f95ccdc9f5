"""Every type of Avro from a producer's bytes to a table, in both layers."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from tests.ingest.fed import Fed, contract_of, renamed, shown
from tests.ingest.stage import Stage, frame
from twinlake.kinds.events import Events
from twinlake.kinds.latest import Latest
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic


def logical(base: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **more}


ADDRESS = {"type": "record", "name": "Address", "fields": [
    {"name": "city", "type": "string"},
    {"name": "moved", "type": ["null", logical("int", "date")]},
    {"name": "rent", "type": logical("bytes", "decimal", precision=9, scale=2)},
]}  # fmt: skip
FIELDS: dict[str, Any] = {
    "at": logical("long", "timestamp-micros"),
    "id": "string",
    "address": ADDRESS,
    "before": {"type": "array", "items": "Address"},
    "scores": {"type": "map", "values": ["null", "long"]},
    "sort": {"type": "enum", "name": "Sort", "symbols": ["A", "B"]},
    "day": logical("int", "date"),
    "millis": logical("int", "time-millis"),
    "micros": logical("long", "time-micros"),
    "local": logical("long", "local-timestamp-micros"),
    "worth": logical("fixed", "decimal", size=16, precision=38, scale=4) | {"name": "Worth"},
    "number": logical("string", "uuid"),
    "took": {"type": "fixed", "name": "Took", "size": 12, "logicalType": "duration"},
    "maybe": ["null", "double"],
}
AVRO = {"type": "record", "name": "Thing", "namespace": "shop", "fields": [
    {"name": name, "type": type_} for name, type_ in FIELDS.items()
]}  # fmt: skip
AT = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
NUMBER = uuid.UUID(int=7)


def made(id_: str, **changes: Any) -> dict[str, Any]:
    home = {"city": "Bonn", "moved": date(2024, 2, 29), "rent": Decimal("700.50")}
    return {
        "at": AT, "id": id_, "address": home, "before": [{**home, "city": "Köln", "moved": None}],
        "scores": {"x": 1, "y": None}, "sort": "B", "day": date(1, 1, 1), "millis": time(0, 0, 1),
        "micros": time(0, 0, 0, 7), "local": datetime(2026, 1, 31, 12), "worth": Decimal("-1234567890.1234"),
        "number": NUMBER, "took": bytes(range(12)), "maybe": None, **changes,
    }  # fmt: skip


def promised(name: str, type_: str) -> dict[str, Any]:
    """A property of the contract with this Spark type."""
    plain = {
        "string": "string", "int": "integer", "bigint": "integer", "double": "number", "date": "date",
        "timestamp": "timestamp", "binary": "string",
    }  # fmt: skip
    one = {"name": name, "physicalType": type_}
    required = {} if name == "maybe" else {"required": True}
    if type_.startswith("decimal"):
        return {**one, "logicalType": "number", **required}
    if name in ("address", "before"):
        inside = [
            {"name": inner, "physicalType": kind, "logicalType": plain.get(kind, "number")}
            for inner, kind in (("city", "string"), ("moved", "date"), ("rent", "decimal(9,2)"))
        ]
        if name == "address":
            return {**one, "logicalType": "object", "properties": inside, **required}
        items = {"logicalType": "object", "physicalType": "struct", "properties": inside}
        return {**one, "logicalType": "array", "items": items, **required}
    if name == "scores":
        key = {"logicalType": "string", "physicalType": "string"}
        value = {"logicalType": "integer", "physicalType": "bigint"}
        return {**one, "logicalType": "map", "map": {"key": key, "value": value}, **required}
    return {**one, "logicalType": plain[type_], **required}


@pytest.mark.faults
def test_a_value_of_every_type_reaches_a_table_exactly(stage: Stage, way: str) -> None:
    name = renamed(stage)
    schema = parse_schema(AVRO, topic=name, number=1, file="schemas/things.v1.avsc")
    contract = contract_of(name, [promised(one.name, one.type) for one in schema.fields])
    stage.topic = Topic(name=name, contract=contract, schemas=(schema,))
    stage.create(partitions=1)
    schema_id = stage.registry.register(stage.subject, AVRO)
    table = Latest(
        name="homes", inputs=(name,),
        columns={
            "id": "id", "city": "address.city", "rent": "before[0].rent", "home": "address", "day": "day",
        },
        keys=("id",), values=("city", "rent", "home", "day"),
    )  # fmt: skip
    fed = Fed(stage, table)
    broken = frame(schema_id, AVRO, made("c")).replace("Köln".encode(), b"\xff\xffln\xff")
    stage.produce(frame(schema_id, AVRO, made("a")), frame(schema_id, AVRO, made("b", scores={})), broken)

    log = fed.run()

    assert [row[3:] for row in stage.verdicts(log)] == [
        ("valid", ()), ("valid", ()), ("invalid", ("invalid_utf8:before",)),
    ]  # fmt: skip
    home = ("Bonn", date(2024, 2, 29), Decimal("700.50"))
    assert fed.shows() == {(id_, "Bonn", Decimal("700.50"), home, date(1, 1, 1)) for id_ in "ab"}
    names = ("sort", "millis", "micros", "local", "worth", "number", "took", "maybe", "scores")
    all_of = Events(name="all_of", inputs=(name,), where="id = 'a'", columns={one: one for one in names})
    (row,) = shown(stage, log, all_of)
    assert row[: len(names)] == (
        "B", 1000, 7, 1_769_860_800_000_000, Decimal("-1234567890.1234"), str(NUMBER), bytes(range(12)), None,
        {"x": 1, "y": None},
    )  # fmt: skip
