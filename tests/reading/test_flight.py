"""Arrow Flight SQL: what ADBC, pandas, polars and DuckDB read is what HTTP answers, by the same rights."""

from __future__ import annotations

import base64
import datetime
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.reading.adbc import Adbc, AdbcError
from tests.reading.conftest import ALL, PAID, PASSWORD, Released, SqlServer
from tests.reading.test_browsing import OF_LOGS, VIEWS
from tests.reading.test_rights import NAME, Person, rita
from twinlake.base.waiting import wait_for
from twinlake.reading import wire

__all__ = ["rita"]  # a fixture

SLOW = "SELECT count(*) FROM range(100000000000) WHERE sqrt(id) < 0"
TYPES = (
    "cast(null as void) AS a, true AS b, 1Y AS c, 2S AS d, 3 AS e, 4L AS f, 1.5F AS g, 2.5D AS h, "
    "'ä\\n' AS i, X'00ff' AS j, 1.50BD AS k, cast(1e-10 as decimal(38,18)) AS l, date'2026-01-31' AS m, "
    "timestamp'2026-01-31 12:00:00.5' AS n, timestamp_ntz'2026-01-31 12:00:00' AS o, "
    "interval '1 02:03:04.5' day to second AS p, named_struct('a', 1, 'b', named_struct('c', 1.50BD)) AS q, "
    "array(array(1), null, array()) AS r, map('k', array(1), 'l', null) AS s, "
    "cast(null as struct<a: int>) AS t, parse_json('{\"a\": 1}') AS v"
)
VALUES = {
    "boolean": (pa.bool_(), True), "tinyint": (pa.int8(), -1), "smallint": (pa.int16(), 2),
    "int": (pa.int32(), 3), "bigint": (pa.int64(), 1 << 40), "float": (pa.float32(), 1.5),
    "double": (pa.float64(), 0.1), "string": (pa.utf8(), "ä'\\n; --"), "binary": (pa.binary(), b"\x00\xff"),
    "decimal(12,2)": (pa.decimal128(12, 2), Decimal("1.50")),
    "date": (pa.date32(), datetime.date(2026, 1, 31)),
    "timestamp": (pa.timestamp("us", "UTC"), datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)),
    "timestamp_ntz": (pa.timestamp("us"), datetime.datetime(2026, 1, 31, 12)),
    "interval day to second": (pa.duration("us"), datetime.timedelta(hours=1)),
    "array<int>": (pa.list_(pa.int32()), [1, None]),
    "struct<a:int,b:string>": (pa.struct([("a", pa.int32()), ("b", pa.utf8())]), {"a": 1, "b": "x"}),
    "map<string,int>": (pa.map_(pa.utf8(), pa.int32()), [("k", 1)]),
    "void": (pa.null(), None),
}  # fmt: skip


@pytest.fixture(scope="module")
def reader(sql: SqlServer, adbc: Callable[..., Adbc]) -> Adbc:
    return adbc(sql.flight)


def table(stream: str) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(stream)).read_all()


def stream(rows: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as to:
        to.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode()


def over_http(sql: SqlServer, statement: str, limit: int = 100) -> pa.Table:
    answer = sql.ask(statement, limit, Accept=wire.ARROW)
    assert answer.is_success, answer.text
    return pa.ipc.open_stream(answer.content).read_all()


def test_every_type_of_a_column_is_what_http_answers(sql: SqlServer, reader: Adbc) -> None:
    statement = f"SELECT {TYPES} UNION ALL SELECT {TYPES}"

    found = table(reader("arrow", sql=statement))

    assert found.num_rows == 2 and found.num_columns == 21
    assert found.equals(over_http(sql, statement))
    assert table(reader("columns", sql=statement)).schema.equals(found.schema)


@pytest.mark.parametrize("type_", VALUES)
def test_a_value_is_bound_with_its_type(reader: Adbc, type_: str) -> None:
    of, value = VALUES[type_]
    values = pa.table({"a": pa.array([value], of)})

    found = table(reader("bound", sql="SELECT ? AS v", sets=stream(values)))

    assert found.column("v").to_pylist() == [value]
    assert found.schema.field("v").type == of


def test_types_that_spark_has_not_are_bound_as_the_next_one(reader: Adbc) -> None:
    values = pa.table({
        "a": pa.array([1], pa.uint32()), "b": pa.array([(1 << 64) - 1], pa.uint64()),
        "c": pa.array(["x"]).dictionary_encode(), "d": pa.array(["y"], pa.large_string()),
        "e": pa.array([datetime.datetime(2026, 1, 31)], pa.timestamp("ns", "Europe/Berlin")),
    })  # fmt: skip

    (found,) = table(reader("bound", sql="SELECT ? a, ? b, ? c, ? d, ? e", sets=stream(values))).to_pylist()

    assert (found["a"], found["b"], found["c"], found["d"]) == (1, Decimal((1 << 64) - 1), "x", "y")
    assert found["e"].timestamp() == datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC).timestamp()


def test_a_statement_is_computed_over_every_set_of_values(reader: Adbc) -> None:
    sets = pa.table({"region": ["r1", "r2", None], "least": [Decimal("10.00"), Decimal("0.00"), None]})
    counted = "SELECT count(*) AS n FROM orders WHERE region = ? AND amount >= ?"

    found = table(reader("bound", sql=counted, sets=stream(sets))).column("n").to_pylist()

    assert found == [ALL // 10, ALL // 5, 0]
    with pytest.raises(AdbcError, match="takes 1 to 100"):
        reader("bound", sql="SELECT ?", sets=stream(pa.table({"a": range(101)})))
    with pytest.raises(AdbcError, match="over all sets of values"):
        reader("bound", sql=f"SELECT ?{' ' * 90_000}", sets=stream(pa.table({"a": range(12)})))


def test_a_prepared_statement_is_run_with_other_values(reader: Adbc) -> None:
    found = reader("prepared", sql="SELECT region, count(*) FROM orders WHERE region = ? GROUP BY region")

    assert found == {"parameters": 1, "found": [[["r1", ALL // 5]], [["r2", ALL // 5]], []]}
    first = "SELECT order_id FROM orders ORDER BY order_id LIMIT cast(? AS INT)"
    assert reader("rows", sql=first, parameters=[2]) == [[0], [1]]


def test_many_values_stand_in_their_order(reader: Adbc) -> None:
    """Spark itself mixes five and more."""
    values = list(range(40))

    assert reader("rows", sql=f"SELECT {', '.join('?' * 40)}", parameters=values) == [values]


@pytest.mark.parametrize("value", ["r1' OR 'a' = 'a", "' UNION SELECT 1 --", "\\", "${env:HOME}", "?"])
def test_a_value_is_never_read_as_sql(reader: Adbc, value: str) -> None:
    assert reader("rows", sql="SELECT ?", parameters=[value]) == [[value]]
    assert reader("rows", sql="SELECT count(*) FROM orders WHERE region = ?", parameters=[value]) == [[0]]


def test_a_wrong_number_of_values_is_refused(reader: Adbc) -> None:
    for sql, given in (("SELECT ?, ?", [1]), ("SELECT ?", [1, 2]), ("SELECT 1", [1])):
        said = f"with {sql.count('?')} `[?]`.*values for {len(given)} were bound"
        with pytest.raises(AdbcError, match=said):
            reader("rows", sql=sql, parameters=given)
    with pytest.raises(AdbcError, match="UNBOUND_SQL_PARAMETER"):
        reader("rows", sql="SELECT ?")


def test_pandas_polars_and_duckdb_read(reader: Adbc) -> None:
    found = reader("tools", sql="SELECT region, count(*) AS n FROM orders GROUP BY region ORDER BY region")

    counted = [[f"r{at}", ALL // 5] for at in range(5)]
    assert found == {"pandas": counted, "polars": counted, "duckdb": counted}


def test_what_there_is_is_listed(sql: SqlServer, reader: Adbc) -> None:
    found = reader("listed")

    names = {name.removeprefix("serve.") for name in found["tables"] if name.startswith("serve.")}
    assert (found["catalogs"], found["types"], found["info"]) == (["spark_catalog"], ["VIEW"], "Twinlake")
    assert names == VIEWS | OF_LOGS
    assert {name.partition(".")[0] for name in found["tables"]} >= {"serve", "release_1"}
    assert found["some"] == ["serve.latest_order"]
    shown = table(found["schema"]).schema
    assert shown.equals(over_http(sql, "SELECT * FROM latest_order LIMIT 0").schema.remove_metadata())
    assert found["tables"]["serve.latest_order"] == shown.names
    assert {name: found["named"][name] for name in ("order_id", "customer", "amount", "ordered_at")} == {
        "order_id": "BIGINT", "customer": "STRING", "amount": "DECIMAL(12,2)", "ordered_at": "TIMESTAMP"
    }  # fmt: skip
    assert reader("rows", sql="SELECT count(*) FROM spark_catalog.serve.latest_order") == [[50]]


def test_sqlalchemy_reflects_and_reads(reader: Adbc) -> None:
    found = reader("reflected", table="orders")

    tables = {"orders", "latest_order", "sales_per_region"}
    assert {"serve", "release_1"} <= set(found["schemas"]) and "meta" not in found["schemas"]
    assert {*found["tables"]} == tables and {*found["views"]} == (VIEWS | OF_LOGS) - tables
    assert {*found["whole"]} == {f"serve.{name}" for name in tables}
    assert (found["has"], found["counted"], found["keys"]) == ([True, True, False], ALL // 5, [])
    assert found["inspected"] == [*found["columns"]]
    assert {name: found["columns"][name] for name in ("order_id", "amount", "ordered_at")} == {
        "order_id": "BigInteger", "amount": "Numeric", "ordered_at": "DateTime"
    }  # fmt: skip
    assert reader("named", table="orders") == [found["inspected"], []]


def test_errors_are_those_of_every_way_in(reader: Adbc) -> None:
    with pytest.raises(AdbcError, match=r"(?s)did you mean.*latest_order"):
        reader("rows", sql="SELECT * FROM latest_ordr")
    for statement in (
        "DROP VIEW orders",
        "CREATE TABLE t (a INT)",
        "SET spark.sql.shuffle.partitions = 100000",
    ):
        with pytest.raises(AdbcError, match="refused"):
            reader("rows", sql=statement)
    for what in ("ingest", "update", "transaction"):
        assert reader("refused", name=what)


def test_nobody_comes_in_without_their_password(reader: Adbc) -> None:
    for user, password in (("analyst", "wrong"), ("nobody", PASSWORD), ("", "")):
        with pytest.raises(AdbcError, match="user or password is missing or wrong"):
            reader("rows", sql="SELECT 1", user=user, password=password)
    assert reader("rows", sql="SELECT 1", user="ben@elsewhere") == [[1]]


def test_what_a_person_has_no_right_to_is_not_there_or_masked(rita: Person, reader: Adbc) -> None:
    rita.may(tables=("serve.sales_*",))

    assert reader("rows", sql="SELECT count(*) FROM sales_per_region", user=NAME)[0][0] > 0
    with pytest.raises(AdbcError, match="may read"):
        reader("rows", sql="SELECT * FROM latest_order", user=NAME)
    with pytest.raises(AdbcError, match="may read"):
        reader("rows", sql="SELECT * FROM latest_order WHERE order_id = ?", parameters=[1], user=NAME)
    assert {*reader("listed", user=NAME)["tables"]} == {
        "serve.sales_per_region",
        "serve.sales_per_region_late",
    }

    rita.may(masks={"internal": "null"})
    masked = reader("rows", sql="SELECT DISTINCT amount FROM latest_order WHERE order_id > ?", parameters=[0],
                    user=NAME)  # fmt: skip
    assert masked == [[None]]


def test_who_has_lost_a_right_loses_the_statement(rita: Person, sql: SqlServer, reader: Adbc) -> None:
    rita.may(tables=("serve.*",))
    reader.begin("rows", sql=SLOW, user=NAME)
    computed(sql, NAME)
    rita.may(tables=("serve.sales_*",))

    with pytest.raises(AdbcError, match=f"the rights of {NAME} have changed"):
        reader.result()


def running(sql: SqlServer, user: str, for_s: float = 0) -> list[dict[str, Any]]:
    answer = httpx.get(f"{sql.url}/queries", auth=("olga", PASSWORD), trust_env=False, timeout=30)
    return [
        one
        for one in answer.json()
        if one["user"] == user and one["state"] == "running" and one["seconds"] >= for_s
    ]


COMPUTED_S = 3.0
"""Who runs so long is computed: drivers have a statement analysed first, which takes less."""


def computed(sql: SqlServer, user: str) -> dict[str, Any]:
    """One of this user's, once its rows are being computed."""
    (one,) = wait_for("it to be computed", lambda: running(sql, user, COMPUTED_S) or None, 60)
    found: dict[str, Any] = one
    return found


def test_a_cancelled_statement_ends(sql: SqlServer, reader: Adbc) -> None:
    seen: list[dict[str, Any]] = []
    looking = threading.Thread(target=lambda: seen.append(computed(sql, "analyst")))
    looking.start()

    found = reader("cancelled", sql=SLOW, after=6.0)

    looking.join()
    assert "CANCELLED" in found["said"] and found["seconds"] < 12
    assert [(one["endpoint"], one["sql"]) for one in seen] == [("flight", SLOW)]
    wait_for("it to end", lambda: not running(sql, "analyst") or None, 30)
    sql.until_idle()


def test_one_that_somebody_else_ends_says_so(sql: SqlServer, reader: Adbc) -> None:
    reader.begin("rows", sql=SLOW)
    one = computed(sql, "analyst")
    httpx.post(
        f"{sql.url}/queries/{one['id']}/cancel", auth=("analyst", PASSWORD), trust_env=False, timeout=30,
        headers={"X-Twinlake-Query": "1"},
    )  # fmt: skip

    with pytest.raises(AdbcError, match="analyst has cancelled it"):
        reader.result()


def test_as_of_reads_tables_as_they_were(reader: Adbc) -> None:
    found = reader("facts", sql="SELECT count(*) FROM latest_order", as_of="position:orders=1")

    assert found["as_of"]["asked"] == "position:orders=1" and found["as_of"]["position"] == {"orders": 1}
    assert "as_of" not in reader("facts", sql="SELECT count(*) FROM latest_order")
    counted = "SELECT count(*) FROM orders WHERE region = ?"
    assert reader("rows", sql=counted, parameters=["r1"], as_of="position:orders=1") == [[ALL // 5]]
    with pytest.raises(AdbcError, match="is not a point in time"):
        reader("rows", sql="SELECT 1", as_of="yesterday")


def test_a_statement_that_was_prepared_reads_the_release_of_its_run(
    sql: SqlServer, released: Released, reader: Adbc
) -> None:
    reader("keep", sql="SELECT cast(sum(orders) AS BIGINT) FROM sales_per_region WHERE orders > ?")
    before = reader("kept", value=0)
    made = released.promote(released.paid_orders)
    sql.wait_until(lambda status: status["release"] == made.number)
    after = reader("kept", value=0)
    back = released.promote(released.all_orders)
    sql.wait_until(lambda status: status["release"] == back.number)

    assert (before, after, reader("kept", value=0)) == ([[ALL]], [[PAID]], [[ALL]])


def test_a_prepared_statement_outlives_the_server(sql: SqlServer, reader: Adbc) -> None:
    reader("keep", sql="SELECT count(*) FROM orders WHERE region = ?")
    assert reader("kept", value="r1") == [[ALL // 5]]
    sql.kill()
    with pytest.raises(AdbcError):
        reader("kept", value="r1")
    sql.start()

    def again() -> Any:
        try:
            return reader("kept", value="r1")
        except AdbcError:
            return None

    assert wait_for("the server to answer", again, 60) == [[ALL // 5]]
