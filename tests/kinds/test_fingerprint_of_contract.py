"""Which fields of a contract a table's rows depend on: every field is listed, a new one has to be."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import OURS, PROJECT
from twinlake.definitions.fingerprint import fingerprint
from twinlake.kinds.events import Events
from twinlake.topics.contract import Column, Contract, Rule
from twinlake.topics.topic import Topic, load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = load_topic("orders", OURS)
KEYED = replace(ORDERS.contract, key_format="json", null_values="delete", columns=tuple(
    replace(column, key=column.name == "order_id") for column in ORDERS.contract.columns
))  # fmt: skip
TABLE = Events(name="t", inputs=("orders",), columns={"region": "region", "amount": "amount"})
FIRST, *OTHERS = KEYED.columns

COUNT: dict[str, Any] = {
    "columns": (*KEYED.columns, Column(name="more", type="string")),
    "event_time": "other_time",
    "late_after": timedelta(hours=4),
    "format": "json",
    "null_values": "ignore",
    "key_format": "string",
    "change_data": "mysql",
}
DO_NOT: dict[str, Any] = {
    "name": "others",
    "version": "9.9.9",
    "file": "elsewhere.yaml",
    "rules": (),
    "discard_after": timedelta(days=30),
    "future_tolerance": timedelta(hours=1),
    "unique": "order_id",
    "unique_within": timedelta(hours=2),
    "unreadable_records": "stop",
    "retention": timedelta(days=400),
}
COLUMN_COUNTS: dict[str, Any] = {"name": "renamed", "type": "bigint", "key": True}
COLUMN_DOES_NOT: dict[str, Any] = {"required": False}


def of(spark: SparkSession, contract: Contract) -> str:
    topic: Topic = replace(ORDERS, contract=contract)
    return fingerprint(TABLE, {ORDERS.name: topic}, spark)


@pytest.fixture(scope="module")
def base(spark: SparkSession) -> str:
    return of(spark, KEYED)


def test_every_field_of_a_contract_is_listed() -> None:
    assert sorted(one.name for one in fields(Contract)) == sorted([*COUNT, *DO_NOT])
    assert sorted(one.name for one in fields(Column)) == sorted([*COLUMN_COUNTS, *COLUMN_DOES_NOT])
    assert [one.name for one in fields(Rule)] == ["column", "code", "value"]  # none of them counts
    assert all(getattr(KEYED, name) != value for name, value in {**COUNT, **DO_NOT}.items())
    assert all(getattr(FIRST, name) != value for name, value in {**COLUMN_COUNTS, **COLUMN_DOES_NOT}.items())


def test_what_rows_depend_on_counts(spark: SparkSession, base: str) -> None:
    changed = [replace(KEYED, **{name: value}) for name, value in COUNT.items()]
    changed += [
        replace(KEYED, columns=(replace(FIRST, **{name: value}), *OTHERS))
        for name, value in COLUMN_COUNTS.items()
    ]

    assert len({base, *(of(spark, one) for one in changed)}) == len(changed) + 1


def test_what_decides_verdicts_or_is_for_people_does_not_count(spark: SparkSession, base: str) -> None:
    same = [replace(KEYED, **{name: value}) for name, value in DO_NOT.items()]
    same += [
        replace(KEYED, columns=(replace(FIRST, **{name: value}), *OTHERS))
        for name, value in COLUMN_DOES_NOT.items()
    ]
    same.append(replace(KEYED, columns=KEYED.columns[::-1]))

    assert {of(spark, one) for one in same} == {base}


def test_which_columns_are_the_key_counts_only_where_the_key_is_shown(spark: SparkSession) -> None:
    hidden = replace(KEYED, key_format=None, null_values="invalid")
    other = replace(hidden, columns=(replace(FIRST, key=True), *OTHERS))

    assert of(spark, hidden) == of(spark, other)


def test_another_topic_of_the_same_form_is_another_table(spark: SparkSession, base: str) -> None:
    other = replace(TABLE, inputs=("refunds",))

    assert fingerprint(other, {"refunds": replace(ORDERS, name="refunds", contract=KEYED)}, spark) != base


def test_the_docs_say_which_fields_count() -> None:
    told = (PROJECT / "docs" / "releases.md").read_text()
    words = (
        "columns and their types", "`eventTime`", "`lateAfter`", "`format`", "`keyFormat`", "`nullValues`",
        "`changeData`",
    )  # fmt: skip

    assert [word for word in words if word not in told] == []
