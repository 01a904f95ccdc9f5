"""Over Flight SQL what a person has no right to is not there, by whatever statement, value or question."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.reading.adbc import Adbc, AdbcError
from tests.reading.conftest import ALL, SqlServer
from tests.reading.test_flight import SLOW, computed, stream, table
from tests.reading.test_rights import NAME, Person, rita
from twinlake.config import users
from twinlake.reading import wire

__all__ = ["rita"]  # a fixture
MASKS = {"personal": "hash", "latest_order.status": "last4", "internal": "null"}
STATEMENTS = (
    "SELECT * FROM latest_order ORDER BY order_id",
    "TABLE latest_order",
    "SELECT min(customer), max(status), max(amount), count(amount) FROM latest_order",
    "SELECT status, count(DISTINCT customer) FROM latest_order GROUP BY status ORDER BY status",
    "WITH a AS (SELECT * FROM serve.latest_order) SELECT max(length(customer)) FROM a",
    "SELECT (SELECT max(customer) FROM latest_order)",
    "SELECT count(*) FROM latest_order a JOIN (VALUES ('c1'), ('c2')) v(c) ON a.customer = v.c",
    "SELECT count(*) FROM latest_order WHERE customer IN (SELECT 'c' || id FROM range(50))",
    "SELECT max(n) FROM (SELECT length(customer) AS n FROM latest_order UNION ALL SELECT 1)",
    "SELECT first(customer) OVER (PARTITION BY region ORDER BY order_id) AS c FROM latest_order ORDER BY c",
    "SELECT max(length(customer)) FROM release_1.latest_order",
    "SELECT max(customer) FROM (SELECT 1) x, LATERAL (SELECT * FROM latest_order)",
    "EXECUTE IMMEDIATE 'SELECT max(customer) FROM latest_order'",
    "SELECT max(customer) FROM IDENTIFIER('latest_order')",
    "FROM latest_order |> AGGREGATE max(customer) AS n",
    "DESCRIBE latest_order",
    "SHOW TABLES",
    "SELECT * FROM information_schema.columns ORDER BY table_name, ordinal_position",
)


@pytest.fixture(scope="module")
def reader(sql: SqlServer, adbc: Callable[..., Adbc]) -> Adbc:
    return adbc(sql.flight)


@pytest.mark.parametrize(
    "rights",
    [{"masks": MASKS}, {"hidden": ("latest_order.amount",)}, {"rows": {"latest_order": "region = 'r1'"}}],
)
def test_every_statement_finds_what_it_finds_over_http(
    rita: Person, reader: Adbc, rights: dict[str, Any]
) -> None:
    rita.may(**rights)

    for statement in STATEMENTS:
        answer = rita.asks(statement)
        if answer.is_success:
            found = table(reader("arrow", sql=statement, user=NAME))
            over_http = rita.gets(
                "POST", "/query", {"sql": statement, "limit": 10_000}, headers={"Accept": wire.ARROW}
            )
            expected = pa.ipc.open_stream(over_http.content).read_all()
            assert found.equals(expected), statement
            assert found.num_rows == len(answer.json()["rows"]) > 0
        else:
            with pytest.raises(AdbcError) as refused:
                reader("rows", sql=statement, user=NAME)
            assert answer.json()["why"][:100] in str(refused.value), statement


def test_a_value_that_is_bound_meets_the_mask(rita: Person, sql: SqlServer, reader: Adbc) -> None:
    rita.may(masks=MASKS)
    masks = {row["customer"] for row in rita.rows("SELECT customer FROM latest_order")}
    counted = "SELECT count(*) AS n FROM latest_order WHERE customer = ?"

    def bound(statement: str, *values: Any, type_: pa.DataType = None) -> list[Any]:
        sets = stream(pa.table({"a": pa.array(values, type_)}))
        return [
            list(row.values())
            for row in table(reader("bound", sql=statement, sets=sets, user=NAME)).to_pylist()
        ]

    assert bound(counted, "c1", min(masks), None) == [[0], [1], [0]]
    assert bound("SELECT count(*) FROM latest_order WHERE amount > ?", Decimal("-1.00")) == [[0]]
    assert bound("SELECT count(*) FROM latest_order WHERE amount IS DISTINCT FROM ?", Decimal("1.00")) == [
        [50]
    ]
    assert bound("SELECT max(customer) FROM latest_order WHERE order_id > ?", 0) == [[max(masks)]]
    assert bound("SELECT count(*) FROM latest_order WHERE status LIKE ?", "paid", "%") == [[0], [50]]
    assert bound("SELECT max(length(customer)) FROM latest_order WHERE ? IS NOT NULL", "x") == [[64]]
    masked = reader("rows", sql="SELECT max(customer) FROM latest_order WHERE order_id > ?", parameters=[0],
                    as_of="position:orders=1", user=NAME)  # fmt: skip
    assert masked == [[max(masks)]]
    with pytest.raises(AdbcError) as failed:
        bound("SELECT raise_error(concat(?, min(customer))) FROM latest_order", "x")
    assert f"x{min(masks)}" in str(failed.value)
    with pytest.raises(AdbcError) as failed:
        bound("SELECT cast(customer AS int) FROM latest_order WHERE order_id > ?", 0)
    assert not re.search(r"'c\d+'", str(failed.value)) and any(one in str(failed.value) for one in masks)


def test_columns_are_described_as_they_are_seen(rita: Person, reader: Adbc) -> None:
    rita.may(masks={"latest_order.order_id": "hash", "internal": "null"}, hidden=("latest_order.customer",))

    described = table(reader("described", table="latest_order", user=NAME)).schema
    planned = table(reader("columns", sql="SELECT * FROM latest_order", user=NAME)).schema
    found = table(reader("arrow", sql="SELECT * FROM latest_order", user=NAME)).schema
    listed = reader("listed", user=NAME)

    assert described.names == planned.names == found.names and "customer" not in found.names
    assert described.types == planned.types == found.types
    assert found.field("order_id").type == pa.utf8() and found.field("amount").type == pa.decimal128(12, 2)
    assert listed["tables"]["serve.latest_order"] == found.names
    assert (listed["named"]["order_id"], "customer" in listed["named"]) == ("STRING", False)
    value = {"sql": "SELECT 1 FROM latest_order WHERE customer = ?", "parameters": ["c1"]}
    for do, asked in (("rows", {"sql": "SELECT customer FROM latest_order"}), ("rows", value),
                      ("columns", {"sql": "SELECT customer FROM latest_order"})):  # fmt: skip
        with pytest.raises(AdbcError, match="UNRESOLVED_COLUMN") as refused:
            reader(do, user=NAME, **asked)
        assert "latest_order`.`customer" not in str(refused.value)


def test_rows_of_others_are_not_found_by_any_value(rita: Person, sql: SqlServer, reader: Adbc) -> None:
    rita.may(rows={"latest_order": "region = 'r1'"})
    (other,) = sql.rows("SELECT max(order_id) AS id FROM latest_order WHERE region = 'r2'")
    (own,) = sql.rows("SELECT count(*) AS n FROM latest_order WHERE region = 'r1'")

    def counted(where: str, *values: Any) -> Any:
        statement = f"SELECT count(*) FROM latest_order {where}"
        return reader("rows", sql=statement, parameters=[*values] or None, user=NAME)[0][0]

    assert 0 < own["n"] < 50 and counted("") == own["n"]
    assert counted("WHERE order_id = ?", other["id"]) == 0
    assert counted("WHERE region = ? OR true", "r2") == own["n"]
    # what fails for a row that is taken out tells that there is one
    assert counted("WHERE 1 / (order_id - ?) < 9", other["id"]) == own["n"]
    assert counted("a JOIN range(1) r ON 1 / (a.order_id - ?) < 9", other["id"]) == own["n"]


def test_a_statement_that_was_prepared_before_sees_the_mask(rita: Person, reader: Adbc) -> None:
    rita.may(masks={"internal": "null"})
    reader("keep", sql="SELECT max(length(customer)) FROM latest_order WHERE order_id > ?", user=NAME)
    before = reader("kept", value=0)
    rita.may(masks=MASKS)

    assert (before, reader("kept", value=0)) == ([[3]], [[64]])
    rita.may(tables=("serve.sales_*",))
    with pytest.raises(AdbcError, match="may read"):
        reader("kept", value=0)


@pytest.mark.parametrize("change", ["disabled", "removed"])
def test_who_is_let_in_no_more_loses_the_statement_and_is_refused(
    rita: Person, sql: SqlServer, adbc: Callable[..., Adbc], change: str
) -> None:
    rita.may()
    reader, other = adbc(sql.flight), adbc(sql.flight, "other")
    reader("keep", sql="SELECT ?", user=NAME)
    other.begin("rows", sql=SLOW, user=NAME)
    computed(sql, NAME)
    file = sql.scratch / "password"
    if change == "disabled":
        users.set_disabled(file, NAME, True)
    else:
        users.remove(file, NAME)

    try:
        with pytest.raises(AdbcError, match=f"the rights of {NAME} have changed"):
            other.result()
        is_refused_everywhere(reader)
    finally:
        if change == "removed":  # the fixture removes her, too
            rita.may()


def test_another_password_holds_from_the_next_call_on(rita: Person, sql: SqlServer, reader: Adbc) -> None:
    rita.may()
    reader("keep", sql="SELECT ?", user=NAME)
    password = users.new_password(sql.scratch / "password", NAME)

    is_refused_everywhere(reader)
    assert reader("rows", sql="SELECT 1", user=NAME, password=password) == [[1]]


def is_refused_everywhere(reader: Adbc) -> None:
    for do, more in (
        ("kept", {"value": 1}), ("listed", {"user": NAME}), ("rows", {"sql": "SELECT 1", "user": NAME}),
        ("columns", {"sql": "SELECT 1", "user": NAME}),
    ):  # fmt: skip
        with pytest.raises(AdbcError, match="user or password is missing or wrong"):
            reader(do, **more)


def test_a_table_s_rows_are_all_there_for_who_may_see_them(rita: Person, reader: Adbc) -> None:
    rita.may(tables=("serve.orders",))

    assert table(reader("arrow", sql="SELECT * FROM orders", user=NAME)).num_rows == ALL
