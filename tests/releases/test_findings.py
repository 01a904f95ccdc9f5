"""What `check --json` reports has its place: file, line and column, as parser, path or definition tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.project import PROJECT
from twinlake import Aggregate, Count
from twinlake.base.errors import ContractError, DefinitionError, TwinlakeError
from twinlake.releases import findings
from twinlake.topics.contract_file import load_contract
from twinlake.topics.schema import load_schema

CONTRACT = (PROJECT / "contracts" / "orders.yaml").read_text()
SCHEMA = """{"type": "record", "name": "orders",
\t"fields": [
\t\t{"name": "order_id", "type": "long"},
\t\t{"name": "amount", "type": "money"}]
}"""


def of_file(file: Path, text: str) -> dict[str, Any]:
    """The finding of a contract or schema with this text."""
    file.write_text(text)
    with pytest.raises(ContractError) as caught:
        load_schema(file) if file.suffix == ".avsc" else load_contract(file)
    return findings.to_json(caught.value)


def shown(text: str, line: int, column: int) -> str:
    """The rest of the line from there."""
    return text.splitlines(keepends=True)[line - 1][column - 1 :]


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("value: 3 hours", "value: soon", "value: soon"),
        ("physicalType: decimal(12,2)", "physicalType: money", "physicalType: money"),
        ("        physicalType: decimal(12,2)\n", "", "name: amount"),
        ("name: orders\nversion", "name: others\nversion", "name: others"),
        ("status: active", "status: [active", ":\n"),
        ("status: active", "version: 2.0.0", "version: 2.0.0"),
        ("apiVersion: v3.2.0\n", "", "kind: DataContract"),
    ],
    ids=[
        "a value",
        "a type",
        "what is missing",
        "at the top",
        "no YAML",
        "a key given twice",
        "a top key is missing",
    ],
)
def test_what_is_wrong_in_a_contract_is_found_there(tmp_path: Path, old: str, new: str, at: str) -> None:
    text = CONTRACT.replace(old, new, 1)

    found = of_file(tmp_path / "orders.yaml", text)

    assert found["file"] == str(tmp_path / "orders.yaml")
    assert shown(text, found["line"], found["column"]).startswith(at), found


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        ("x", "x", '"type": "money"'),
        ('"long"', '"long", "size": 8', '"size": 8'),
        ('"long"}', '"long"', "{"),
    ],
    ids=["a type", "an unknown key", "no JSON"],
)
def test_what_is_wrong_in_a_schema_is_found_there(tmp_path: Path, old: str, new: str, at: str) -> None:
    text = SCHEMA.replace(old, new, 1)

    found = of_file(tmp_path / "orders.v1.avsc", text)

    assert found["file"] == str(tmp_path / "orders.v1.avsc")
    assert shown(text, found["line"], found["column"]).startswith(at), found


def test_an_expression_is_found_at_its_text() -> None:
    table = Aggregate(
        name="sales", inputs=("orders",), keys=("region",),
        columns={"a": "'é'", "region": "upper(zone)"}, measures={"orders": Count()},
    )  # fmt: skip

    found = findings.to_json(table.error_at_text("upper(zone)", "there is no zone"))

    text = Path(__file__).read_text()
    assert found["file"] == __file__
    assert shown(text, found["line"], found["column"]).startswith('"upper(zone)"}')


def test_a_definition_is_found_where_it_begins() -> None:
    table = Aggregate(
        name="sales", inputs=("orders",), keys=("a",), columns={"a": "1"}, measures={"b": Count()}
    )

    found = findings.to_json(table.error("it is wrong"))

    text = Path(__file__).read_text()
    assert shown(text, found["line"], found["column"]).startswith("table = Aggregate(")


def test_a_file_that_is_missing_is_named_all_the_same(tmp_path: Path) -> None:
    found = findings.to_json(ContractError(tmp_path / "a.yaml", "", "table a has no contract", "write it"))

    assert found == {
        "error": "ContractError", "what": f"{tmp_path / 'a.yaml'}: (top): table a has no contract",
        "why": "table a has no contract", "remedy": "write it", "path": "",
        "file": str(tmp_path / "a.yaml"), "line": 1, "column": 1,
    }  # fmt: skip


def test_what_is_of_no_file_says_so() -> None:
    found = findings.to_json(TwinlakeError("the lake cannot be read", "no right", "ask"))

    assert (found["file"], found["line"], found["column"]) == (None, None, None)


def test_a_place_that_a_program_gets_is_made_of_numbers() -> None:
    found = json.loads(json.dumps(findings.to_json(DefinitionError("a", __file__, 3, "no", column=2))))

    assert (found["line"], found["column"], found["table"]) == (3, 2, "a")
