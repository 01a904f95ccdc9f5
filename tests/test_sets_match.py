"""A topic has schemas and a contract, a table a definition and a contract; the sets match."""

from __future__ import annotations

import pytest

from tests.project import OURS, PROJECT, TABLES
from twinlake.kinds.kind import Kind
from twinlake.topics.contract_file import load_contract
from twinlake.topics.schema import FILE_NAME
from twinlake.topics.topic import load_topic, topic_names

NAMES = {table.name for table in TABLES}


def test_every_contract_is_of_a_topic_or_a_table_and_each_has_one() -> None:
    contracts = {path.stem for path in (PROJECT / "contracts").iterdir()}

    assert contracts == NAMES | set(topic_names(OURS))


def test_every_schema_file_is_named_after_its_topic() -> None:
    assert [path.name for path in (PROJECT / "schemas").iterdir() if not FILE_NAME.fullmatch(path.name)] == []


def test_every_definition_file_is_listed() -> None:
    assert {path.stem for path in (PROJECT / "jobs" / "tables").glob("*.py")} - {"__init__"} == NAMES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_reads_topics_and_is_written_in_the_file_of_its_name(table: Kind) -> None:
    assert table.inputs and set(table.inputs) <= set(topic_names(OURS))
    assert table.place is not None and table.place.file.endswith(f"/jobs/tables/{table.name}.py")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_s_contract_promises_its_columns_and_keys(table: Kind) -> None:
    contract = load_contract(PROJECT / "contracts" / f"{table.name}.yaml")

    if not contract.is_topic:
        assert [column.name for column in contract.columns] == list(table.output)
        assert contract.keys == table.view_keys


@pytest.mark.parametrize("name", topic_names(OURS))
def test_a_topic_s_contract_and_schemas_agree(name: str) -> None:
    assert load_topic(name, OURS).newest.number == len(load_topic(name, OURS).schemas)
