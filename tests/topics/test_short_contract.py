"""A table's contract may be short: the definition says the rest, and what they say differently is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from twinlake.base.errors import ContractError
from twinlake.topics.contract import Column, Contract
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.short_contract import contradictions, empty, filled

SHOWN = {"page": "string", "window_start": "timestamp", "visits": "bigint", "tags": "array<string>"}
KEYS = ("page", "window_start")


def contract(text: str) -> Contract:
    return parse_contract(yaml.safe_load(text), name="visits", file="visits.yaml")


def properties(text: str) -> Contract:
    return contract(f"schema: [{{properties: [{text}]}}]")


def test_what_it_leaves_out_is_the_definition_s() -> None:
    short = filled(properties("{name: visits, logicalTypeOptions: {minimum: 1}}"), SHOWN, KEYS)

    assert set(short.columns) == {Column(name=n, type=t, key=n in KEYS) for n, t in SHOWN.items()}
    assert [rule.reason for rule in short.rules] == ["below_minimum:visits"]
    assert contradictions(short, SHOWN) == []


def test_a_meaning_alone_and_no_file_at_all_are_enough() -> None:
    meant = filled(contract("description: {purpose: Visits of pages.}"), SHOWN, KEYS)
    none = filled(empty("visits", Path("visits.yaml")), SHOWN, KEYS)

    assert meant.columns == none.columns and len(none.columns) == len(SHOWN)
    assert (meant.keys, meant.rules) == (KEYS, ())


def test_keys_that_it_says_are_the_keys() -> None:
    said = filled(properties("{name: visits, primaryKey: true}"), SHOWN, KEYS)

    assert said.keys == ("visits",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{name: pages, required: true}", "it promises pages, which is not a column"),
        ("{name: visits, logicalType: integer, physicalType: int}", "visits is bigint, not int"),
        ("{name: page, logicalTypeOptions: {minimum: 1}}", "of page is for a number, and it is string"),
        ("{name: visits, logicalTypeOptions: {minLength: 1}}", "of visits is for a string, and it is bigint"),
        ("{name: visits, enum: [{value: a}]}", "of visits is for a string, and it is bigint"),
        ("{name: tags, logicalTypeOptions: {maximum: 3}}", "is for a number, and it is array<string>"),
    ],
)
def test_what_the_definition_contradicts_is_found(text: str, why: str) -> None:
    (found,) = contradictions(filled(properties(text), SHOWN, KEYS), SHOWN)

    assert why in found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("schema: [{properties: [{name: a}, {name: A}]}]", "schema[0].properties[1].name"),
        ("schema: [{properties: [{name: a, quality: [{type: sql, query: x, mustBe: 1}]}]}]", "schema[0]"),
        ("name: other", "name"),
        ("schema: [{properties: [{name: a, physicalType: string}]}]", "schema[0].properties[0].logicalType"),
        ("schema: [{properties: [{}]}]", "schema[0].properties[0]"),
    ],
)
def test_what_is_wrong_by_itself_is_refused_with_its_place_in_the_file(text: str, path: str) -> None:
    with pytest.raises(ContractError) as refused:
        contract(text)

    assert refused.value.path.startswith(path)


@pytest.mark.parametrize("document", [None, [], "visits", 7])
def test_a_file_without_a_map_is_refused(document: Any) -> None:
    with pytest.raises(ContractError):
        parse_contract(document, name="visits", file="visits.yaml")


def test_a_topic_that_has_lost_its_properties_does_not_pass_for_a_table() -> None:
    with pytest.raises(ContractError) as refused:
        contract("schema: [{name: visits, physicalType: topic, properties: [{name: page}]}]")

    assert refused.value.path == "customProperties" and refused.value.remedy
