"""Which columns a view is made of, by its definition alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.project import EXAMPLES, OURS, TABLES, example_of
from twinlake.config.project import Project
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.steps import Explode
from twinlake.kinds.windows import Tumbling
from twinlake.lineage.columns import Made, Source, made_of
from twinlake.topics.topic import load_topic

PROJECTS: Mapping[str, tuple[Project, tuple[Kind, ...]]] = {
    "": (OURS, tuple(TABLES)),
    **{name: (example_of(name), tables) for name, tables in EXAMPLES.items()},
}
EVENT = {"orders": ["region", "amount", "at", "status", "lines"]}
TABLE = Aggregate(
    name="t", inputs=("orders",), explode=Explode(name="line", array="filter(lines, one -> one.sold)"),
    where="status <> 'open' AND line.item IS NOT NULL", keys=("k",), window=Tumbling(on="t", size="1 hour"),
    columns={"k": "upper(`region`)", "t": "at", "x": "amount * line.price", "unused": "status"},
    measures={"total": Sum("x"), "last": MEASURES["arg_max"](of="x", by="t")},
)  # fmt: skip


def shown(made: Made) -> dict[str, list[str]]:
    return {name: [f"{one.owner}.{one.column}" for one in sources] for name, sources in made.columns.items()}


def of_query(sql: str, *columns: str) -> Made:
    whole: Any = {"columns": columns, "keys": columns[:1], "by": columns[:1]}
    table = Derived(name="d", reads=("sales", "regions"), sql=sql, **whole)
    return made_of(table, {"sales": ["region", "total"], "regions": ["region", "boss"]})


def test_columns_of_a_table_go_through_its_steps() -> None:
    made = made_of(TABLE, EVENT)

    time = ["orders.at"]
    assert shown(made) == {
        "k": ["orders.region"], "window_start": time, "window_end": time, "final": time,
        "total": ["orders.amount", "orders.lines"], "last": ["orders.amount", "orders.lines", "orders.at"],
    }  # fmt: skip
    assert set(made.rows) == {Source("orders", name) for name in ("lines", "status", "region", "at")}


def test_what_is_not_understood_is_made_of_what_stands_in_it() -> None:
    made = made_of(replace(TABLE, columns={**TABLE.columns, "x": "amount region ("}), EVENT)

    assert shown(made)["total"] == ["orders.region", "orders.amount"]


def test_columns_of_a_query_go_through_what_it_names_itself() -> None:
    made = of_query(
        "WITH best AS (SELECT region, max(total) AS most FROM sales WHERE total > 0 GROUP BY region)"
        " SELECT best.region, 2 * most AS twice, r.boss, count(*) OVER () AS n"
        " FROM best JOIN regions r ON r.region = best.region",
        "region", "twice", "boss", "n",
    )  # fmt: skip

    names = {"region": ["sales.region"], "twice": ["sales.total"], "boss": ["regions.boss"], "n": []}
    assert shown(made) == names
    assert {Source("sales", "total"), Source("regions", "region")} <= set(made.rows)


def test_names_keep_their_capitals_and_joins_by_using_count() -> None:
    whole: Any = {"columns": ("orderId", "n"), "keys": ("orderId",), "by": ("orderId",)}
    sql = "SELECT DISTINCT orderid AS orderId, Boss AS n FROM orders JOIN regions USING (REGION)"
    table = Derived(name="d", reads=("Orders", "regions"), sql=sql, **whole)

    made = made_of(table, {"Orders": ["orderId", "region"], "regions": ["region", "boss"]})

    assert shown(made) == {"orderId": ["Orders.orderId"], "n": ["regions.boss"]}
    deciding = {Source("Orders", "region"), Source("regions", "region"), Source("Orders", "orderId")}
    assert deciding <= set(made.rows)


def test_a_query_that_is_not_understood_is_made_of_all_that_stands_in_it() -> None:
    made = of_query("SELEKT region, total FROM sales", "region", "total")

    assert Source("sales", "total") in made.columns["region"] == made.rows
    assert {Source("sales", "region"), Source("regions", "region")} <= set(made.rows)
    assert Source("regions", "boss") not in made.rows


def test_a_kind_that_nobody_knows_is_made_of_all_that_it_reads() -> None:
    class Own(Aggregate):
        kind = "own"

    known = {one: getattr(TABLE, one) for one in ("name", "inputs", "columns", "keys", "measures")}

    made = made_of(Own(**known), EVENT)

    assert set(made.columns["k"]) == {Source("orders", name) for name in EVENT["orders"]}


@pytest.mark.parametrize("name", PROJECTS)
def test_every_column_of_every_example_is_made_of_columns_that_there_are(name: str) -> None:
    project, tables = PROJECTS[name]
    outputs = {table.name: table.output for table in tables}
    for table in tables:
        topics = {topic: load_topic(topic, project).columns for topic in table.inputs}
        inputs = {topic: [column for column, _ in columns] for topic, columns in topics.items()}
        inputs |= {read: list(outputs[read]) for read in table.reads}

        made = made_of(table, inputs)

        assert list(made.columns) == list(table.output)
        assert all(one.column in inputs[one.owner] for sources in made.columns.values() for one in sources)
        counts = {column for column, sources in made.columns.items() if not sources}
        assert counts <= set(getattr(table, "measures", table.output)), (table.name, counts)
        assert all(made.columns[key] for key in table.view_keys if key in made.columns)
