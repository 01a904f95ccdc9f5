"""A reader begins in `serve`, and finds in `information_schema` what there is, as any database says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.reading.conftest import ALL, SqlServer
from tests.reading.test_browsing import OF_LOGS, VIEWS, rows


def test_a_table_needs_no_schema_before_its_name(sql: SqlServer) -> None:
    assert {row["tableName"] for row in sql.rows("SHOW TABLES")} == VIEWS | OF_LOGS
    assert sql.rows("SELECT count(*) AS n FROM orders") == [{"n": ALL}]
    assert sql.rows("SELECT current_schema() AS name") == [{"name": "serve"}]
    assert sql.rows("SELECT count(*) AS n FROM orders JOIN serve.orders USING (order_id)") == [{"n": ALL}]
    assert sql.rows("WITH orders AS (SELECT 1 AS n) SELECT n FROM orders") == [{"n": 1}]


@pytest.mark.parametrize(
    "use", ["USE default", "USE SCHEMA default", "USE DATABASE `default`", "USE DEFAULT"]
)
def test_the_empty_schema_of_spark_is_serve(jdbc: Callable[..., Any], use: str) -> None:
    connection = jdbc()
    try:
        statement = connection.createStatement()
        statement.execute("USE release_1")
        statement.execute(use)
        assert rows(statement.executeQuery("SELECT current_schema() AS name")) == [{"NAME": "serve"}]
    finally:
        connection.close()


def test_information_schema_tells_what_jdbc_tells(sql: SqlServer, jdbc: Callable[..., Any]) -> None:
    connection = jdbc()
    try:
        asked = connection.getMetaData()
        schemas = {row["TABLE_SCHEM"] for row in rows(asked.getSchemas())}
        tables = {
            (row["TABLE_SCHEM"], row["TABLE_NAME"]) for row in rows(asked.getTables(None, None, None, None))
        }
        columns = {
            (
                row["TABLE_SCHEM"],
                row["TABLE_NAME"],
                row["COLUMN_NAME"],
                row["ORDINAL_POSITION"],
                row["TYPE_NAME"],
            )
            for row in rows(asked.getColumns(None, None, None, None))
        }
        shown = rows(connection.createStatement().executeQuery("SELECT * FROM information_schema.schemata"))
    finally:
        connection.close()

    assert {row["SCHEMA_NAME"] for row in shown} == schemas
    found = sql.ask("SELECT * FROM information_schema.tables", limit=10_000).json()["rows"]
    assert {(row["table_schema"], row["table_name"]) for row in found} == tables
    assert {row["table_type"] for row in found} == {"VIEW"}
    of_columns = sql.ask("SELECT * FROM information_schema.columns", limit=100_000).json()["rows"]
    assert {
        (
            row["table_schema"],
            row["table_name"],
            row["column_name"],
            row["ordinal_position"],
            row["data_type"],
        )
        for row in of_columns
    } == columns


def test_it_is_read_like_any_table(sql: SqlServer) -> None:
    statement = (
        "SELECT t.table_name, count(*) AS n FROM INFORMATION_SCHEMA.Tables t "
        "JOIN spark_catalog.information_schema.columns c USING (table_schema, table_name) "
        "WHERE t.table_schema = 'serve' AND t.table_name IN "
        "(SELECT table_name FROM information_schema.columns WHERE column_name = 'window_start') "
        "GROUP BY t.table_name ORDER BY t.table_name"
    )
    assert [row["table_name"] for row in sql.rows(statement)] == ["sales_per_region", "sales_per_region_late"]
    decimals = "SELECT numeric_precision AS p, numeric_scale AS s FROM information_schema.columns "
    assert sql.rows(f"{decimals} WHERE table_schema = 'serve' AND column_name = 'largest'") == [
        {"p": 12, "s": 2}
    ]
    assert sql.rows("SELECT tables.table_name AS n FROM information_schema.tables LIMIT 1")


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("SELECT * FROM information_schema.routines", "it has schemata, tables, columns and table_status"),
        ("SELECT * FROM elsewhere.information_schema.tables", "there is no schema"),
        (
            "SELECT * FROM information_schema.tables WITH (path = '/etc/passwd')",
            "its options belong to files",
        ),
        ("SELECT * FROM meta.nothing", "cannot be found"),
        ("DROP TABLE information_schema.tables", "is refused"),
    ],
)
def test_what_it_has_not_is_refused(sql: SqlServer, statement: str, says: str) -> None:
    answer = sql.ask(statement)

    assert answer.status_code == 400 and says in answer.text, answer.text


def test_no_schema_that_only_views_read_is_told(sql: SqlServer) -> None:
    found = sql.ask("SELECT DISTINCT table_schema AS name FROM information_schema.columns").json()["rows"]

    assert {row["name"].rstrip("0123456789") for row in found} == {"serve", "release_"}
