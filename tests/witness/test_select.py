"""SELECTs over tables, of both engines: the same rows, with Spark's types; what is not listed is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.witness import hostile_values
from twinlake.witness.database import connect
from twinlake.witness.refused import Refused, raised
from twinlake.witness.select import translate_select
from twinlake.witness.text import names
from twinlake.witness.types import Type, identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP = 7
"""Of the hostile rows every so many are in the tables: enough for groups, few enough for joins."""
SHOWN = ("row", "bo", "y", "i", "l", "x", "d", "w", "g", "k", "s", "t", "da", "au")
TYPES = {name: Type.parse({"row": "int", **hostile_values.TYPES}[name]) for name in SHOWN}
TABLES = {"one": TYPES, "two": TYPES}
EQUAL = (
    "SELECT s, count(*) AS n, count(i) AS o, count(DISTINCT i) AS p FROM one GROUP BY s",
    "SELECT count(*) AS n, sum(i) AS a, sum(y) AS b, min(s) AS c, max(s) AS d FROM one",
    "SELECT sum(d) AS a, sum(k) AS b, avg(k) AS c, avg(d) AS e, sum(DISTINCT d) AS f FROM one",
    "SELECT s, avg(d) AS a, avg(i) AS b, avg(y) AS c FROM one GROUP BY s",
    "SELECT bo, min(x) AS a, max(x) AS b, min(t) AS c, max(da) AS d, min(bo) AS e FROM one GROUP BY bo",
    "SELECT x, count(*) AS n FROM one GROUP BY x",
    "SELECT sum(i) AS a, avg(d) AS b, count(*) AS c, max(i) AS e FROM one WHERE false",
    "SELECT bo, sum(i) FILTER (WHERE y > 0) AS a, count_if(y > 0) AS b, bool_and(y > 0) AS c, "
    "bool_or(y > 0) AS e, every(y > 1) AS f FROM one GROUP BY bo",
    "SELECT year(t) AS y, s || '-' AS z, count(*) AS n FROM one GROUP BY year(t), s || '-'",
    "SELECT year(t) AS years, count(*) AS n FROM one GROUP BY years HAVING n > 5 AND max(i) > 0",
    "SELECT y, i, count(*) AS n FROM one GROUP BY 1, 2 HAVING count(*) > 1",
    "SELECT a.row, b.row AS other FROM one AS a JOIN two AS b ON a.i = b.i AND a.y < b.y",
    "SELECT a.row, b.row AS other FROM one AS a LEFT JOIN two AS b ON a.x = b.x AND b.bo",
    "SELECT a.row, b.row AS other FROM one a RIGHT OUTER JOIN two b ON a.s = b.s AND a.row > 700",
    "SELECT coalesce(a.l, b.l) AS l, a.row, b.row AS other FROM (SELECT * FROM one WHERE row < 90) AS a "
    "FULL JOIN (SELECT * FROM two WHERE row > 800) AS b ON a.l = b.l",
    "SELECT s, a.row, b.row AS other FROM one AS a JOIN two AS b USING (s) WHERE a.y = 1",
    "SELECT s, a.row FROM (SELECT * FROM one WHERE row < 90) AS a FULL JOIN "
    "(SELECT s, l FROM two WHERE row > 800) AS b USING (s)",
    "SELECT count(*) AS n FROM one, two",
    "SELECT a.row FROM one AS a LEFT SEMI JOIN (SELECT * FROM two WHERE row < 60) AS b ON a.s = b.s",
    "SELECT a.row FROM one AS a LEFT ANTI JOIN (SELECT * FROM two WHERE row < 60) AS b ON a.s = b.s",
    "SELECT row FROM one WHERE s IN (SELECT s FROM two WHERE row < 60)",
    "SELECT row FROM one WHERE s NOT IN (SELECT s FROM two WHERE row < 60 AND s IS NOT NULL)",
    "SELECT row FROM one WHERE i > (SELECT min(i) FROM two WHERE i > 5)",
    "SELECT row FROM one WHERE EXISTS (SELECT 1 FROM two WHERE i = 7) AND y = 1",
    "SELECT s, max((SELECT count(*) FROM two)) AS n FROM one GROUP BY s",
    "SELECT DISTINCT s, bo FROM one",
    "SELECT x FROM one UNION SELECT x FROM two",
    "SELECT i, s FROM one WHERE y = 1 UNION ALL SELECT l, s FROM two WHERE y = 2",
    "SELECT d AS v FROM one UNION ALL SELECT g FROM two WHERE row < 50",
    "WITH t AS (SELECT s, sum(i) AS n FROM one GROUP BY s), u (a, b) AS (SELECT s, n FROM t) "
    "SELECT t.s, t.n, u.b FROM t JOIN u ON t.s = u.a",
    "SELECT s, row, row_number() OVER (PARTITION BY s ORDER BY row DESC) AS p FROM one",
    "SELECT s, row, p FROM (SELECT s, row, row_number() OVER (PARTITION BY s ORDER BY i DESC, row) AS p "
    "FROM one) WHERE p <= 2",
    "SELECT row, rank() OVER (ORDER BY i) AS a, dense_rank() OVER (ORDER BY x DESC) AS b, "
    "rank() OVER (PARTITION BY bo ORDER BY s NULLS LAST) AS c FROM one",
    "SELECT row, sum(y) OVER (PARTITION BY s ORDER BY row) AS a, count(*) OVER (PARTITION BY s) AS b, "
    "max(i) OVER (ORDER BY l) AS c FROM one",
    "SELECT row, sum(y) OVER (ORDER BY row ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, "
    "min(x) OVER (ORDER BY row ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS b FROM one",
    "SELECT row, lag(i) OVER (ORDER BY row) AS a, lead(s, 2, '-') OVER (PARTITION BY bo ORDER BY row) AS b, "
    "first_value(d) OVER (PARTITION BY s ORDER BY row) AS c, ntile(4) OVER (ORDER BY row) AS e, "
    "last_value(i) OVER (ORDER BY row) AS f FROM one",
    "SELECT s, sum(y) AS n, sum(sum(y)) OVER () AS m, rank() OVER (ORDER BY count(*) DESC) AS r "
    "FROM one GROUP BY s",
    "SELECT row, greatest(-d, 0BD) AS a, CAST(coalesce(d, 0BD) - coalesce(k, 0BD) AS DECIMAL(38, 0)) AS b "
    "FROM one",
    "SELECT 1 AS place, min(s) AS first FROM one HAVING count(*) > 0",
    "SELECT one.*, two.row AS other FROM one JOIN two ON one.row = two.row WHERE two.y = 1",
    "SELECT ROW AS Row, `S` AS `a b` FROM ONE WHERE Y = 1 ORDER BY 1",
)  # fmt: skip
SUMMED = (
    "SELECT s, sum(x) AS a, avg(x) AS b, sum(x) * 2 AS c, coalesce(sum(x), 0D) AS e FROM one "
    "WHERE abs(x) < 1e6 GROUP BY s",
    "SELECT row, sum(x) OVER (ORDER BY row) AS a FROM one WHERE abs(x) < 1e6",
)
REFUSED = {
    "SELECT s FROM one LIMIT 1": "LIMIT is not listed",
    "SELECT s FROM one TABLESAMPLE (10 PERCENT)": "is not listed after FROM",
    "SELECT s FROM nothing": "there is no table nothing",
    "SELECT s FROM one JOIN two ON one.i = two.i": "may be several columns",
    "SELECT one.s FROM one WHERE i > (SELECT max(i) FROM two WHERE two.s = one.s)": "there is no column",
    "SELECT row_number() OVER (PARTITION BY s) AS n FROM one": "without an order",
    "SELECT first(s) AS f FROM one": "the function first is not listed",
    "SELECT collect_list(s) AS f FROM one": "the function collect_list is not listed",
    "SELECT s FROM one GROUP BY s HAVING sum(x) > 1": "follow the order of its rows",
    "SELECT round(sum(x), 2) AS v FROM one": "follow the order of its rows",
    "SELECT CAST(sum(x) AS DECIMAL(38, 2)) AS v FROM one": "follow the order of its rows",
    "SELECT v FROM (SELECT s, sum(x) AS v FROM one GROUP BY s) WHERE v > 1": "follow the order of its rows",
    "SELECT rank() OVER (ORDER BY sum(x)) AS r FROM one GROUP BY s": "ordered by a sum of doubles",
    "SELECT sum(sum(x)) OVER (ORDER BY sum(x)) AS r FROM one GROUP BY s": "ordered by a sum of doubles",
    "SELECT s, count(*) AS n FROM one GROUP BY ROLLUP (s)": "Rollup is not listed",
    "SELECT s, max(i) AS i FROM one GROUP BY s HAVING i > 5": "is a column and another value's name",
    "SELECT a.* FROM one AS a JOIN two AS b USING (row)": "* needs to stand for all",
    "SELECT count(DISTINCT au) AS n FROM one": "count(array<string>) is not listed",
    "SELECT s FROM one NATURAL JOIN two": "JOIN is not listed",
    "SELECT s FROM one INTERSECT SELECT s FROM two": "is not listed as a query",
    "SELECT explode(au) AS e FROM one": "the function explode is not listed",
    "SELECT s, s FROM one": "two columns have one name",
    "SELECT s FROM one LATERAL VIEW explode(au) t AS e": "LATERALS is not listed",
    "SELECT sum(i) OVER w AS n FROM one WINDOW w AS (PARTITION BY s)": "is not listed",
    "SELECT sum(y) OVER (ORDER BY i RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM one": "frame",
}  # fmt: skip


@pytest.fixture(scope="module")
def connection(hostile_rows: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = connect()
    shown = ", ".join(
        f"CAST({identifier(name)} AS {type_.duckdb}) AS {identifier(name)}" for name, type_ in TYPES.items()
    )
    for name in TABLES:
        connection.execute(
            f"CREATE TABLE {name} AS SELECT {shown} FROM read_parquet('{hostile_rows}') "
            f"WHERE row % {STEP} = 0"
        )
    yield connection
    connection.close()


@pytest.fixture
def views(spark: SparkSession, hostile_rows: Path) -> Iterator[SparkSession]:
    rows = spark.read.parquet(str(hostile_rows)).select(*SHOWN).where(f"row % {STEP} = 0").coalesce(1).cache()
    for name in TABLES:
        rows.createOrReplaceTempView(name)
    yield spark
    for name in TABLES:
        spark.catalog.dropTempView(name)
    rows.unpersist()


def _rows(table: Any) -> list[tuple[Any, ...]]:
    """In an order of their own, times without zones, -0.0 as 0.0."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def test_a_select_shows_the_same_rows_with_sparks_types(
    views: SparkSession, connection: duckdb.DuckDBPyConnection
) -> None:
    wrong = {}
    for text in EQUAL:
        translated, of_spark = translate_select(text, TABLES), views.sql(text)
        wanted, found = _rows(of_spark.toArrow()), _rows(connection.sql(translated.sql).to_arrow_table())
        types = {name: Type.parse(type_) for name, type_ in of_spark.dtypes}
        if not wanted or wanted != found or types != translated.columns or translated.approximate:
            differing = [pair for pair in zip(wanted, found, strict=False) if pair[0] != pair[1]]
            wrong[text] = (types, translated.columns, len(wanted), len(found), differing[:2])

    assert wrong == {}


def test_sums_of_doubles_are_near_and_named(
    views: SparkSession, connection: duckdb.DuckDBPyConnection
) -> None:
    for text in SUMMED:
        translated = translate_select(text, TABLES)
        wanted = _rows(views.sql(text).toArrow())
        # beside its columns it has what the sums may be off by
        sql = f"SELECT {names(translated.columns)} FROM ({translated.sql})"
        found = _rows(connection.sql(sql).to_arrow_table())

        assert translated.approximate == {
            name for name, type_ in translated.columns.items() if type_.name == "double"
        }
        assert len(found) == len(wanted) and all(map(_near, found, wanted))


def _near(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Equal, but for the last digits of doubles."""
    return all(
        math.isclose(mine, its, rel_tol=1e-9, abs_tol=1e-6)
        if isinstance(mine, float) and isinstance(its, float)
        else mine == its
        for mine, its in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_listed_is_refused(text: str) -> None:
    with pytest.raises(Refused) as found:
        translate_select(text, TABLES)

    assert REFUSED[text] in found.value.why_text


@pytest.mark.parametrize(
    "shown",
    [
        "row_number() OVER (ORDER BY i)",
        "lag(row) OVER (PARTITION BY bo ORDER BY i)",
        "first_value(row) OVER (ORDER BY i)",
        "sum(y) OVER (ORDER BY i ROWS UNBOUNDED PRECEDING)",
    ],
)
def test_rows_that_a_window_leaves_in_any_order_are_not_witnessed(
    connection: duckdb.DuckDBPyConnection, shown: str
) -> None:
    translated = translate_select(f"SELECT {shown} AS v FROM one", TABLES)

    with pytest.raises(duckdb.Error) as found:
        connection.sql(translated.sql).fetchall()
    reason = raised(str(found.value))
    assert reason is not None and reason[1] == "rows that the window's order leaves equal"


def test_a_table_of_the_file_has_what_the_tests_presume(hostile_rows: Path) -> None:
    assert set(SHOWN) <= set(pq.read_schema(hostile_rows).names)
