"""What Spark says of a definition before any row is read: its problems, its columns, its view."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.definitions.test_without_spark import UNITED, united
from tests.project import OURS, TABLES
from twinlake.base.errors import DefinitionError
from twinlake.definitions.fingerprint import fingerprint
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.analysis import columns, empty_rows, empty_view, problems, warnings
from twinlake.kinds.definition import Definition
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.expression import Expression, Stage
from twinlake.kinds.history import History
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Min
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.steps import Explode
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.windows import Tumbling
from twinlake.topics import record_id
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDERS = load_topic("orders", OURS)
TOPICS = {ORDERS.name: ORDERS}
TABLE = Aggregate(name="t", inputs=("orders",), columns={"k": "region"}, keys=("k",), measures={"n": Count()})
NEWEST = Latest(
    name="t", inputs=("orders",), columns={"k": "region", "at": "ordered_at", "m": "map(region, 1)"},
    keys=("k",), order=("at",), values=("at",),
)  # fmt: skip
VERSIONS = History(
    name="t", inputs=("orders",), keys=("k",), order=("at",), values=("day",),
    columns={**NEWEST.columns, "day": "DATE '2026-01-31'"},
)  # fmt: skip
PACES = Trailing(
    name="t", inputs=("orders",), keys=("k",), on="at",
    columns={"k": "region", "at": "ordered_at", "day": "DATE '2026-01-31'"},
    last={"1 hour": {"earlier": Count()}},
)  # fmt: skip
DELETED = replace(
    NEWEST, columns={"k": "region", "at": "ordered_at", "gone": "_tombstone"}, delete_when="gone"
)


def _why(table: Kind, spark: SparkSession) -> list[str]:
    return [problem.why_text for problem in problems(table, TOPICS, spark)]


@pytest.mark.parametrize(
    ("changes", "warned"),
    [
        ({}, True),
        ({"columns": {**DELETED.columns, "at": "coalesce(ordered_at, _timestamp)"}}, False),
        ({"order": ()}, False),
        ({"order": ("ts", "at"), "columns": {**DELETED.columns, "ts": "_timestamp"}}, False),
        ({"where": "NOT _tombstone"}, False),
        ({"delete_when": "at > current_date()"}, False),
    ],
)
def test_an_order_by_which_no_tombstone_wins_is_warned_of(
    spark: SparkSession, changes: dict[str, Any], warned: bool
) -> None:
    deletes = replace(ORDERS.contract, key_format="string", null_values="delete")
    topics = {"orders": replace(ORDERS, contract=deletes)}

    found = [warning.why_text for warning in warnings(replace(DELETED, **changes), topics, spark)]

    says = "a tombstone deletes no key that has a row: at"
    assert [why.startswith(says) for why in found] == [True] * warned
    columns = {"k": "region", "at": "ordered_at"}
    assert [*warnings(replace(NEWEST, columns=columns, delete_when="at IS NULL"), TOPICS, spark)] == []


@pytest.mark.parametrize(
    ("changes", "warned"),
    [({}, True), ({"columns": {**DELETED.columns, "at": "coalesce(ordered_at, _timestamp)"}}, False),
     ({"order": ()}, False), ({"where": "NOT _tombstone"}, False)],
)  # fmt: skip
def test_a_time_that_no_tombstone_has_is_warned_of_in_a_history(
    spark: SparkSession, changes: dict[str, Any], warned: bool
) -> None:
    deletes = replace(ORDERS.contract, key_format="string", null_values="delete")
    topics = {"orders": replace(ORDERS, contract=deletes)}
    table = replace(VERSIONS, columns=DELETED.columns, delete_when="gone", values=("gone",))

    found = [warning.why_text for warning in warnings(replace(table, **changes), topics, spark)]

    assert [why.startswith("a tombstone ends no version: at") for why in found] == [True] * warned


@pytest.mark.parametrize(("table", "sql"), UNITED.values(), ids=UNITED)
def test_a_union_of_columns_of_two_types_is_refused(spark: SparkSession, table: Any, sql: str) -> None:
    """Their states may have the same types, or other columns."""
    topics = {name: replace(ORDERS, name=name) for name in ("orders", "returns")}
    *tables, union = ordered(united(table, sql))

    (error,) = problems(union, topics, spark, {one.name: one for one in tables})

    assert error.why_text.startswith("column x is decimal(12,2) in one and ")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_listed_table_is_sound(spark: SparkSession, table: Kind) -> None:
    assert _why(table, spark) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"where": "amount"}, "not a condition"),
        ({"columns": {"k": "region", "x": "status"}, "measures": {"n": Sum("x")}}, "string is not a number"),
        ({"columns": {"k": "region", "x": "status"}, "measures": {"n": Avg("x")}}, "string is not a number"),
        (
            {"columns": {"k": "region", "x": "ordered_at"}, "measures": {"n": CountDistinct("x")}},
            "cannot take",
        ),
        (
            {"columns": {"k": "region", "x": "map(region, 1)"}, "measures": {"n": Min("x")}},
            "has no order",
        ),
        ({"columns": {"k": "map(region, 1)"}}, "cannot be a key"),
        ({"window": Tumbling(on="k", size="1 minute")}, "not timestamp"),
        ({"explode": Explode(name="part", array="region")}, "is not an array"),
        ({"explode": Explode(name="region", array="split(region, ' ')")}, "already"),
        ({"explode": Explode(name="STATUS", array="split(region, ' ')")}, "already"),
        ({"explode": Explode(name="part", array="shuffle(array(1))")}, "not deterministic"),
    ],
)
def test_what_has_the_wrong_type_is_refused(spark: SparkSession, changes: dict, expected: str) -> None:
    found = _why(replace(TABLE, **changes), spark)

    assert len(found) == 1 and expected in found[0], found


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"order": ("at", "k")}, []),
        ({"order": ()}, []),
        ({"order": ("k",)}, ["versions are on k, which is string, not timestamp"]),
        ({"order": ("day",)}, ["versions are on day, which is date, not timestamp"]),
        ({"order": ("at", "m")}, ["column m: map<string,int> cannot be a key or order"]),
        ({"keys": ("m",)}, ["column m: map<string,int> cannot be a key or order"]),
        ({"values": ("m",)}, ["column m: map<string,int> cannot be compared"]),
        ({"delete_when": "at"}, ["delete_when: it is timestamp, not a condition"]),
        ({"delete_when": "rand() > 0.5"}, ["delete_when: "]),
        ({"delete_when": "status = 'x'"}, ["delete_when: [UNRESOLVED_COLUMN"]),
    ],
)
def test_what_a_history_cannot_hold_is_refused(
    spark: SparkSession, changes: dict, expected: list[str]
) -> None:
    found = _why(replace(VERSIONS, **changes), spark)

    assert [why[: len(words)] for why, words in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"keys": ("day",), "on": "k"}, ["windows are on k, which is string, not timestamp"]),
        ({"on": "day"}, ["windows are on day, which is date, not timestamp"]),
        ({"last": {"1 hour": {"sum": Sum("k")}}}, ["measure sum (sum of k): string is not a number"]),
        ({"columns": NEWEST.columns | PACES.columns}, ["column m: map<string,int> cannot be compared"]),
        ({"columns": {**PACES.columns, "n": "NULL"}}, ["column n: it has no type; cast it"]),
        ({"where": "at IS NULL"}, ["where: [UNRESOLVED_COLUMN"]),
    ],
)
def test_what_a_trailing_cannot_hold_is_refused(
    spark: SparkSession, changes: dict, expected: list[str]
) -> None:
    found = _why(replace(PACES, **changes), spark)

    assert [why[: len(words)] for why, words in zip(found, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"keys": ("m",)}, ["column m: map<string,int> cannot be a key or order"]),
        ({"order": ("m",)}, ["column m: map<string,int> cannot be a key or order"]),
        ({"values": ("at", "m")}, ["column m: map<string,int> cannot be compared"]),
        ({"delete_when": "at"}, ["delete_when: it is timestamp, not a condition"]),
        ({"where": "at IS NULL"}, ["where: [UNRESOLVED_COLUMN"]),
    ],
)
def test_what_a_latest_cannot_hold_is_refused(
    spark: SparkSession, changes: dict, expected: list[str]
) -> None:
    found = _why(replace(NEWEST, **changes), spark)

    assert [why[: len(words)] for why, words in zip(found, expected, strict=True)] == expected


def test_all_bad_expressions_of_a_step_are_named_at_once(spark: SparkSession) -> None:
    found = _why(replace(TABLE, where="rand() > 0", columns={"k": "region", "x": "no_such"}), spark)

    assert [why.split(":")[0] for why in found] == ["where", "column x"]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_view_has_the_columns_that_its_definition_names(spark: SparkSession, table: Kind) -> None:
    assert tuple(name for name, _ in columns(table, TOPICS, spark)) == table.output


def test_a_view_keeps_the_types_of_what_it_shows(spark: SparkSession) -> None:
    table = replace(
        TABLE, columns={"k": "region", "at": "ordered_at", "x": "amount", "y": "CAST(amount AS DOUBLE)"},
        window=Tumbling(on="at", size="1 minute"),
        measures={"n": Count(), "sum": Sum("x"), "mean": Avg("x"), "ratio": Avg("y"), "least": Min("x")},
    )  # fmt: skip

    assert columns(table, TOPICS, spark) == [
        ("k", "string"), ("window_start", "timestamp"), ("window_end", "timestamp"), ("n", "bigint"),
        ("sum", "decimal(38,2)"), ("mean", "decimal(38,6)"), ("ratio", "double"), ("least", "decimal(12,2)"),
        ("final", "boolean"),
    ]  # fmt: skip


def test_rows_and_view_of_nothing_are_empty(spark: SparkSession) -> None:
    rows = empty_rows(TABLE, TOPICS, spark)

    assert {name: (tuple(one.dtypes), one.collect()) for name, one in rows.items()} == {
        "orders": (ORDERS.columns, [])
    }
    assert empty_view(TABLE, TOPICS, spark).collect() == []


@dataclass(frozen=True, kw_only=True)
class Both(Definition):
    """A view kind over any number of topics, of which the room's own list has none yet."""

    kind = "both"
    column: str

    view_keys = by = (*record_id.KEY, "topic")
    output = timeless = ("topic", "shown", *record_id.KEY)
    implied = record_id.KEY

    def stages(self, rows: Mapping[str, DataFrame]) -> Iterator[Stage]:
        expression = Expression(what="column", sql=self.column)
        return (Stage(rows=rows[name], expressions=(expression,)) for name in self.inputs)

    def problems(self, rows: Mapping[str, DataFrame]) -> Iterator[DefinitionError]:
        return iter(())

    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        shown = ", ".join(record_id.KEY)
        return "\nUNION ALL\n".join(
            f"SELECT '{name}' AS topic, {self.column} AS shown, {shown} FROM {relations[name]}"
            for name in self.inputs
        )


REFUNDS = replace(ORDERS, name="refunds", contract=replace(ORDERS.contract, name="refunds"))
SEVERAL = {"orders": ORDERS, "refunds": REFUNDS}
BOTH = Both(name="t", inputs=("orders", "refunds"), column="upper(region)")


def test_a_view_kind_may_read_several_topics(spark: SparkSession) -> None:
    assert list(problems(BOTH, SEVERAL, spark)) == []
    assert [name for name, _ in columns(BOTH, SEVERAL, spark)] == list(BOTH.output)


def test_the_first_bad_stage_of_a_view_kind_ends_the_search(spark: SparkSession) -> None:
    found = list(problems(replace(BOTH, column="rand()"), SEVERAL, spark))

    assert ["not deterministic" in problem.why_text for problem in found] == [True]


def test_each_of_several_topics_counts_for_the_fingerprint(spark: SparkSession) -> None:
    late = replace(REFUNDS, contract=replace(REFUNDS.contract, late_after=None))
    one = replace(BOTH, inputs=("orders",))
    found: list[tuple[Any, Any]] = [
        (BOTH, SEVERAL), (BOTH, {**SEVERAL, "refunds": late}), (one, SEVERAL),
        (replace(BOTH, column="lower(region)"), SEVERAL),
    ]  # fmt: skip

    assert len({fingerprint(table, topics, spark) for table, topics in found}) == len(found)


class Broken(Both):
    def view(self, relations: Mapping[str, str], view_clock: ViewClock, scaled: tuple[str, ...] = ()) -> str:
        return f"SELECT no_such_column FROM {relations['orders']}"


def test_a_view_that_does_not_compile_is_a_problem_of_the_definition(spark: SparkSession) -> None:
    table = Broken(name="t", inputs=("orders",), column="region")

    found = list(problems(table, SEVERAL, spark))

    assert [problem.why_text.split(":")[0] for problem in found] == ["it does not compile"]
    assert "no_such_column" in found[0].why_text and found[0].line == table.place.line  # type: ignore[union-attr]
