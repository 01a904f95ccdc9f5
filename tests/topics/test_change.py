"""Which changes of a schema old records survive: one list of words for check, registration and ingest."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.project import PROJECT, project_in
from tests.registry import FakeRegistry
from twinlake.base.errors import ContractError, DifferenceError
from twinlake.ingest.unreadable import Unreadable
from twinlake.ingest.writer_schema import learn
from twinlake.topics.change import breaking
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry
from twinlake.topics.schema import Schema, parse_schema
from twinlake.topics.topic import load_topic


def schema(*fields: dict[str, Any]) -> Schema:
    avro = {"type": "record", "name": "T", "fields": [*fields]}
    return parse_schema(avro, topic="t", number=2, file="t.v2.avsc")


def field(type_: Any, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def record(name: str = "In", **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", field("long")),
        ("int", field("double")),
        ("float", field("double")),
        ("string", field("bytes")),
        ("bytes", field("string")),
        ("int", field(["null", "long"], default=None)),
        ("int", field("int", "b", aliases=["a"])),
        ("int", field("long", "b", aliases=["x", "a"])),
        ("int", field("string", "b", default="-")),
        (record(x="int"), field(record(x="int", y="string"))),
        (record(x="int", y="string"), field(record(y="string"))),
        (record(x=record("R", z="int")), field(record(y="long", x=record("R", w="int", z="int")))),
    ],
)
def test_records_survive_what_holds_every_value_that_was_sent(before: Any, after: dict[str, Any]) -> None:
    assert breaking(schema(field(before)).fields, schema(after)) is None


@pytest.mark.parametrize(
    ("before", "after", "path", "words"),
    [
        (
            "long",
            field("int"),
            "fields[0].type",
            "field 'a' is read as int and sent as bigint: a field keeps its type",
        ),
        ("long", field("double"), "fields[0].type", "read as double and sent as bigint"),
        ("int", field("float"), "fields[0].type", "read as float and sent as int"),
        (
            "int",
            field("string", "b", aliases=["a"]),
            "fields[0].type",
            "field 'b' is read as string and sent as int",
        ),
        ("int", field("int", "b"), "fields[0].default", "field 'b' has no default"),
        (
            record(x="int"),
            field(record(x="long")),
            "fields[0].type",
            "read as struct<x:bigint> and sent as struct<x:int>",
        ),
        (
            record(x="int"),
            field(record(X="int")),
            "fields[0].type",
            "read as struct<X:int> and sent as struct<x:int>",
        ),
        (record(x="int"), field({"type": "map", "values": "int"}), "fields[0].type", "sent as struct<x:int>"),
    ],
)
def test_what_loses_a_value_is_breaking_and_has_a_place(
    before: Any, after: dict[str, Any], path: str, words: str
) -> None:
    found = breaking(schema(field(before)).fields, schema(after))

    assert found is not None and found[0] == path and words in found[1]


def project(tmp_path: Path, change: dict[str, Any] | None) -> Path:
    """The project with a second schema of orders, in which amount is another field."""
    for folder in ("schemas", "contracts"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    if change is not None:
        avro = json.loads((PROJECT / "schemas" / "orders.v1.avsc").read_text())
        avro["fields"] = [change if one["name"] == "amount" else one for one in avro["fields"]]
        (tmp_path / "schemas" / "orders.v2.avsc").write_text(json.dumps(avro))
    return tmp_path


def test_a_breaking_change_is_refused_with_the_same_words_wherever_it_is_met(tmp_path: Path) -> None:
    change = {"name": "amount", "type": "string"}
    with pytest.raises(ContractError) as in_check:
        load_topic("orders", project_in(project(tmp_path / "files", change)))
    topic = load_topic("orders", project_in(project(tmp_path / "first", None)))
    foreign = dict(topic.newest.avro)
    foreign["fields"] = [change if one["name"] == "amount" else one for one in foreign["fields"]]
    fake = FakeRegistry()
    try:
        fake.add("orders-value", 3, foreign)
        with pytest.raises(ContractError) as at_registration:
            register(Registry(fake.url), topic)
        assert fake.asked[-1].startswith("GET")
    finally:
        fake.close()
    words = "field 'amount' is read as {} and sent as {}: a field keeps its type"
    assert words.format("string", "decimal(12,2)") in in_check.value.why_text
    assert words.format("decimal(12,2)", "string") in at_registration.value.why_text

    from pyspark.sql.types import StructType

    at_ingest = learn(topic, 3, foreign, lambda text: StructType())

    assert isinstance(at_ingest, Unreadable) and at_ingest.why == at_registration.value.why_text


def test_what_no_file_could_read_so_far_keeps_none_from_being_registered(tmp_path: Path) -> None:
    topic = load_topic("orders", project_in(project(tmp_path, None)))
    first = dict(topic.newest.avro)
    noted = {**first, "fields": [*first["fields"], {"name": "note", "type": "string", "default": "-"}]}
    second = parse_schema(noted, topic="orders", number=2, file="orders.v2.avsc")
    topic = replace(topic, schemas=(topic.newest, second))
    foreign = {**first, "fields": [{**one, "type": "string"} for one in first["fields"]]}
    fake = FakeRegistry()
    try:
        fake.add("orders-value", 1, first)
        fake.add("orders-value", 2, foreign)
        register(Registry(fake.url), topic)

        assert fake.subjects["orders-value"][-1][1] == dict(topic.newest.avro)

        fake.subjects["orders-value"].pop()
        fake.refusal = (409, {"error_code": 409, "message": "no"})
        with pytest.raises(DifferenceError, match="producers have registered schema 2") as refused:
            register(Registry(fake.url), topic)
        assert "delete the versions of schema 2 from subject orders-value" in refused.value.remedy
    finally:
        fake.close()


@pytest.mark.parametrize(
    ("avro", "default", "why"),
    [
        ({"type": "array", "items": "string"}, 7, "7 is not of type array<string>"),
        ("string", 5, "5 is not of type string"),
        ("string", None, "null is not of type string: make the type a union with null"),
    ],
)
def test_a_default_that_is_no_value_of_its_type_is_refused_with_its_place(
    tmp_path: Path, avro: Any, default: Any, why: str
) -> None:
    folder = project(tmp_path, {"name": "more", "type": avro, "default": default})

    with pytest.raises(ContractError) as refused:
        load_topic("orders", project_in(folder))

    assert refused.value.path == "fields[5].default" and why in refused.value.why_text


def test_a_version_is_compared_with_all_before_it_not_with_its_neighbour(tmp_path: Path) -> None:
    folder = project(tmp_path, None)
    first = json.loads((PROJECT / "schemas" / "orders.v1.avsc").read_text())
    without = {**first, "fields": [one for one in first["fields"] if one["name"] != "region"]}
    again = {**first, "fields": [*without["fields"], {"name": "region", "type": "int", "default": 0}]}
    for number, avro in ((2, without), (3, again)):
        (folder / "schemas" / f"orders.v{number}.avsc").write_text(json.dumps(avro))

    with pytest.raises(ContractError, match="'region' is read as int and sent as string"):
        load_topic("orders", project_in(folder))
