"""What is said of a definition without Spark: names nobody has, types, columns, and what is left to Spark."""

from __future__ import annotations

import inspect
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tests.kinds.test_derived import BUYERS, NEWEST, RIGHT, SPENT
from tests.kinds.test_derived import WRONG as WRONG_QUERIES
from tests.kinds.test_row_local import ALLOWED, REFUSED
from tests.project import OURS, PROJECT, TABLES
from twinlake.definitions.without_spark import Typed, Typist
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.dependencies import ordered
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.spread import Variance
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.steps import Explode
from twinlake.kinds.union import Union
from twinlake.kinds.windows import Tumbling
from twinlake.topics.topic import load_topic

ORDERS = load_topic("orders", OURS)
SALES = next(table for table in TABLES if table.name == "sales_per_region")
TABLE = Aggregate(name="t", inputs=("orders",), columns={"k": "region"}, keys=("k",), measures={"n": Count()})


def typed(*tables: Kind) -> Typed:
    """What is said of the last of them."""
    topics = {name: replace(ORDERS, name=name) for name in ("orders", "returns")}
    with closing(Typist(topics=topics)) as typist:
        found = [typist.typed(table) for table in ordered(tables)]
    return found[-1]


def of_derived(sql: str, *columns: str) -> Typed:
    whole: Any = {"columns": columns, "keys": columns[:1], "by": columns[:1]}
    return typed(SALES, Derived(name="d", reads=("sales_per_region",), sql=sql, **whole))


def test_a_project_is_typed_and_no_java_and_no_pyspark_is_there() -> None:
    code = (
        "import os, sys; sys.argv[1:] = ['check'];"
        "import subprocess; subprocess.Popen = None;"  # nothing can be started
        "from twinlake.__main__ import main; main();"
        "assert not {'pyspark', 'py4j'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)

    *_, found, left, following = ["", *done.stderr.splitlines()]
    if not left.startswith("only `twinlake check --full` can say "):
        found = left
    assert (done.returncode, found) == (0, "all is well"), done.stderr
    assert following == "next: twinlake test, then twinlake plan"


def test_the_columns_of_a_view_have_their_types() -> None:
    found = typed(SALES)

    assert found.columns is not None and (found.wrong, found.left) == ((), ())
    assert dict(found.columns)["sales"] == "decimal(38,2)" and list(dict(found.columns)) == list(SALES.output)


@pytest.mark.parametrize("sql", [*REFUSED, "region;", "region; ", "region -- c\n;"])
def test_what_spark_refuses_is_never_whole(sql: str) -> None:
    found = typed(replace(TABLE, columns={"k": sql}))

    assert found.columns is None and (found.wrong or found.left)


@pytest.mark.parametrize("sql", WRONG_QUERIES)
def test_a_query_that_spark_refuses_is_never_whole(sql: str) -> None:
    found = typed(SPENT, NEWEST, replace(BUYERS, sql=sql, broadcast=()))

    assert found.columns is None and (found.wrong or found.left)


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("TABLE sales_per_region", "is not listed as a query"),
        ("SELECT /*+ BROADCAST(sales_per_region) */ region AS c FROM sales_per_region", ""),
        ("SELECT id AS c FROM range(3)", "range(3) (it is no table)"),
        ("SELECT region AS c FROM sales_per_region GROUP BY count(*)", "cannot contain aggregates!)"),
    ],
)
def test_what_only_spark_knows_is_left_to_it_and_not_called_wrong(sql: str, left: str) -> None:
    found = of_derived(sql, "c")

    assert found.wrong == () and left in "".join(one.why_text for one in found.left)
    assert bool(found.left) == bool(left)


@pytest.mark.parametrize("sql", RIGHT)
def test_nothing_is_wrong_with_a_query_that_spark_takes(sql: str) -> None:
    assert typed(SPENT, NEWEST, replace(BUYERS, sql=sql, broadcast=())).wrong == ()


NO_SQL = {
    "amount +* 2": "it is not SQL: `*` follows `+` at `amount +*`",
    "amount = = 2": "it is not SQL: `=` follows `=`",
    "upper(region": "it is not SQL: a `(` is not closed",
    "region)": "it is not SQL: nothing opens the `)` at `region)`",
    "amount +": "it is not SQL: nothing follows the last `+`",
    "= 2": "it is not SQL: nothing comes before the first `=`",
    "region,": "it is not SQL: nothing follows the last `,`",
    "'open": "it is not SQL: a quote or a comment is not closed",
}


@pytest.mark.parametrize("sql", NO_SQL)
def test_what_is_no_sql_is_wrong(sql: str) -> None:
    (found,) = typed(replace(TABLE, columns={"k": sql})).wrong

    assert NO_SQL[sql] in found.why_text


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELEKT region FROM sales_per_region", "it is not SQL: it begins with `SELEKT`"),
        ("SELECT region AS c FROM c", "it reads c, which is not one of its reads"),
        ("SELECT region AS d FROM sales_per_region", "its columns are d, not c"),
        ("WITH sales AS (SELECT region AS c FROM sales_per_region) SELECT c FROM sale", "it reads sale"),
    ],
)
def test_a_query_that_is_none_or_reads_or_shows_other_names_is_wrong(sql: str, why: str) -> None:
    assert any(why in one.why_text for one in of_derived(sql, "c").wrong)


def test_an_element_has_the_type_of_its_array() -> None:
    table = replace(TABLE, explode=Explode(name="e", array="split(region, 'a')"), columns={"k": "e"})

    assert dict(typed(table).columns or ())["k"] == "string"


def test_an_array_that_nobody_reads_is_left_to_spark_once() -> None:
    found = typed(replace(TABLE, explode=Explode(name="e", array="array(1);")))

    assert found.columns is None and found.wrong == () and len(found.left) == 1


TAKEN = [
    "timestampadd(HOUR, 1, ordered_at)", "timestampdiff(MINUTE, ordered_at, ordered_at)",
    "dateadd(DAY, 1, ordered_at)", "extract(HOUR FROM ordered_at)", "trim(BOTH FROM region)",
    "aggregate(array(1, 2), 0, (sum, one) -> sum + one)", "region COLLATE UTF8_BINARY",
    "filter(array(named_struct('a', 1)), one -> one.a > amount)",
    "overlay(region PLACING 'x' FROM 1)", "amount BETWEEN 1 AND 2", "region LIKE ANY ('a', 'b')",
]  # fmt: skip
"""Names in these are no columns, or are of Spark's grammar; `test_as_spark.py` asks Spark."""


@pytest.mark.parametrize("sql", [*ALLOWED, *TAKEN])
def test_nothing_that_spark_takes_is_wrong(sql: str) -> None:
    assert typed(replace(TABLE, columns={"k": sql})).wrong == ()


def test_a_misspelt_name_is_wrong_at_its_place_with_the_near_one() -> None:
    table = Aggregate(
        name="t", inputs=("orders",), keys=("k",), measures={"n": Count()},
        columns={
            "k": "region",
            "a": "regoin",
            "b": "upper(concat(region, '-', statuss))",
            "c": "uper(region)",
            "d": "1 + sum(amount)",
            "e": "now()",
        },
    )  # fmt: skip

    found = [
        (_line(one.line)[(one.column or 0) - 1 :].split('"')[0], one.why_text) for one in typed(table).wrong
    ]

    assert found == [
        ("regoin", "column a: there is no column regoin; did you mean region?"),
        ("statuss))", "column b: there is no column statuss; did you mean status?"),
        ("uper(region)", "column c: uper() is not a built-in function of Spark; did you mean upper?"),
        ("sum(amount)", "column d: sum() is an aggregate, which may not be in a row-local step: it must "
         "depend on one row only"),
        ("now()", "column e: it is not deterministic: now() depends on when or where it runs"),
    ]  # fmt: skip


def _line(number: int) -> str:
    return inspect.getsource(sys.modules[__name__]).splitlines()[number - 1]


@pytest.mark.parametrize(
    ("table", "why"),
    [
        (replace(TABLE, where="amount"), "where: it is decimal(12,2), not a condition"),
        (replace(TABLE, explode=Explode(name="e", array="region")), "explode: string is not an array"),
        (replace(TABLE, columns={"k": "NULL"}), "it has no type; cast it"),
        (
            replace(TABLE, columns={"k": "region", "a": "status"}, window=Tumbling(on="a", size="1 hour")),
            "which is string, not timestamp",
        ),
        (replace(TABLE, measures={"n": Sum("k")}), "measure n (sum of k)"),
    ],
)
def test_a_type_that_does_not_fit_is_wrong(table: Kind, why: str) -> None:
    (error,) = typed(table).wrong

    assert why in error.why_text


COLUMNS = {"k": "region", "v": "status", "x": "amount"}
SPREAD = replace(TABLE, columns=COLUMNS, measures={"s": Variance("x")})
FIRST = Latest(name="t", inputs=("orders",), columns=COLUMNS, keys=("k",), order=("x",), values=("v",))
UNITED: dict[str, tuple[Any, str]] = {
    "units of the last digit": (SPREAD, "CAST(amount AS DECIMAL(14,3))"),
    "whole numbers": (SPREAD, "CAST(amount AS INT)"),
    "doubles": (SPREAD, "CAST(amount AS DOUBLE)"),
    "items": (replace(SPREAD, measures={"s": CountDistinct("x", exact=True)}), "CAST(amount AS STRING)"),
    "order": (FIRST, "CAST(amount AS STRING)"),
}
"""A table, and the SQL of a column of another type by which its view looks the same."""


def united(table: Any, sql: str) -> tuple[Kind, Kind, Kind]:
    """Two of the table, of two topics, and their union."""
    one = replace(table, name="one")
    other = replace(table, name="other", inputs=("returns",), columns={**COLUMNS, "x": sql})
    return one, other, Union(name="both", of=("one", "other"))


@pytest.mark.parametrize(("table", "sql"), UNITED.values(), ids=UNITED)
def test_a_union_of_columns_of_two_types_is_wrong_where_its_view_does_not_show_it(
    table: Any, sql: str
) -> None:
    (error,) = typed(*united(table, sql)).wrong

    assert error.why_text.startswith("column x is decimal(12,2) in one and ")
    assert (error.table, error.remedy) == ("both", "cast it in one of them")
    assert typed(*united(table, "amount")).columns is not None


def test_what_the_witness_does_not_know_is_left_with_its_place_and_what_reads_it_too() -> None:
    base = replace(TABLE, columns={"k": "region", "v": "soundex(status)"}, measures={"n": Count("v")})
    reader = Derived(name="d", reads=("t",), columns=("k",), keys=("k",), by=("k",), sql="SELECT k FROM t")

    (left,) = typed(base).left
    assert "column v: soundex(status) (the function soundex is not listed)" in left.why_text
    assert [one.why_text for one in typed(base, reader).left] == ["it reads t, whose columns are not known"]


def test_a_query_is_typed_and_its_misspelt_names_are_wrong() -> None:
    right = of_derived("SELECT region, orders + 1 AS more FROM sales_per_region", "region", "more")
    assert right.columns == (("region", "string"), ("more", "bigint"))

    for sql, why in (
        ("SELECT region, odrers AS more FROM sales_per_region", "no column odrers; did you mean orders"),
        ("SELECT region, orders AS more FROM sales_per_regoin", "not one of its reads; did you mean"),
        ("SELECT region, smu(orders) AS more FROM sales_per_region GROUP BY region", "smu() is not a "),
    ):
        (error,) = of_derived(sql, "region", "more").wrong
        assert why in error.why_text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.region, count(*) AS n FROM sales_per_region AS s GROUP BY s.region",
        "WITH w AS (SELECT region AS r, orders AS o FROM sales_per_region)"
        " SELECT r AS region, sum(o) AS n FROM w GROUP BY r",
        "SELECT region, (SELECT max(o.orders) FROM sales_per_region AS o WHERE o.region = s.region) AS n"
        " FROM sales_per_region AS s",
        "SELECT region, n FROM sales_per_region LATERAL VIEW explode(array(1)) x AS n",
        "SELECT region, datediff(DAY, window_start, window_end) AS n FROM sales_per_region",
        "SELECT region, size(transform(array(orders), one -> one + 1)) AS n FROM sales_per_region",
        "SELECT region, col AS n FROM sales_per_region, LATERAL explode(array(1))",
        "SELECT region, pos AS n FROM sales_per_region LATERAL VIEW posexplode(array(1)) t",
        "SELECT region, window.start AS n FROM sales_per_region"
        " GROUP BY region, window(window_start, '1 day')",
        "SELECT region, grouping__id AS n FROM sales_per_region GROUP BY region WITH ROLLUP",
        "SELECT region, id AS n FROM sales_per_region CROSS JOIN range(2)",
        "SELECT region, col1 AS n FROM sales_per_region CROSS JOIN VALUES (1), (2)",
    ],
)
def test_a_name_that_a_query_gives_itself_is_not_wrong(sql: str) -> None:
    assert of_derived(sql, "region", "n").wrong == ()
