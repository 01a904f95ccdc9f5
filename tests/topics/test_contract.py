"""Contracts are validated on load: what is wrong is an error with file and path."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator

from tests.project import OURS, PROJECT
from twinlake.base.errors import ContractError
from twinlake.topics.contract import Rule
from twinlake.topics.contract_file import load_contract, parse_contract
from twinlake.topics.contract_schema import contract_schema
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import load_topic

DOCUMENT = yaml.safe_load((PROJECT / "contracts" / "orders.yaml").read_text())
AMOUNT, ORDERED_AT, STATUS = 5, 6, 4
EDITOR = Draft201909Validator(contract_schema())


def _changed(*path: str | int, to: Any, document: Any = DOCUMENT) -> Any:
    document = copy.deepcopy(document)
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    if to is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return document


def _property(index: int, key: str, to: Any) -> Any:
    return _changed("schema", 0, "properties", index, key, to=to)


WRONG = [
    (_changed("surprise", to=1), "", "surprise"),
    (_changed("version", to=...), "version", "missing"),
    (_changed("version", to=..., document=_changed("kind", to=...)), "kind, version", "they are missing"),
    (_changed("apiVersion", to="v2.2.2"), "apiVersion", "version 3"),
    (_changed("apiVersion", to="v9"), "apiVersion", "v9"),
    (_changed("name", to="other"), "name", "named 'orders'"),
    (_changed("description", to=...), "description", "missing"),
    (_changed("schema", to=[]), "schema", "missing"),
    (_changed("schema", 0, "surprise", to=1), "schema[0]", "surprise"),
    (_changed("schema", 0, "name", to="other"), "schema[0].name", "other"),
    (_changed("schema", 0, "quality", to=[{"type": "text"}]), "schema[0].quality", "not enforce"),
    (_property(AMOUNT, "surprise", 1), "schema[0].properties[5]", "surprise"),
    (_property(AMOUNT, "physicalType", ...), "schema[0].properties[5].physicalType", "missing"),
    (_property(STATUS, "logicalType", ...), "schema[0].properties[4].logicalType", "missing"),
    (_property(AMOUNT, "physicalType", "money"), "schema[0].properties[5].physicalType", "money"),
    (_property(AMOUNT, "logicalType", "string"), "schema[0].properties[5]", "minimum"),
    (_property(AMOUNT, "quality", []), "schema[0].properties[5].quality", "not enforce"),
    (_property(AMOUNT, "logicalTypeOptions", {"minimum": "a"}), "schema[0].properties[5]", "'a'"),
    (_property(AMOUNT, "logicalTypeOptions", {"minimum": 5, "maximum": 1}), "schema[0].pro", "5 or more"),
    (
        _property(AMOUNT, "logicalTypeOptions", {"multipleOf": 2}),
        "schema[0].properties[5]",
        "not enforce",
    ),
    (_property(AMOUNT, "unique", True), "schema[0].properties[5].unique", "event_id"),
    (_property(STATUS, "logicalTypeOptions", {"minLength": 2}), "schema[0].properties[4]", "only 1"),
    (_property(STATUS, "name", "Region"), "schema[0].properties[4].name", "twice"),
    (_property(STATUS, "name", "_offset"), "schema[0].properties[4].name", "not made of letters"),
    (_property(STATUS, "name", "a b"), "schema[0].properties[4].name", "not made of letters"),
    (_property(ORDERED_AT, "required", False), "customProperties", "required timestamp"),
    (
        _changed("customProperties", 0, "property", to="eventtime"),
        "customProperties[0].property",
        "unknown",
    ),
    (_changed("customProperties", 0, "value", to="nothing"), "customProperties", "nothing"),
    (_changed("customProperties", 1, to=...), "customProperties", "lateAfter is missing"),
    (_changed("customProperties", 1, "value", to="soon"), "customProperties[1].value", "soon"),
    (_changed("customProperties", 1, "value", to="30 days"), "customProperties", "shorter"),
    (_changed("customProperties", 4, to=...), "customProperties", "uniqueWithin"),
    (_changed("customProperties", to=...), "customProperties", "eventTime is missing"),
    ([], "", "object"),
    (None, "", "object"),
]
"""(document, the start of where it is wrong, what is said of it)"""
BY_MEANING = {
    "5 or more",
    "named 'orders'", "other", "event_id", "twice", "required timestamp", "nothing", "lateAfter is missing",
    "shorter", "uniqueWithin", "eventTime is missing", "not made of letters",
}  # fmt: skip
"""What is said where the form alone is right."""


def test_the_contract_of_orders_says_what_it_promises() -> None:
    contract = load_topic("orders", OURS).contract

    assert (contract.event_time, contract.unique) == ("ordered_at", "event_id")
    assert (contract.late_after, contract.discard_after) == (timedelta(hours=3), timedelta(days=21))
    assert (contract.future_tolerance, contract.unique_within) == (timedelta(minutes=5), timedelta(hours=1))
    assert [rule.reason for rule in contract.rules if rule.code != "missing"] == [
        "empty:customer", "empty:region", "not_allowed:status", "below_minimum:amount",
    ]  # fmt: skip


@pytest.mark.parametrize(("document", "path", "words"), WRONG)
def test_what_is_wrong_is_named_with_file_and_path(document: Any, path: str, words: str) -> None:
    with pytest.raises(ContractError) as caught:
        parse_contract(document, name="orders", file="contracts/orders.yaml")

    assert caught.value.file == "contracts/orders.yaml"
    assert caught.value.path.startswith(path) and words in str(caught.value)


@pytest.mark.parametrize(("document", "path", "words"), WRONG)
def test_an_editor_is_told_what_is_wrong_by_form(document: Any, path: str, words: str) -> None:
    assert EDITOR.is_valid(document) is (words in BY_MEANING)


@pytest.mark.parametrize(
    "file",
    sorted(
        file
        for folder in ("contracts", "examples", "jobs")
        for file in (PROJECT / folder).rglob("*.yaml")
        if file.parent.name == "contracts"
    ),
    ids=lambda file: file.stem,
)
def test_an_editor_takes_every_contract_of_the_project(file: Path) -> None:
    assert [error.message for error in EDITOR.iter_errors(yaml.safe_load(file.read_text()))] == []


def _smaller() -> Any:
    document = copy.deepcopy(DOCUMENT)
    columns = document["schema"][0]["properties"]
    document["schema"][0]["properties"] = [columns[at] for at in (0, STATUS, AMOUNT, ORDERED_AT)]
    return document


SHORT = {
    "name": "orders", "description": {"purpose": "a table's"},
    "schema": [{"properties": [
        {"name": "amount", "logicalTypeOptions": {"minimum": 1, "maximum": 2}},
        {"name": "region", "logicalTypeOptions": {"minLength": 1}, "enum": [{"value": "north"}]},
        {"name": "tags", "logicalType": "array", "physicalType": "array",
         "items": {"logicalType": "string", "physicalType": "string"}},
    ]}],
}  # fmt: skip


def test_an_editor_takes_a_short_contract_and_holds_it_to_its_form() -> None:
    assert [error.message for error in EDITOR.iter_errors(SHORT)] == [] and _accepted(SHORT)
    assert EDITOR.is_valid({}) and _accepted({})

    columns = ("schema", 0, "properties")
    for wrong in (
        _changed(*columns, 0, "logicalTypeOptions", to={"multipleOf": 2}, document=SHORT),
        _changed(*columns, 0, "logicalType", to="integer", document=SHORT),
        _changed(*columns, 1, "surprise", to=1, document=SHORT),
        _changed(*columns, 2, "items", "physicalType", to=..., document=SHORT),
    ):
        assert not EDITOR.is_valid(wrong) and not _accepted(wrong), wrong


@pytest.mark.parametrize("document", [_smaller(), SHORT], ids=["topic", "short"])
def test_an_editor_refuses_nothing_that_is_accepted(document: Any) -> None:
    """Whatever is left out of a contract, or is something else."""
    unlike = [
        path for path, document in _edited(document) if not EDITOR.is_valid(document) and _accepted(document)
    ]

    assert unlike == []


def _edited(document: Any) -> Iterator[tuple[str, Any]]:
    def inside(one: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
        for key in [*one] if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else []:
            yield (*path, key), one[key]
            yield from inside(one[key], (*path, key))

    for path, _ in inside(document, ()):
        for other in (..., "string", 1):
            yield f"{path} to {other!r}", _changed(*path, to=other, document=document)


def _accepted(document: Any) -> bool:
    try:
        parse_contract(document, name="orders", file="orders.yaml")
    except ContractError:
        return False
    return True


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text((PROJECT / "contracts" / "orders.yaml").read_text() + "\nversion: 2.0.0\n")

    with pytest.raises(ContractError, match="given twice"):
        load_contract(file)


def test_a_contract_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="there is no such contract") as caught:
        load_contract(tmp_path / "orders.yaml")

    assert "write it" in caught.value.remedy


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text("a: [")

    with pytest.raises(ContractError, match="cannot be read as YAML"):
        load_contract(file)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "amount", "type": "long"}, "bigint"),
        ({"name": "sum", "type": "long"}, "not a field"),
        (
            {
                "name": "amount",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
            },
            "12,3",
        ),
    ],
)
def test_a_disagreement_with_the_schema_names_both(change: dict[str, Any], words: str) -> None:
    topic = load_topic("orders", OURS)
    avro = copy.deepcopy(dict(topic.newest.avro))
    avro["fields"][AMOUNT] = change

    found = topic.contract.disagreement(parse_schema(avro, topic="orders", number=1, file="orders.v1.avsc"))

    assert found is not None and found[0].startswith("schema[0].properties[5]") and words in found[1]


def test_a_field_that_the_contract_leaves_out_is_a_disagreement() -> None:
    topic = load_topic("orders", OURS)
    avro = copy.deepcopy(dict(topic.newest.avro))
    avro["fields"].append({"name": "note", "type": ["null", "string"], "default": None})

    found = topic.contract.disagreement(parse_schema(avro, topic="orders", number=2, file="orders.v2.avsc"))

    assert found is not None and "'note'" in found[1]


def test_the_fingerprint_is_of_the_meaning() -> None:
    def fingerprint(document: Any) -> str:
        return parse_contract(document, name="orders", file="orders.yaml").fingerprint

    assert fingerprint(_changed("version", to="1.0.1")) == fingerprint(DOCUMENT)
    assert fingerprint(_changed("description", "usage", to="x")) == fingerprint(DOCUMENT)
    assert fingerprint(_changed("customProperties", 1, "value", to="PT3H")) == fingerprint(DOCUMENT)
    assert fingerprint(_changed("customProperties", 1, "value", to="4 hours")) != fingerprint(DOCUMENT)
    assert fingerprint(_property(AMOUNT, "logicalTypeOptions", {"minimum": 1})) != fingerprint(DOCUMENT)


def test_a_rule_s_sql_quotes_its_values() -> None:
    rule = Rule(column="status", code="not_allowed", value=("it's", "back\\slash"))

    assert rule.broken_sql("`status`") == r"coalesce(`status` NOT IN ('it\'s', 'back\\slash'), false)"
    assert (
        Rule(column="a", code="below_minimum", value=Decimal("0.10")).broken_sql("a")
        == "coalesce(a < 0.10, false)"
    )
