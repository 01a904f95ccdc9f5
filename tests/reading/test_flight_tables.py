"""Over Flight SQL a statement reads one release, whatever becomes live, and ends with its client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from jobs.tables import orders
from tests.reading.adbc import Adbc, AdbcError
from tests.reading.conftest import ALL, PAID, Released, SqlServer
from tests.reading.test_flight import SLOW, computed, over_http, running, table
from tests.reading.test_over_limits import LARGE
from tests.reading.test_told import WRONG
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.version import Version

TYPED = replace(
    orders.TABLE,
    name="typed",
    columns={
        "order_id": "order_id",
        "boolean": "order_id % 2 = 0",
        "tinyint": "cast(order_id % 100 AS TINYINT)",
        "smallint": "cast(order_id AS SMALLINT)",
        "int": "cast(order_id AS INT)",
        "float": "cast(order_id / 3 AS FLOAT)",
        "double": "order_id / 7",
        "decimal": "cast(order_id / 100 AS DECIMAL(38,18))",
        "text": "concat(customer, 'ä')",
        "binary": "encode(region, 'UTF-8')",
        "date": "cast(ordered_at AS DATE)",
        "time": "ordered_at",
        "time_without_zone": "cast(ordered_at AS TIMESTAMP_NTZ)",
        "list": "array(order_id, NULL)",
        "struct": "named_struct('a', region, 'b', array(named_struct('c', amount)))",
        "map": "map(region, array(order_id))",
        "nothing": "if(order_id < 0, customer, NULL)",
    },
)
"""A column of every type that a table may have, but for `order_id`, BIGINT."""
SEES = "SELECT cast(sum(orders) AS BIGINT) AS n FROM sales_per_region WHERE orders > ?"


@pytest.fixture(scope="module")
def reader(sql: SqlServer, adbc: Callable[..., Adbc]) -> Adbc:
    return adbc(sql.flight)


@contextmanager
def live(sql: SqlServer, released: Released, *versions: Version) -> Any:
    """These versions beside the others, until the block ends."""
    made = released.promote(released.all_orders, *versions)
    sql.wait_until(lambda status: status["release"] == made.number)
    try:
        yield
    finally:
        back = released.promote(released.all_orders)
        sql.wait_until(lambda status: status["release"] == back.number)


def test_every_type_of_a_table_s_column_is_what_http_answers(
    sql: SqlServer, released: Released, reader: Adbc
) -> None:
    version = replace(
        released.others[0], table="typed", fingerprint="0" * 11 + "9", build=9, definition=TYPED.to_json()
    )
    version.save(released.lake)
    statement = "SELECT * FROM typed ORDER BY order_id"

    with live(sql, released, version):
        found = table(reader("arrow", sql=statement))
        expected = over_http(sql, statement, 10_000)
        described = table(reader("described", table="typed")).schema
        planned = table(reader("columns", sql="SELECT * FROM typed")).schema
        names = reader("types_of", table="typed")

    assert found.num_rows == ALL and found.column_names[: len(TYPED.columns)] == [*TYPED.columns]
    assert found.equals(expected)
    assert described.types == planned.types == found.schema.types
    assert found.schema.field("time").type == pa.timestamp("us", "UTC")
    assert {name: type_ for name, type_ in names.items() if not name.startswith("_")} == {
        "order_id": "BIGINT", "boolean": "BOOLEAN", "tinyint": "TINYINT", "smallint": "SMALLINT",
        "int": "INT", "float": "FLOAT", "double": "DOUBLE", "decimal": "DECIMAL(38,18)", "text": "STRING",
        "binary": "BINARY", "date": "DATE", "time": "TIMESTAMP", "time_without_zone": "TIMESTAMP_NTZ",
        "list": "ARRAY<BIGINT>", "struct": "STRUCT<a: STRING, b: ARRAY<STRUCT<c: DECIMAL(12,2)>> NOT NULL>",
        "map": "MAP<STRING, ARRAY<BIGINT>>", "nothing": "STRING",
    }  # fmt: skip


def test_each_statement_of_a_loop_reads_one_release_while_others_become_live(
    sql: SqlServer, released: Released, adbc: Callable[..., Adbc]
) -> None:
    looping, seen = adbc(sql.flight, "looping"), dict[int, int]()
    looping.begin("looped", sql=SEES, values=[0, -1, 0, -2], seconds=20)
    for _ in range(4):
        for version, orders_in_it in ((released.paid_orders, PAID), (released.all_orders, ALL)):
            made = released.promote(version)
            seen[made.number] = orders_in_it
            sql.wait_until(lambda status, made=made: status["release"] == made.number)

    count, found = looping.result()
    assert count > 2 and len(found) > 1
    for release, answers in found.items():
        expected = seen.get(int(release), ALL)
        assert answers == [[[expected]] * 4], release


def test_a_client_that_leaves_ends_its_statement(sql: SqlServer, adbc: Callable[..., Adbc]) -> None:
    leaving = adbc(sql.flight, "leaving")
    leaving.begin("rows", sql=SLOW)
    computed(sql, "analyst")

    leaving.end()

    wait_for("it to end", lambda: not running(sql, "analyst") or None, 30)
    sql.until_idle()


@pytest.mark.parametrize("statement", [one for one in WRONG if "RLIKE" not in one])
def test_an_error_says_what_happened_where_and_what_to_do(reader: Adbc, statement: str) -> None:
    with pytest.raises(AdbcError) as raised:
        reader("rows", sql=statement)

    assert [part for part in WRONG[statement] if part not in str(raised.value)] == []
    assert "at org.apache.spark" not in str(raised.value)


@pytest.mark.faults
def test_bytes_over_the_limit_are_an_error_and_rows_have_none(sql: SqlServer, reader: Adbc) -> None:
    with pytest.raises(AdbcError, match=r"(?s)more than 268,435,456 bytes.*ask for fewer rows or columns"):
        reader("rows", sql=LARGE)

    assert reader("counted", sql="SELECT id FROM range(3000000)") == 3_000_000
