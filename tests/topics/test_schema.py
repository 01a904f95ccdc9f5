"""Schemas: the fields and types that a topic may have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.project import PROJECT, project_in
from twinlake.base.errors import ContractError, NotFoundError
from twinlake.topics.schema import load_schema, parse_schema, readable_fields
from twinlake.topics.topic import load_topic


def _parse(avro: Any):
    return parse_schema(avro, topic="t", number=1, file="t.v1.avsc")


def _record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "T", "fields": list(fields)}


def test_orders_is_read_with_these_types() -> None:
    schema = load_schema(PROJECT / "schemas" / "orders.v1.avsc")

    assert [(field.name, field.type, field.nullable) for field in schema.fields] == [
        ("event_id", "string", False), ("order_id", "bigint", False), ("customer", "string", False),
        ("region", "string", False), ("status", "string", False), ("amount", "decimal(12,2)", False),
        ("ordered_at", "timestamp", False),
    ]  # fmt: skip
    assert schema.field("amount").precision == (12, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("avro", "path"),
    [
        ([], "type"),
        ({"type": "enum"}, "type"),
        ({"type": "record", "fields": []}, "name"),
        ({"type": "record", "name": "T", "fields": []}, "fields"),
        ({**_record({"name": "a", "type": "int"}), "aliases": []}, "aliases"),
        (_record({"name": "a"}), "fields[0].type"),
        (_record({"name": "a", "type": "int", "order": "ignore"}), "fields[0].order"),
        (_record({"name": "_a", "type": "int"}), "fields[0].name"),
        (_record({"name": "a", "type": "int"}, {"name": "A", "type": "int"}), "fields[1].name"),
        (_record({"name": "a", "type": {"type": "array", "items": "text"}}), "fields[0].type.items"),
        (_record({"name": "a", "type": ["int", "string"]}), "fields[0].type"),
        (_record({"name": "a", "type": ["null", "int", "string"]}), "fields[0].type"),
        (
            _record({"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40}}),
            "fields[0].type",
        ),
        (_record({"name": "a", "type": {"type": "long", "logicalType": "time-millis"}}), "fields[0].type"),
    ],
)
def test_what_is_not_supported_is_named_with_its_path(avro: Any, path: str) -> None:
    with pytest.raises(ContractError) as caught:
        _parse(avro)

    assert (caught.value.file, caught.value.path) == ("t.v1.avsc", path)


def _doubled(levels: int) -> dict[str, Any]:
    """Each record has two of the next one, which is named the second time."""
    found: Any = "string"
    for level in range(levels):
        name = f"R{level - 1}" if level else "string"
        fields = [{"name": "a", "type": found}, {"name": "b", "type": name}]
        found = {"type": "record", "name": f"R{level}", "fields": fields}
    return _record({"name": "at", "type": "int"}, {"name": "a", "type": found})


def test_a_schema_that_is_endless_when_it_is_written_out_is_refused() -> None:
    assert _parse(_doubled(5)).fields
    with pytest.raises(ContractError, match="more fields than a table can have"):
        _parse(_doubled(40))
    assert list(readable_fields(_doubled(40), "")[1]) == ["at", "a"]


def test_a_later_file_of_protobuf_keeps_the_name_of_its_message(tmp_path: Path) -> None:
    for folder in ("schemas", "contracts"):
        (tmp_path / folder).mkdir()
    head = 'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
    fields = "{ string id = 1; google.protobuf.Timestamp at = 2; }"
    (tmp_path / "schemas" / "scans.v1.proto").write_text(f"{head} message Scan {fields}")
    (tmp_path / "schemas" / "scans.v2.proto").write_text(f"{head} message New {fields} message Scan {fields}")

    with pytest.raises(ContractError, match="its first message is New, and Scan in") as caught:
        load_topic("scans", project_in(tmp_path))

    assert caught.value.file.endswith("scans.v2.proto")


def test_words_do_not_change_the_fingerprint_and_defaults_do() -> None:
    plain = _parse(_record({"name": "a", "type": "int"}))
    told = _parse({**_record({"name": "a", "type": "int", "doc": "words"}), "doc": "more words"})
    with_default = _parse(_record({"name": "a", "type": "int", "default": 0}))

    assert plain.fingerprint == told.fingerprint != with_default.fingerprint


def _project(tmp_path: Path) -> Path:
    for folder in ("schemas", "contracts"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    return tmp_path


def test_a_missing_version_is_an_error(tmp_path: Path) -> None:
    project = _project(tmp_path)
    shutil.copy(project / "schemas" / "orders.v1.avsc", project / "schemas" / "orders.v3.avsc")

    with pytest.raises(ContractError, match="version 2 of topic orders is missing"):
        load_topic("orders", project_in(project))


def test_a_file_that_is_no_json_is_an_error(tmp_path: Path) -> None:
    project = _project(tmp_path)
    (project / "schemas" / "orders.v2.avsc").write_text("{")

    with pytest.raises(ContractError, match="cannot be read as JSON"):
        load_topic("orders", project_in(project))


def test_an_unknown_topic_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="orders"):
        load_topic("nothing", project_in(_project(tmp_path)))


def test_a_schema_that_changes_the_type_of_a_field_is_refused_with_both_types(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder in ("contracts", "schemas"):
        shutil.copytree(PROJECT / folder, project / folder)
    newest = load_topic("orders", project_in(project)).newest
    first = project / "schemas" / f"orders.v{newest.number}.avsc"
    second = first.with_name(f"orders.v{newest.number + 1}.avsc")
    fields = json.loads(first.read_text())
    amount = next(field for field in fields["fields"] if field["name"] == "amount")
    amount["type"] = "string"
    second.write_text(json.dumps(fields))

    with pytest.raises(ContractError, match="a field keeps its type") as refused:
        load_topic("orders", project_in(project))

    assert refused.value.file == str(second) and "'amount'" in str(refused.value)


def test_a_file_may_begin_with_a_mark_and_have_the_ends_of_line_of_windows(tmp_path: Path) -> None:
    ours, theirs = PROJECT / "schemas" / "orders.v1.avsc", tmp_path / "orders.v1.avsc"
    theirs.write_bytes(b"\xef\xbb\xbf" + ours.read_bytes().replace(b"\n", b"\r\n"))

    assert load_schema(theirs).text == load_schema(ours).text
