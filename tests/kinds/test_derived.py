"""Derived: what it may read and say, where it is refused, and what its fingerprint covers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.project import OURS
from twinlake.base.errors import DefinitionError
from twinlake.definitions.fingerprint import fingerprint
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import from_json
from twinlake.kinds.analysis import columns, empty_view, problems
from twinlake.kinds.dependencies import ordered, upstream_topics
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPICS = {"orders": load_topic("orders", OURS)}
SPENT = Aggregate(
    name="spent", inputs=("orders",), columns={"customer": "customer", "amount": "amount"},
    keys=("customer",), measures={"spent": Sum("amount"), "n": Count()},
)  # fmt: skip
NEWEST = Latest(
    name="newest", inputs=("orders",), keys=("customer",), order=("at",), values=("status", "at"),
    columns={"customer": "customer", "status": "status", "at": "ordered_at"},
)  # fmt: skip
BUYERS = Derived(
    name="buyers",
    reads=("spent", "newest"),
    columns=("customer", "spent", "status"),
    keys=("customer",),
    by=("customer",),
    sql="SELECT customer, spent, status FROM spent JOIN newest USING (customer)",
    broadcast=("newest",),
)
TOP = Derived(
    name="top", reads=("buyers",), columns=("place", "customer"), keys=("place",), by=(),
    sql="""
        WITH placed AS (
            SELECT row_number() OVER (ORDER BY spent DESC, customer) AS place, customer FROM buyers
        )
        SELECT place, customer FROM placed WHERE place <= 10 -- the first ones
    """,
)  # fmt: skip
TABLES: dict[str, Any] = {table.name: table for table in (SPENT, NEWEST, BUYERS, TOP)}


def told(spark: SparkSession, table: Kind, tables: Mapping[str, Kind] = TABLES) -> list[str]:
    return [problem.why_text for problem in problems(table, TOPICS, spark, tables)]


@pytest.mark.parametrize("table", [BUYERS, TOP], ids=lambda table: table.name)
def test_it_comes_back_from_json_and_is_sound(spark: SparkSession, table: Derived) -> None:
    stored = json.loads(json.dumps(table.to_json(), sort_keys=True))

    assert from_json(stored) == table and told(spark, table) == []


def test_a_hint_stands_at_joined_tables_and_in_no_text_or_comment() -> None:
    sql = """SELECT 'FROM newest', `FROM newest` -- JOIN newest
        FROM newest AS n /* JOIN newest */ join Newest USING (customer) WHERE newest.status = 'JOIN newest'"""
    whole = replace(BUYERS, sql=sql).view({"spent": "s", "newest": "n"}, ViewClock())

    hinted = "(SELECT /*+ BROADCAST({0}) */ * FROM {0}) AS"
    wanted = sql.replace("FROM newest AS n", f"FROM {hinted.format('newest')} n")
    wanted = wanted.replace("join Newest", f"join {hinted.format('Newest')} Newest")
    assert whole.endswith(f"FROM (\n{wanted}\n)")


def test_a_hint_stands_where_a_table_does_with_the_name_that_it_was_given() -> None:
    sql = """SELECT EXTRACT(YEAR FROM newest), r'\\', n.at IS DISTINCT FROM newest, TRIM(BOTH ' ' FROM newest)
        FROM spent JOIN newest n ON n.customer = spent.customer"""
    whole = replace(BUYERS, sql=sql).view({"spent": "s", "newest": "n"}, ViewClock())

    wanted = sql.replace("JOIN newest n", "JOIN (SELECT /*+ BROADCAST(newest) */ * FROM newest) n")
    assert whole.endswith(f"FROM (\n{wanted}\n)")


def test_its_columns_are_what_spark_makes_of_the_tables_below(spark: SparkSession) -> None:
    assert columns(BUYERS, TOPICS, spark, TABLES) == [
        ("customer", "string"), ("spent", "decimal(38,2)"), ("status", "string"),
    ]  # fmt: skip
    assert columns(TOP, TOPICS, spark, TABLES) == [("place", "int"), ("customer", "string")]
    assert upstream_topics(TOP, TABLES) == ("orders",)


def test_what_is_broadcast_is_copied_and_not_moved(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        joins = {
            bool(table.broadcast): "BroadcastHashJoin" in _plan(empty_of_rows(spark, table))
            for table in (BUYERS, replace(BUYERS, broadcast=()))
        }
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before or "10MB")

    assert joins == {True: True, False: False}


def empty_of_rows(spark: SparkSession, table: Derived) -> Any:
    """The view over relations that Spark does not know to be empty."""
    some = "CAST(id AS STRING) AS customer"
    relations = {
        "spent": f"(SELECT {some}, id AS spent FROM range(9))",
        "newest": f"(SELECT {some}, 'paid' AS status FROM range(9))",
    }
    return spark.sql(table.view(relations, ViewClock()))


def _plan(found: Any) -> str:
    return str(found._jdf.queryExecution().executedPlan().toString())


WRONG = {
    "SELECT customer, spent, status FROM serve.spent JOIN newest USING (customer)": "it reads serve.spent",
    "SELECT customer, n AS spent, '' AS status FROM delta.`/lake/tables/spent`": "it reads delta./lake",
    "SELECT customer, spent, status FROM spent JOIN latest USING (customer)": "it reads latest, which is not",
    "SELECT * FROM read_files('/etc/passwd')": "read_files(...) is not a table",
    "SELECT * FROM IDENTIFIER('serve.spent')": "IDENTIFIER",
    "SELECT customer, spent, (SELECT max(at) FROM serve.newest) AS status FROM spent": "reads serve",
    "WITH x AS (SELECT * FROM serve.spent) SELECT customer, spent, '' AS status FROM x": "reads serve",
    "SELECT * FROM spent VERSION AS OF 1": "no other time",
    "SELECT * FROM spent TABLESAMPLE (5 PERCENT)": "draws other rows",
    "SELECT TRANSFORM(customer) USING 'cat' FROM spent": "runs a program",
    "SELECT 1; SELECT 2": "not one SELECT",
    "SELECT customer, spent, '' AS status FROM spent;": "not one SELECT",
    "DROP TABLE spent": "not one SELECT",
    "SELECT customer, spent, '' AS status FROM spent) UNION (SELECT 1, 2, 3": "not one SELECT",
    "SELECT customer, spent FROM spent": "its columns are customer, spent, not customer, spent, status",
    "SELECT customer, spent, nothing AS status FROM spent": "nothing",
    "SELECT customer, spent, NULL AS status FROM spent": "status has no type",
    "SELECT map(customer, 1) AS customer, spent, '' AS status FROM spent": "cannot be a key",
    "SELECT customer, spent, uuid() AS status FROM spent": "not deterministic",
    "SELECT customer, spent, current_date() AS status FROM spent": "not deterministic",
    "SELECT customer, spent, current_date AS status FROM spent": "not deterministic",
    "SELECT customer, spent, timestamp 'now' AS status FROM spent": "not deterministic",
    "SELECT customer, spent, '' AS status FROM spent WHERE rand() < 0.5": "not deterministic",
    "SELECT customer, spent, '' AS status FROM spent WHERE n > (SELECT rand() FROM newest)": "deterministic",
    "SELECT customer, spent, '' AS status FROM spent LIMIT 5": "ORDER BY",
    "SELECT customer, spent, '' AS status FROM (SELECT * FROM spent OFFSET 1)": "ORDER BY",
    "SELECT * FROM STREAM spent": "STREAM spent",
    "SELECT customer, first(spent) AS spent, '' AS status FROM spent GROUP BY customer": "first",
    "SELECT customer, collect_list(n) AS spent, '' AS status FROM spent GROUP BY customer": "sort_array",
    "SELECT customer, first(n) OVER (PARTITION BY customer) AS spent, '' AS status FROM spent": "as they",
    "SELECT 'c' AS customer, percentile_approx(n, 0.5) AS spent, '' AS status FROM spent": "were cut",
    "SELECT 'c' AS customer, kll_sketch_agg_bigint(n) AS spent, '' AS status FROM spent": "were cut",
    "SELECT 'c' AS customer, hll_sketch_agg(n) AS spent, '' AS status FROM spent": "were cut",
    "SELECT 'c' AS customer, approx_top_k(n) AS spent, '' AS status FROM spent": "were cut",
    "SELECT customer, spent, map('n', n) AS status FROM spent": "cannot be compared",
    "SELECT customer, reflect('java.lang.System', 'exit', 1) AS spent, '' AS status FROM spent": "into Java",
    "SELECT customer, serve.f(spent) AS spent, '' AS status FROM spent": "not a built-in function",
    "SELECT customer, sum(spent) AS spent, '' AS status FROM spent GROUP BY 4": "GROUP_BY_POS_OUT_OF_RANGE",
    "SELECT customer, sum() AS spent, '' AS status FROM spent GROUP BY customer": "WRONG_NUM_ARGS",
    "SELECT customer, spent, '' AS status FROM spent ORDER BY 9": "ORDER_BY_POS_OUT_OF_RANGE",
    "SELECT customer, spent, '' AS status FROM spent ORDER BY count(*)": "",
    "SELECT customer, ntile(0) OVER (ORDER BY customer) AS spent, '' AS status FROM spent": "VALUE_OUT_OF",
    "WITH x AS (SELECT 1), x AS (SELECT 2) SELECT customer, spent, '' AS status FROM spent": "DUPLICATED_CTE",
}


@pytest.mark.parametrize("sql", WRONG)
def test_a_query_that_reads_more_or_differs_by_run_is_refused(spark: SparkSession, sql: str) -> None:
    (why,) = told(spark, replace(BUYERS, sql=sql, broadcast=()))

    assert why.startswith("sql: ") and WRONG[sql] in why


RIGHT = [
    "SELECT * FROM (SELECT customer, spent, status FROM spent JOIN newest USING (customer))",
    "SELECT customer, sort_array(collect_list(n)) AS spent, '' AS status FROM spent GROUP BY customer",
    "SELECT customer, spent, '' AS status FROM spent ORDER BY spent DESC, customer LIMIT 3",
    "SELECT customer, spent, '' AS status FROM spent WHERE EXISTS (SELECT 1 FROM newest WHERE status = 'x')",
    "WITH a AS (SELECT * FROM spent), b AS (SELECT * FROM a) SELECT customer, spent, '' AS status FROM b",
    "SELECT customer, first(spent) OVER (ORDER BY customer) AS spent, '' AS status FROM spent",
    "SELECT customer, spent, v AS status FROM spent, LATERAL explode(array('a', 'b')) AS t(v)",
    "SELECT customer, spent, k AS status FROM SPENT CROSS JOIN (VALUES ('a'), ('b')) AS t(k)",
    "SELECT customer, spent, '' AS status FROM spent UNION ALL SELECT customer, 0, status FROM newest",
]


@pytest.mark.parametrize("sql", RIGHT)
def test_a_query_may_join_aggregate_rank_and_unite(spark: SparkSession, sql: str) -> None:
    assert told(spark, replace(BUYERS, sql=sql, broadcast=())) == []


def test_a_problem_names_the_file_and_the_line_of_the_text(spark: SparkSession) -> None:
    wrong = Derived(
        name="wrong",
        reads=("spent",),
        columns=("customer",),
        keys=("customer",),
        by=(),
        sql="SELECT customer FROM nowhere",
    )
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.strip() == 'sql="SELECT customer FROM nowhere",'
    )

    (found,) = problems(wrong, TOPICS, spark, TABLES)

    assert (Path(found.file).name, found.line, found.table) == ("test_derived.py", line, "wrong")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"reads": ()}, "no inputs"),
        ({"inputs": ("orders",)}, "given as a topic"),
        ({"reads": ("spent", "spent")}, "given twice"),
        ({"keys": ()}, "has no keys"),
        ({"keys": ("nobody",)}, "key 'nobody' is not one of its columns"),
        ({"by": ("nobody",)}, "column in by 'nobody'"),
        ({"broadcast": ("orders",)}, "not one of its reads"),
        ({"sql": "SELECT 1 FROM spent, newest"}, "after no FROM or JOIN"),
        ({"columns": ("customer", "a__b")}, "two _ in a row"),
        ({"reads": "spent"}, "not a tuple of texts"),
    ],
)
def test_a_definition_of_the_wrong_shape_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        replace(BUYERS, **changes)


def test_definitions_come_after_what_they_read_and_the_others_keep_their_order() -> None:
    plain = Events(name="plain", inputs=("orders",), columns={"k": "region"})

    found = [table.name for table in ordered([TOP, plain, BUYERS, SPENT, NEWEST])]

    assert found.index("top") > found.index("buyers") > max(found.index("spent"), found.index("newest"))
    assert [table.name for table in ordered([plain, SPENT, NEWEST])] == ["plain", "spent", "newest"]


def derived(name: str, *reads: str) -> Derived:
    return Derived(name=name, reads=reads, columns=("k",), keys=("k",), by=(), sql="SELECT 1 AS k")


def test_a_cycle_is_refused_with_its_path_and_an_unknown_table_with_those_there_are() -> None:
    cycle = [derived("d", "c"), derived("c", "b"), derived("b", "a"), derived("a", "c")]
    with pytest.raises(DefinitionError, match="table a: it reads itself: a -> c -> b -> a"):
        ordered(cycle)
    with pytest.raises(DefinitionError, match="it reads itself: own -> own"):
        ordered([derived("own", "own")])
    with pytest.raises(DefinitionError, match="reads table 'spend', which is not defined") as unknown:
        ordered([SPENT, NEWEST, derived("b", "spend")])
    assert unknown.value.remedy == "known: newest, spent"


@pytest.mark.faults
def test_its_fingerprint_covers_everything_upstream_and_is_the_same_every_time(spark: SparkSession) -> None:
    def names(*tables: Kind) -> dict[str, str]:
        by_name = {table.name: table for table in tables}
        return {name: fingerprint(table, TOPICS, spark, by_name) for name, table in by_name.items()}

    base = names(SPENT, NEWEST, BUYERS, TOP)
    filtered = names(replace(SPENT, where="amount > 0"), NEWEST, BUYERS, TOP)
    rewritten = names(SPENT, NEWEST, replace(BUYERS, sql=f"-- as before\n{BUYERS.sql}"), TOP)

    assert names(SPENT, NEWEST, BUYERS, TOP) == base == rewritten
    assert {name for name in base if base[name] != filtered[name]} == {"spent", "buyers", "top"}


def test_the_view_of_a_table_that_is_not_there_cannot_be_made(spark: SparkSession) -> None:
    with pytest.raises(KeyError, match="spent"):
        empty_view(BUYERS, TOPICS, spark)
