"""docs/contracts.md is made from the code, and has every key of a contract with what it means."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from twinlake.reference import contracts
from twinlake.topics.contract_file import UNENFORCED
from twinlake.topics.contract_keys import KEYS, PROMISES
from twinlake.topics.contract_schema import contract_schema
from twinlake.topics.promises import FREQUENCY, LATENCY, RETENTION
from twinlake.topics.schema_tree import Node, objects, root
from twinlake.topics.topic_properties import MEANINGS, TOPIC_PROPERTIES, WITHOUT

text = cache(contracts.text)


@cache
def tree() -> Node:
    return root(contract_schema())


def rows(title: str) -> dict[str, list[str]]:
    """The rows of a section's table, by their first cell."""
    section = f"\n{text()}".partition(f"\n{title}\n")[2].partition("\n#")[0]
    cells = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {one[0].removesuffix("\\*").strip("`"): one[1:] for one in cells}


def test_every_key_that_the_schema_admits_is_listed_with_what_it_means() -> None:
    read = rows("## What Twinlake reads")
    missing = []
    for path, node in objects(tree()):
        others = rows(f"### `{path}`" if path else "### The contract itself")
        for name in node.keys:
            row = read.get(f"{path}.{name}".removeprefix("."), others.get(name))
            if not contracts.is_read(path, name) and (row is None or not row[-1].strip(" -")):
                missing.append(f"{path}.{name}")

    assert missing == []
    assert read.keys() == KEYS.keys()


def test_no_key_of_the_schema_is_missing_but_those_that_are_refused() -> None:
    """By plain recursion, beside the tree of keys that the page is made of."""
    refused = {*UNENFORCED} | {name for name in contract_schema()["$defs"] if name.startswith("DataQuality")}
    page = "\n".join(line for line in text().splitlines() if line.startswith("| `"))

    missing = {name for name in named(contract_schema(), refused) if f"{name}`" not in page}

    assert missing == set()


def named(schema: Any, refused: set[str]) -> Iterator[str]:
    """The names of all properties, but within those that are refused, and the rules of a type."""
    if isinstance(schema, list):
        for one in schema:
            yield from named(one, refused)
    elif isinstance(schema, dict):
        below = schema.get("properties", {})
        for name, one in below.items():
            if name not in refused and isinstance(one, dict) and one.keys() & {"$ref", "type"}:
                yield name
        for name, one in schema.items():
            if name not in refused and name != "logicalTypeOptions":
                yield from named(one, refused)


def test_every_property_of_a_topic_is_listed_with_what_it_means() -> None:
    assert rows("## Properties of a topic").keys() == TOPIC_PROPERTIES.keys()
    assert MEANINGS.keys() == WITHOUT.keys() == TOPIC_PROPERTIES.keys()
    assert all(MEANINGS.values())


def test_an_editor_says_what_a_property_of_a_topic_means() -> None:
    items = contract_schema()["properties"]["customProperties"]["items"]["oneOf"]

    said = {one["properties"]["property"]["const"]: one["properties"]["value"] for one in items}

    assert {name: one["description"] for name, one in said.items()} == MEANINGS


def test_every_promise_of_time_is_listed() -> None:
    assert rows("## Promises of time").keys() == PROMISES.keys() == {LATENCY, FREQUENCY, RETENTION}


@pytest.mark.parametrize("path", KEYS)
def test_what_twinlake_reads_is_a_key_of_the_schema(path: str) -> None:
    assert tree().at(path).described


def test_what_is_refused_is_no_key() -> None:
    column = tree().at("schema[].properties[]").keys

    assert {"quality", "relationships", "encryptedName"} & column.keys() == set()
    assert {"required", "unique", "enum"} & tree().at("schema[].properties[].items").keys.keys() == set()


def test_what_a_topic_needs_is_marked() -> None:
    paths = ("version", "description.purpose", "schema[].properties")

    needed = {path: tree().at(path).needed for path in paths}

    assert needed == {"version": "topics", "description.purpose": "-", "schema[].properties": "topics"}
    assert tree().at("schema[].properties[].physicalType").needed == "topics"
    assert tree().at("slaProperties[].property").needed == "always"
