"""JSON Schema: what a topic's file in it may say, and which columns that makes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.project import PROJECT, project_in
from twinlake.base.errors import ContractError
from twinlake.topics.default_value import default_sql
from twinlake.topics.json_schema import inner
from twinlake.topics.schema import Schema, load_schema, registered_schema
from twinlake.topics.topic import Topic, load_topic, refuse_defaults, topic_names

AT = {"type": "string", "format": "date-time"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def parsed(document: Any) -> Schema:
    said = {"schemaType": "JSON", "schema": document}
    return registered_schema(said, topic="t", number=1, file="t.v1.json")


@pytest.mark.parametrize(
    ("said", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"enum": ["a", "b"]}, "string"),
        ({"const": "a"}, "string"),
        ({"type": "string", "format": "byte"}, "binary"),
        ({"type": "string", "contentEncoding": "base64"}, "binary"),
        ({"type": "string", "format": "date"}, "date"),
        (AT, "timestamp"),
        ({"type": "integer", "minimum": 0}, "bigint"),
        ({"type": "integer", "format": "int32"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": "number", "format": "float"}, "float"),
        ({"type": "number", "format": "decimal(12,2)"}, "decimal(12,2)"),
        ({"type": ["null", "boolean"]}, "boolean"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "bigint"),
        ({"allOf": [{"$ref": "#/properties/self"}], "description": "x"}, "string"),
        ({"type": "array", "items": AT}, "array<timestamp>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        (of(city=AT, geo=of(lat={"type": "number"})), "struct<city:timestamp,geo:struct<lat:double>>"),
        ({"type": "array", "items": {"$ref": "#/properties/place"}}, "array<struct<city:string>>"),
    ],
)
def test_a_property_is_a_column_of_this_type(said: Any, type_: str) -> None:
    more = {"self": {"type": "string"}, "place": of(city={"type": "string"})}

    field = parsed(of(it=said, **more)).field("it")

    assert field is not None and (field.type, field.nullable, field.has_default) == (type_, True, True)
    assert default_sql(field) == f"CAST(NULL AS {type_})"


def test_what_is_required_and_not_null_is_never_null() -> None:
    it, other = {"type": "string"}, {"type": ["string", "null"]}

    found = parsed({**of(it=it, other=other), "required": ["it", "other"]}).fields

    assert [(one.name, one.nullable, one.has_default) for one in found] == [
        ("it", False, False), ("other", True, False),
    ]  # fmt: skip


def nested(levels: int) -> Any:
    found: Any = {"type": "string"}
    for _ in range(levels):
        found = of(a=found)
    return found


def doubled(levels: int) -> dict[str, Any]:
    """Of each level two of the next one."""
    below = {f"m{n}": of(a=_ref(n + 1), b=_ref(n + 1)) for n in range(levels)}
    return {**of(fine={"type": "string"}, a=_ref(0)), "$defs": {**below, f"m{levels}": {"type": "string"}}}


def _ref(number: int) -> dict[str, str]:
    return {"$ref": f"#/$defs/m{number}"}


@pytest.mark.parametrize(
    "document",
    [
        {"type": "object", "properties": [1]}, {"type": "object", "properties": {"a": 1}}, {"$ref": "#"},
        {**of(a={"type": "string"}), "required": True}, {**of(a={"type": "string"}), "required": 5},
        of(a={"type": "object", "properties": [1]}), of(a={"type": "object", "properties": "x"}),
        of(a={"enum": 5}), of(a={"type": {}}), of(a={"type": [{}]}), of(a={"type": []}), of(a={"$ref": [1]}),
        of(a={"oneOf": "x"}), of(a=True), of(a={"type": "string", "aliases": 5}),
        of(a={"type": "number", "default": 10**400}), of(a={"type": "integer", "default": 10**30}),
        of(a={"type": "number", "format": "decimal(5,2)", "default": float("inf")}),
        of(a={"type": "number", "format": "decimal(5,2)", "default": 1e300}),
        of(a={"type": "string", "format": "date", "default": 5}),
        of(a={"type": "array", "items": {"type": "string"}, "default": "abc"}),
        of(a={**of(b={"type": "string"}), "default": 5}), of(a=nested(60)), of(a=nested(300)), doubled(30),
        of(a={"$ref": "http://127.0.0.1:1/a"}), of(a={"$ref": "file:///etc/passwd"}),
        {**of(a={"allOf": [{"$ref": "#/$defs/a"}]}), "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/a"}]}}},
    ],
)  # fmt: skip
def test_a_document_of_any_shape_is_refused_with_words(document: Any) -> None:
    with pytest.raises(ContractError) as caught:
        refuse_defaults(parsed(document))

    assert caught.value.why_text


def test_of_a_producer_s_schema_what_can_be_read_is() -> None:
    found = inner(doubled(30), "")

    assert ([one["name"] for one in found.avro["fields"]], list(found.others)) == (["fine"], ["a"])


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], ""),
        ({"type": "array", "items": {}}, "properties"),
        ({"type": "object"}, "properties"),
        (of(a={}), "properties.a.type"),
        (of(a=True), "properties.a"),
        (of(a={"type": "null"}), "properties.a.type"),
        (of(a={"type": ["string", "integer"]}), "properties.a.type"),
        (of(a={"oneOf": [{"type": "string"}, {"type": "integer"}]}), "properties.a.oneOf"),
        (of(a={"allOf": [{"type": "string"}, {"minLength": 1}]}), "properties.a.allOf"),
        (of(a={"type": "object"}), "properties.a.properties"),
        (of(a={"type": "object", "patternProperties": {"^a": AT}}), "properties.a.patternProperties"),
        (of(a={"type": "array"}), "properties.a.items"),
        (of(a={"type": "array", "prefixItems": [AT]}), "properties.a.prefixItems"),
        (of(a=of(b={"type": "array", "items": {}})), "properties.a.properties.b.items.type"),
        (of(a=of(b=AT, B=AT)), "properties.a.properties.B"),
        (of(**{"a-b": AT}), "properties.a-b"),
        (of(a={"$ref": "other.json"}), "properties.a.$ref"),
        (of(a={"$ref": "#/$defs/none"}), "properties.a.$ref"),
        (of(a={"$ref": "#/properties/a"}), "properties.a.$ref"),
        (of(a=of(b={"$ref": "#/properties/a"})), "properties.a.properties.b.properties.b.$ref"),
        (of(a={"type": "number", "format": "decimal(40,2)"}), "properties.a.format"),
        (of(a={"type": "integer", "default": "x"}), ""),
        (of(a={**AT, "default": "yesterday"}), "properties.a.default"),
        (of(a={"type": "number", "format": "decimal(3,2)", "default": 10}), "properties.a.default"),
    ],
)
def test_what_is_no_column_is_refused_with_its_place(document: Any, path: str) -> None:
    with pytest.raises((ContractError, ValueError)) as caught:
        for field in parsed(document).fields:
            default_sql(field)

    if path or document == []:
        assert isinstance(caught.value, ContractError)
        assert (caught.value.file, caught.value.path) == ("t.v1.json", path)
        assert caught.value.remedy


@pytest.fixture
def topic_of(tmp_path: Path):
    """What a project has of a topic with these schemas, by its contract of format json_schema."""
    project = project_in(tmp_path)
    shutil.copytree(PROJECT / "contracts", project.contracts, dirs_exist_ok=True)
    contract = """
apiVersion: v3.2.0
kind: DataContract
id: visits
name: visits
version: 1.0.0
status: active
description: {purpose: a test}
customProperties:
  - {property: format, value: FORMAT}
  - {property: eventTime, value: at}
  - {property: lateAfter, value: 1 hour}
  - {property: discardAfter, value: 1 day}
  - {property: futureTolerance, value: 1 hour}
schema:
  - name: visits
    physicalType: topic
    logicalType: object
    properties:
      - {name: at, logicalType: timestamp, physicalType: timestamp, required: true}
      - {name: page, logicalType: string, physicalType: string}
"""

    def made(*documents: Any, format_: str = "json_schema") -> Topic:
        project.schemas.mkdir(exist_ok=True)
        for number, document in enumerate(documents, start=1):
            (project.schemas / f"visits.v{number}.json").write_text(json.dumps(document))
        (project.contracts / "visits.yaml").write_text(contract.replace("FORMAT", format_))
        assert "visits" in topic_names(project)
        return load_topic("visits", project)

    return made


VISITS = {**of(at=AT, page={"type": "string"}), "required": ["at"]}


def test_a_topic_has_files_of_json_schema_and_is_passed_on_as_json(topic_of) -> None:
    topic = topic_of(VISITS)

    assert topic.newest.format == "json_schema"
    assert topic.newest.registered == {"schemaType": "JSON", "schema": VISITS}
    assert Topic.from_json(json.loads(json.dumps(topic.to_json()))) == topic


def test_a_contract_of_another_format_is_refused(topic_of) -> None:
    with pytest.raises(ContractError) as caught:
        topic_of(VISITS, format_="avro")

    assert caught.value.why_text == "format is avro, and visits.v1.json is of json_schema"


def test_a_new_file_is_held_to_what_the_ones_before_it_say(topic_of) -> None:
    later = {**of(at=AT, page={"type": "integer"}), "required": ["at"]}

    with pytest.raises(ContractError) as caught:
        topic_of(VISITS, later)

    assert caught.value.path == "properties.page"
    assert "read as bigint and sent as string" in caught.value.why_text


def test_files_of_two_languages_are_refused(topic_of, tmp_path: Path) -> None:
    topic = topic_of(VISITS)
    other = Path(topic.newest.file).with_name("visits.v2.avsc")
    other.write_text("{}")

    with pytest.raises(ContractError) as caught:
        topic_of(VISITS)

    assert "of another language" in caught.value.why_text


def test_a_file_that_is_no_json_says_where(tmp_path: Path) -> None:
    file = tmp_path / "visits.v1.json"
    file.write_text('{"type": "object",\n}')

    with pytest.raises(ContractError) as caught:
        load_schema(file)

    assert caught.value.place is not None and caught.value.place[0] == 2
