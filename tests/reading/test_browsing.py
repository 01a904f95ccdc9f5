"""What a reader's tool is shown: each metadata call of JDBC as the first call of its session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.reading.conftest import ALL, PASSWORD, Released, SqlServer, java_array

VIEWS = {"latest_order", "orders", "sales_per_region", "sales_per_region_late"}
OF_LOGS = {"orders_valid", "orders_quarantine", "orders_replayed"}
DRIVERS = ["hive-jdbc 2.3", "hive-jdbc 4.0"]
"""Of Spark and its beeline; what DBeaver fetches."""
LONGEST_S = 10.0
"""Of a metadata call on a loaded machine; what these tests rule out takes for ever."""


def rows(found: Any) -> list[dict[str, Any]]:
    told = found.getMetaData()
    names = [told.getColumnName(at + 1).upper() for at in range(told.getColumnCount())]
    taken = []
    while found.next():
        taken.append({name: found.getObject(at + 1) for at, name in enumerate(names)})
    found.close()
    return taken


@pytest.fixture(params=DRIVERS)
def connect(request: pytest.FixtureRequest) -> Callable[..., Any]:
    found: Callable[..., Any] = request.getfixturevalue("jdbc" if request.param == DRIVERS[0] else "jdbc_4")
    return found


@pytest.fixture
def metadata(connect: Callable[..., Any]) -> Iterator[Any]:
    """Of a session that has asked for nothing yet."""
    connection = connect()
    yield connection.getMetaData()
    connection.close()


def test_the_schemas_are_serve_and_the_releases(sql: SqlServer, metadata: Any) -> None:
    assert sql.ask(
        "SELECT count(*) FROM serve.orders", as_of="release:1"
    ).is_success  # has a schema of its own

    schemas = [row["TABLE_SCHEM"] for row in rows(metadata.getSchemas())]

    assert {"serve", "release_1"} <= set(schemas)
    assert {schema.rstrip("0123456789") for schema in schemas} == {"serve", "release_"}


def test_there_are_no_catalogs(metadata: Any) -> None:
    assert rows(metadata.getCatalogs()) == []


@pytest.mark.parametrize("types", [(), ("VIEW",), ("TABLE", "VIEW")], ids=str)
def test_the_tables_of_a_schema_are_its_views(metadata: Any, types: tuple[str, ...]) -> None:
    asked = java_array(metadata, "String", *types) if types else None

    found = rows(metadata.getTables(None, "serve", "%", asked))

    assert {row["TABLE_NAME"] for row in found} == VIEWS | OF_LOGS
    assert {(row["TABLE_SCHEM"], row["TABLE_TYPE"]) for row in found} == {("serve", "VIEW")}


def test_who_asks_for_tables_alone_gets_none(metadata: Any) -> None:
    asked = java_array(metadata, "String", "TABLE")

    assert rows(metadata.getTables(None, None, None, asked)) == []


def test_the_tables_of_a_release_are_there(metadata: Any) -> None:
    found = rows(metadata.getTables(None, "release\\_1", None, None))

    assert {row["TABLE_NAME"] for row in found} == VIEWS | OF_LOGS


def test_columns_come_with_the_types_of_java_and_of_spark(metadata: Any) -> None:
    found = rows(metadata.getColumns(None, "serve", "sales_per_region", "%"))
    told = {
        row["COLUMN_NAME"]: (row["DATA_TYPE"], row["TYPE_NAME"], row["COLUMN_SIZE"], row["DECIMAL_DIGITS"])
        for row in found
    }

    assert {name: told[name] for name in ("region", "window_start", "orders", "largest", "final")} == {
        "region": (12, "STRING", None, None),
        "window_start": (93, "TIMESTAMP", 26, 6),
        "orders": (-5, "BIGINT", 19, 0),
        "largest": (3, "DECIMAL(12,2)", 12, 2),
        "final": (16, "BOOLEAN", 1, None),
    }
    assert [row["ORDINAL_POSITION"] for row in found] == [at + 1 for at in range(len(found))]


def test_one_column_of_every_release_is_found_by_its_name(metadata: Any) -> None:
    found = rows(metadata.getColumns(None, None, "ORDERS", "Order\\_id"))

    assert {("serve", "orders", "order_id"), ("release_1", "orders", "order_id")} <= {
        (row["TABLE_SCHEM"], row["TABLE_NAME"], row["COLUMN_NAME"]) for row in found
    }
    assert {row["TABLE_NAME"] for row in found} == {"orders"}


def test_every_type_of_a_column_is_in_the_types_that_are_told(metadata: Any) -> None:
    told = {row["TYPE_NAME"] for row in rows(metadata.getTypeInfo())}
    used = {
        row["TYPE_NAME"].partition("(")[0].partition("<")[0]
        for row in rows(metadata.getColumns(None, "serve", "%", "%"))
    }

    assert used <= told


def test_the_types_of_tables_are_told(metadata: Any) -> None:
    assert [row["TABLE_TYPE"] for row in rows(metadata.getTableTypes())] == ["TABLE", "VIEW"]


def test_functions_are_those_that_a_statement_may_call(metadata: Any) -> None:
    names = {row["FUNCTION_NAME"] for row in rows(metadata.getFunctions(None, None, "%"))}

    assert {"sum", "date_trunc", "approx_count_distinct"} <= names
    assert not {"reflect", "java_method", "from_avro", "twinlake_live"} & names


def test_views_have_no_keys(metadata: Any) -> None:
    assert rows(metadata.getPrimaryKeys(None, "serve", "orders")) == []
    assert rows(metadata.getImportedKeys(None, "serve", "orders")) == []
    assert rows(metadata.getCrossReference(None, "serve", "orders", None, "serve", "latest_order")) == []


@pytest.mark.parametrize("call", ["getIndexInfo", "getProcedures", "getUDTs"])
def test_what_a_catalog_of_views_has_none_of_is_empty(metadata: Any, call: str) -> None:
    further = {"getIndexInfo": (False, False), "getUDTs": (None,)}.get(call, ())

    assert rows(getattr(metadata, call)(None, "serve", "orders", *further)) == []


def test_it_says_what_it_is(metadata: Any) -> None:
    assert metadata.getDatabaseProductName() == "Spark SQL"
    assert metadata.getDatabaseProductVersion().startswith("4.")


@pytest.mark.parametrize("schema", ["meta", "as_of_%", "default", "global_temp", "%meta%", "me_a", "system"])
def test_schemas_that_only_views_read_are_not_told(metadata: Any, schema: str) -> None:
    assert rows(metadata.getSchemas(None, schema)) == []
    assert rows(metadata.getTables(None, schema, None, None)) == []
    assert rows(metadata.getColumns(None, schema, None, None)) == []


HOSTILE = [
    "(a+)+$", "(([a-z_])+.)+[A-Z]([a-z_])+$", ".*", "serve|meta", "[", "\\", "\\\\", "'", "`", '"', "*.*",
    "x" * 100_000, "%a" * 5_000, "serve'; DROP VIEW serve.orders; --", "serve` UNION SELECT 1", "\x00",
    "\N{GRINNING FACE}", "../..", "text.`/etc/passwd`", "${env:PATH}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: repr(pattern[:30]))
def test_a_hostile_pattern_is_a_name_that_nothing_has(sql: SqlServer, jdbc: Any, pattern: str) -> None:
    connection = jdbc()
    asked = connection.getMetaData()
    began = time.monotonic()

    assert rows(asked.getSchemas(None, pattern)) == []
    assert rows(asked.getTables(None, "serve", pattern, None)) == []
    assert rows(asked.getColumns(None, "serve", "orders", pattern)) == []
    assert rows(asked.getFunctions(None, None, pattern)) == []
    assert rows(asked.getPrimaryKeys(pattern, pattern, pattern)) == []

    assert time.monotonic() - began < LONGEST_S
    assert sql.rows("SELECT count(*) AS n FROM serve.orders") == [{"n": ALL}]
    connection.close()


def test_a_temporary_view_is_read_and_not_told(jdbc: Callable[..., Any]) -> None:
    connection = jdbc()
    connection.createStatement().execute("CREATE TEMPORARY VIEW mine AS SELECT 1 AS a")

    assert rows(connection.getMetaData().getTables(None, None, "mine", None)) == []
    assert rows(connection.createStatement().executeQuery("SELECT a FROM mine")) == [{"A": 1}]
    connection.close()


def test_statements_show_the_same_schemas(sql: SqlServer, jdbc: Callable[..., Any]) -> None:
    """By name as well: a driver that knows no metadata calls lists with them."""
    connection = jdbc()
    asked = {row["TABLE_SCHEM"] for row in rows(connection.getMetaData().getSchemas())}

    for statement in ("SHOW SCHEMAS", "SHOW DATABASES", "SHOW SCHEMAS IN spark_catalog"):
        shown = rows(connection.createStatement().executeQuery(statement))
        assert (
            {row["NAMESPACE"] for row in shown} == asked == {row["namespace"] for row in sql.rows(statement)}
        )
    assert sql.rows("SHOW SCHEMAS LIKE 'meta|serve'") == [{"namespace": "serve"}]
    connection.close()


def test_default_can_be_connected_to(sql: SqlServer, analyst_jvm: Any, jdbc: Callable[..., Any]) -> None:
    url = f"jdbc:hive2://127.0.0.1:{sql.jdbc_port}/default"
    connection = analyst_jvm.java.sql.DriverManager.getConnection(url, "analyst", PASSWORD)

    listed = {row["TABLENAME"] for row in rows(connection.createStatement().executeQuery("SHOW TABLES"))}
    assert listed == VIEWS | OF_LOGS, "it is `serve`"
    assert connection.getMetaData().getTables(None, "serve", "orders", None).next()
    connection.close()


def test_what_is_listed_beside_releases_is_of_one_of_them(
    sql: SqlServer, released: Released, jdbc: Callable[..., Any]
) -> None:
    """No error, and no half of a schema, while views are altered and schemas are made."""
    seen: list[Any] = []
    ending = threading.Event()

    def browse() -> None:
        connection = jdbc()
        asked = connection.getMetaData()
        while not ending.is_set():
            try:
                seen.append(
                    frozenset(row["TABLE_NAME"] for row in rows(asked.getTables(None, "serve", None, None)))
                )
            except Exception as error:
                seen.append(str(error))
        connection.close()

    reader = threading.Thread(target=browse)
    reader.start()
    for promotion in range(6):
        made = released.promote((released.paid_orders, released.all_orders)[promotion % 2])
        sql.wait_until(lambda status, number=made.number: status["release"] == number)  # type: ignore[misc]
    ending.set()
    reader.join(60)

    assert set(seen) == {frozenset(VIEWS | OF_LOGS)}
