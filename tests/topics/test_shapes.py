"""A contract says more than columns: nested shapes, JSON, keys, and what a record without a value is."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.project import PROJECT, project_in
from twinlake.base.errors import ContractError
from twinlake.topics import record_key
from twinlake.topics.contract import Contract
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.topic import Topic, load_topic, topic_names

ORDERS = yaml.safe_load((PROJECT / "contracts" / "orders.yaml").read_text())


def document(*more: dict[str, Any], keys: tuple[str, ...] = (), **custom: str) -> dict[str, Any]:
    """The contract of orders with these properties and custom properties besides."""
    found = copy.deepcopy(ORDERS)
    found["schema"][0]["properties"] += more
    for one in found["schema"][0]["properties"]:
        if one["name"] in keys:
            one["primaryKey"] = True
    found["customProperties"] += [{"property": name, "value": value} for name, value in custom.items()]
    return found


def contract(*more: dict[str, Any], **custom: Any) -> Contract:
    return parse_contract(document(*more, **custom), name="orders", file="orders.yaml")


def text(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "logicalType": "string", "physicalType": "string", **more}


ADDRESS = {"name": "address", "logicalType": "object", "physicalType": "struct", "properties": [
    text("city"),
    {"name": "Tags", "logicalType": "array", "physicalType": "array",
     "items": {"logicalType": "string", "physicalType": "string"}},
]}  # fmt: skip
SCORES = {"name": "scores", "logicalType": "map", "physicalType": "map", "map": {
    "key": {"logicalType": "string", "physicalType": "string"},
    "value": {"logicalType": "number", "physicalType": "decimal(9, 2)"},
}}  # fmt: skip


def test_nested_columns_have_the_type_that_is_made_of_what_is_inside() -> None:
    found = contract(ADDRESS, SCORES)

    assert [column.type for column in found.columns[-2:]] == [
        "struct<city:string,Tags:array<string>>", "map<string,decimal(9,2)>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "path", "words"),
    [
        (
            {**ADDRESS, "properties": [text("city"), text("City")]},
            "properties[7].properties[1].name", "twice",
        ),
        ({**ADDRESS, "properties": []}, "properties[7].properties", "empty"),
        (
            {**ADDRESS, "properties": [text("city", unique=True)]},
            "properties[7].properties[0].unique", "inside",
        ),
        ({**ADDRESS, "physicalType": "struct<city:int>"}, "properties[7].physicalType", "struct<city:string"),
        ({"name": "a", "logicalType": "array", "physicalType": "array"}, "properties[7].items", "missing"),
        ({**text("a"), "properties": [text("b")]}, "properties[7]", "properties"),
        (
            {**SCORES, "map": {**SCORES["map"], "key": SCORES["map"]["value"]}},
            "properties[7].map.key", "a map's keys are strings",
        ),
    ],
)  # fmt: skip
def test_a_nested_column_that_is_wrong_is_named_with_its_place(one: Any, path: str, words: str) -> None:
    with pytest.raises(ContractError) as refused:
        contract(one)

    assert refused.value.path == f"schema[0].{path}" and words in str(refused.value) + refused.value.remedy


@pytest.mark.parametrize(
    ("custom", "keys", "words"),
    [
        ({"nullValues": "delete"}, (), "keyFormat is missing"),
        ({"nullValues": "drop"}, (), "'drop' is not a value of nullValues"),
        ({"format": "xml"}, (), "'xml' is not a value of format"),
        ({"keyFormat": "json"}, (), "no property is in the primaryKey"),
        ({"keyFormat": "string"}, ("order_id",), "must be one string"),
        ({"keyFormat": "string"}, ("customer", "region"), "must be one string"),
        ({"keyFormat": "string", "nullValues": "delete"}, ("event_id",), "unique and in the key"),
    ],
)
def test_a_contract_that_could_not_be_kept_is_refused(
    custom: dict[str, str], keys: tuple[str, ...], words: str
) -> None:
    with pytest.raises(ContractError) as refused:
        contract(keys=keys, **custom)

    assert words in str(refused.value)


def test_a_contract_that_says_nothing_new_keeps_its_fingerprint_and_its_columns() -> None:
    plain = contract()

    assert contract(format="avro", nullValues="invalid").fingerprint == plain.fingerprint
    assert record_key.columns(plain) == () == record_key.from_log(plain)
    for custom in ({"nullValues": "ignore"}, {"keyFormat": "bytes"}, {"format": "json"}):
        assert contract(**custom).fingerprint != plain.fingerprint


def test_only_a_contract_that_says_so_shows_the_key_and_the_tombstone() -> None:
    assert record_key.columns(contract(keyFormat="string")) == (("_key", "string"),)
    deletes = contract(keys=("customer", "order_id"), keyFormat="json", nullValues="delete")
    assert record_key.columns(deletes) == (
        ("_key", "struct<order_id:bigint,customer:string>"), ("_tombstone", "boolean"),
    )  # fmt: skip
    assert record_key.of_tombstone(deletes, "region") is None
    assert str(record_key.of_tombstone(deletes, "customer")).endswith(".`customer`")


def test_the_shape_of_a_topic_in_json_is_its_contract(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "orders.yaml").write_text(yaml.safe_dump(document(ADDRESS, format="json")))

    assert topic_names(project_in(tmp_path)) == ("orders",)
    topic = load_topic("orders", project_in(tmp_path))
    assert topic.columns[7] == ("address", "struct<city:string,Tags:array<string>>")
    assert topic.newest.file == str(tmp_path / "contracts" / "orders.yaml")
    assert Topic.from_json(topic.to_json()) == topic
    shutil.copy(PROJECT / "schemas" / "orders.v1.avsc", tmp_path / "schemas")
    with pytest.raises(ContractError, match="the contract is its schema"):
        load_topic("orders", project_in(tmp_path))
