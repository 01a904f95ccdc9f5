"""What a person has no right to is not there, or masked, at every way in and by whatever statement."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.reading.conftest import ALL, PASSWORD, Released, SqlServer, over_jdbc
from twinlake.base.errors import UsageError
from twinlake.base.passwords import hashed
from twinlake.base.waiting import wait_for
from twinlake.cli.app import build_app
from twinlake.config import users
from twinlake.config.rights import ALL as ALL_OF_IT
from twinlake.config.rights import Rights
from twinlake.lake.catalog import described
from twinlake.lake.catalog.release_log import live
from twinlake.reading.watermarks import watermark_name

NAME = "rita"
PUBLIC = {
    "latest_order": {"customer": ["personal"], "order_id": [], "region": [], "amount": ["internal"],
                     "ordered_at": [], "status": []},
    "sales_per_region": {"region": [], "window_start": [], "window_end": [], "orders": [], "sales": [],
                         "final": []},
}  # fmt: skip


class Person:
    """Somebody with rights of their own at the SQL server."""

    def __init__(self, sql: SqlServer) -> None:
        self._sql, self._file = sql, sql.scratch / "password"

    def may(self, **rights: Any) -> None:
        if NAME not in users.load(self._file):
            with self._file.open("a") as lines:
                lines.write(f"{hashed(NAME, PASSWORD).strip()}:analyst\n")
        users.set_rights(self._file, NAME, Rights(**rights))
        self.gets("GET", "/names")  # in force from the next request over HTTP on, and within a second anyway

    def asks(self, sql: str, **more: Any) -> httpx.Response:
        return self.gets("POST", "/query", {"sql": sql, "limit": 10_000, **more})

    def gets(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        headers = {"X-Twinlake-Query": "1", **more.pop("headers", {})}
        return httpx.request(
            method, self._sql.url + path, json=body, timeout=120, trust_env=False, auth=(NAME, PASSWORD),
            headers=headers, **more,
        )  # fmt: skip

    def rows(self, sql: str, **more: Any) -> list[dict[str, Any]]:
        answer = self.asks(sql, **more)
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found

    def is_refused(self, sql: str, **more: Any) -> str:
        answer = self.asks(sql, **more)
        assert answer.status_code == 400, (sql, answer.text)
        return answer.text


@pytest.fixture
def rita(sql: SqlServer, released: Released) -> Iterator[Person]:
    person = Person(sql)
    if described.classified(released.lake) != PUBLIC:
        described.publish_classes(released.lake, PUBLIC)
        person.may(masks={"*": "null"})

        def known() -> bool | None:
            return {"region": None} not in person.rows("SELECT DISTINCT region FROM latest_order") or None

        wait_for("the classifications to be in force", known, 10)
    yield person
    users.remove(sql.scratch / "password", NAME)


def listed(found: Any, column: int) -> set[str]:
    names = set()
    while found.next():
        names.add(found.getString(column))
    return names


def test_a_table_that_is_not_theirs_is_not_there(rita: Person, jdbc: Callable[..., Any]) -> None:
    rita.may(tables=("serve.sales_*",))

    assert rita.rows("SELECT count(*) AS n FROM sales_per_region")[0]["n"] > 0
    for statement in (
        "SELECT * FROM serve.latest_order", "SELECT * FROM latest_order", "SELECT * FROM LATEST_ORDER",
        "SELECT * FROM release_1.sales_per_region", "SELECT * FROM orders_valid", "TABLE latest_order",
        "SELECT * FROM spark_catalog.serve.latest_order",
        "SELECT (SELECT max(order_id) FROM latest_order)", "SELECT * FROM IDENTIFIER('serve.latest_order')",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM latest_order)",
        "WITH a AS (SELECT * FROM latest_order) SELECT * FROM a",
        "SELECT * FROM sales_per_region WHERE orders IN (SELECT order_id FROM latest_order)",
        "EXECUTE IMMEDIATE 'SELECT * FROM latest_order'", "EXPLAIN SELECT * FROM latest_order",
        "DESCRIBE latest_order", "DESCRIBE EXTENDED latest_order", "SHOW COLUMNS IN latest_order",
        "SHOW TBLPROPERTIES latest_order", "DESCRIBE QUERY SELECT * FROM latest_order",
        "DESCRIBE latest_order customer", "SHOW CREATE TABLE latest_order", "SHOW TABLES IN release_1",
        "USE release_1", "DESCRIBE SCHEMA release_1", "SHOW TABLE EXTENDED LIKE '*'",
        "CREATE TEMPORARY VIEW v AS SELECT * FROM latest_order",
        "DECLARE v = (SELECT max(order_id) FROM latest_order)",
    ):  # fmt: skip
        assert "may read" in rita.is_refused(statement) or "may not see" in rita.is_refused(statement), (
            statement
        )
    there, none = rita.is_refused("SELECT * FROM latest_order"), rita.is_refused("SELECT * FROM latest_ordex")
    assert there.replace("latest_order", "X") == none.replace("latest_ordex", "X")

    names = {"sales_per_region", "sales_per_region_late"}
    assert {row["tableName"] for row in rita.rows("SHOW TABLES")} == names
    assert {row["viewName"] for row in rita.rows("SHOW VIEWS")} == names
    assert rita.rows("SHOW SCHEMAS") == [{"namespace": "serve"}]
    for table in ("tables", "columns"):
        found = rita.rows(f"SELECT DISTINCT table_schema, table_name FROM information_schema.{table}")
        assert {(row["table_schema"], row["table_name"]) for row in found} == {
            ("serve", one) for one in names
        }
    known = rita.gets("GET", "/names").json()
    assert (known["schemas"], {one["name"] for one in known["tables"]}) == (["serve"], names)
    connection = jdbc(NAME)
    try:
        facts = connection.getMetaData()
        assert listed(facts.getTables(None, "%", "%", None), 3) == names
        assert listed(facts.getColumns(None, "%", "%", "%"), 3) == names
        assert listed(facts.getSchemas(), 1) == {"serve"}
        assert {row[1] for row in over_jdbc(connection, "SHOW TABLES")} == names
        with pytest.raises(Exception, match="may read"):
            over_jdbc(connection, "SELECT * FROM latest_order")
        assert len(over_jdbc(connection, "SELECT * FROM sales_per_region")) > 0
    finally:
        connection.close()


def test_values_are_seen_masked_wherever_they_stand(
    rita: Person, sql: SqlServer, jdbc: Callable[..., Any]
) -> None:
    rita.may(masks={"personal": "hash", "latest_order.status": "last4", "internal": "null"})
    key = bytes.fromhex(users.mask_key(sql.scratch / "password"))

    def mask(value: str) -> str:
        return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()

    whole = sql.rows("SELECT DISTINCT customer, status FROM latest_order")
    customers = {row["customer"] for row in whole}
    hashes = {mask(one) for one in customers}
    assert len(customers) == 50

    seen = rita.rows("SELECT * FROM latest_order")
    assert {row["customer"] for row in seen} == hashes
    assert {row["amount"] for row in seen} == {None}
    assert {row["status"] for row in seen} <= {"****", "****lled"} and len(seen) == 50
    for statement, found in (
        ("SELECT count(*) AS n FROM latest_order WHERE customer = 'c1'", [{"n": 0}]),
        (f"SELECT count(*) AS n FROM latest_order WHERE customer = '{mask('c1')}'", [{"n": 1}]),
        ("SELECT count(*) AS n FROM latest_order WHERE amount IS NOT NULL OR amount > 1", [{"n": 0}]),
        ("SELECT count(*) AS n FROM latest_order a JOIN (VALUES ('c1'), ('c2')) v(c) ON a.customer = v.c",
         [{"n": 0}]),
        ("SELECT count(*) AS n FROM latest_order WHERE customer IN (SELECT 'c' || id FROM range(50))",
         [{"n": 0}]),
        ("WITH a AS (SELECT * FROM serve.latest_order) SELECT max(length(customer)) AS n FROM a",
         [{"n": 64}]),
        ("SELECT max(length(l.customer)) AS n FROM latest_order AS l", [{"n": 64}]),
        ("SELECT max(length(serve.latest_order.customer)) AS n FROM latest_order", [{"n": 64}]),
        ("SELECT count(*) AS n FROM (SELECT 1 AS o) x, "
         "LATERAL (SELECT * FROM latest_order WHERE length(customer) < 64)", [{"n": 0}]),
        ("SELECT count(*) AS n FROM latest_order a JOIN latest_order b ON a.customer = b.customer",
         [{"n": 50}]),
        ("SELECT max(length(customer)) AS n FROM (TABLE latest_order UNION ALL TABLE latest_order)",
         [{"n": 64}]),
        ("WITH a AS (TABLE latest_order) SELECT count(*) AS n FROM a x JOIN a y ON x.customer = y.customer "
         "WHERE y.customer IN (SELECT customer FROM latest_order)", [{"n": 50}]),
        ("FROM latest_order |> AGGREGATE max(length(customer)) AS n", [{"n": 64}]),
        ("EXECUTE IMMEDIATE 'SELECT max(length(customer)) AS n FROM latest_order'", [{"n": 64}]),
        ("SELECT max(length(customer)) AS n FROM IDENTIFIER('latest_order')", [{"n": 64}]),
        ("SELECT max(length(customer)) AS n FROM release_1.latest_order", [{"n": 64}]),
        ("SELECT count(DISTINCT customer) AS n FROM latest_order", [{"n": 50}]),
    ):  # fmt: skip
        assert rita.rows(statement) == found, statement
    ordered = rita.rows("SELECT customer FROM latest_order ORDER BY customer")
    assert [row["customer"] for row in ordered] == sorted(hashes)
    past = rita.rows("SELECT DISTINCT customer FROM serve.latest_order", as_of="position:orders=1")
    assert {row["customer"] for row in past} == hashes
    failed = rita.is_refused("SELECT raise_error(min(customer)) FROM latest_order")
    assert min(hashes) in failed
    failed = rita.is_refused("SELECT cast(customer AS int) FROM latest_order WHERE length(customer) < 100")
    assert any(one in failed for one in hashes) and "'c1'" not in failed
    types = {row["col_name"]: row["data_type"] for row in rita.rows("DESCRIBE latest_order")}
    assert (types["customer"], types["amount"]) == ("string", "decimal(12,2)")
    assert "static_invoke" in str(rita.rows("EXPLAIN SELECT * FROM latest_order")).lower()
    assert key.hex() not in str(rita.rows("EXPLAIN EXTENDED SELECT * FROM latest_order"))

    connection = jdbc(NAME)
    try:
        assert {row[0] for row in over_jdbc(connection, "SELECT customer FROM latest_order")} == hashes
        connection.createStatement().execute(
            "CREATE TEMPORARY VIEW mine AS SELECT customer FROM serve.latest_order"
        )
        assert {row[0] for row in over_jdbc(connection, "SELECT customer FROM mine")} == hashes
        connection.createStatement().execute("CREATE TEMPORARY VIEW too AS SELECT customer FROM latest_order")
        assert {row[0] for row in over_jdbc(connection, "SELECT customer FROM too")} == hashes
    finally:
        connection.close()


def test_a_column_that_nobody_has_classified_has_no_value(rita: Person, released: Released) -> None:
    known = PUBLIC["latest_order"].copy()
    del known["region"]
    described.publish_classes(released.lake, {**PUBLIC, "latest_order": known})
    rita.may(masks={"*": "hash"})

    def masked() -> bool | None:
        found = rita.rows("SELECT DISTINCT region, status FROM latest_order")
        assert None not in {row["status"] for row in found}
        return {row["region"] for row in found} == {None} or None

    wait_for("the classifications to be in force", masked, 10)
    assert {row["value"] for row in rita.rows("SELECT value FROM orders_quarantine")} == {None}


def test_rows_that_are_not_theirs_are_in_no_answer(rita: Person, sql: SqlServer) -> None:
    rita.may(rows={"latest_order": "region = 'r1'"})
    (other,) = sql.rows("SELECT max(order_id) AS id FROM latest_order WHERE region = 'r2'")
    (own,) = sql.rows("SELECT count(*) AS n FROM latest_order WHERE region = 'r1'")

    assert 0 < own["n"] < 50 and rita.rows("SELECT count(*) AS n FROM latest_order") == [own]
    assert rita.rows("SELECT DISTINCT region FROM latest_order") == [{"region": "r1"}]
    assert rita.rows(f"SELECT * FROM latest_order WHERE order_id = {other['id']}") == []
    # what fails for a row that is taken out tells that there is one
    assert len(rita.rows(f"SELECT 1 / (order_id - {other['id']}) AS q FROM latest_order")) == own["n"]
    assert len(rita.rows(f"SELECT * FROM latest_order WHERE 1 / (order_id - {other['id']}) < 9")) == own["n"]
    assert rita.rows(
        f"SELECT count(*) AS n FROM latest_order a JOIN range(1) r ON 1 / (a.order_id - {other['id']}) < 9"
    ) == [own]
    around = (
        "SELECT count(*) AS n FROM (SELECT 'r2' AS region) o, "
        "LATERAL (SELECT * FROM latest_order l WHERE o.region = l.region)"
    )
    assert rita.rows(around) == [{"n": 0}]
    past = rita.rows("SELECT DISTINCT region FROM latest_order", as_of="position:orders=1")
    assert past == [{"region": "r1"}]


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("zone = 'r1'", "names zone, which is no column"),
        ("region = ", "cannot be read as SQL"),
        ("region = 'r1') OR (true", "cannot be read as SQL"),
        ("region IN (SELECT region FROM serve.sales_per_region)", "reads another table"),
        ("amount", "is wrong: [DATATYPE_MISMATCH"),
        ("no_such(region)", "is wrong: [UNRESOLVED_ROUTINE]"),
    ],
)
def test_a_condition_that_cannot_hold_lets_nothing_through(rita: Person, condition: str, why: str) -> None:
    rita.may(rows={"latest_order": condition})

    assert why in rita.is_refused("SELECT * FROM latest_order")
    assert why in rita.is_refused(
        "SELECT * FROM (SELECT 'r1' AS zone) o, LATERAL (SELECT * FROM latest_order)"
    )
    assert rita.rows("SELECT count(*) AS n FROM sales_per_region")[0]["n"] > 0


@pytest.mark.parametrize(
    ("condition", "means"),
    [
        ("cast(status AS INT) = 1", "false"),
        ("coalesce(cast(status AS INT), 1) = 1", "true"),
        ("status = 1 OR region = 'r1'", "region = 'r1'"),
        ("amount / (order_id - order_id) > 0 OR order_id + 9223372036854775807 < 0", "order_id > 0"),
        ("cast(ordered_at AS STRING) < '2023-11-14 22:40:00'", "ordered_at < '2023-11-14T22:40:00Z'"),
        ("hour(ordered_at) = 22", "hour(ordered_at) = 22"),
    ],
)
def test_a_condition_means_the_same_in_every_session_and_raises_in_none(
    rita: Person, sql: SqlServer, jdbc: Callable[..., Any], condition: str, means: str
) -> None:
    asked = "SELECT order_id FROM latest_order ORDER BY 1"
    meant = [str(row["order_id"]) for row in sql.rows(asked.replace("ORDER", f"WHERE {means} ORDER"))]
    rita.may(rows={"latest_order": condition})

    assert [str(row["order_id"]) for row in rita.rows(asked)] == meant
    connection = jdbc(NAME)
    for setting in (
        "spark.sql.ansi.enabled = false", "spark.sql.ansi.enabled = true", "TIME ZONE 'America/New_York'",
        "TIME ZONE 'Asia/Tokyo'",
    ):  # fmt: skip
        over_jdbc(connection, f"SET {setting}")
        assert [id for (id,) in over_jdbc(connection, asked)] == meant, setting
    connection.close()


def test_a_hidden_column_is_not_there(rita: Person) -> None:
    rita.may(hidden=("latest_order.customer",))

    assert "customer" not in rita.rows("SELECT * FROM latest_order LIMIT 1")[0]
    failed = rita.is_refused("SELECT customer FROM latest_order")
    assert "UNRESOLVED_COLUMN" in failed and failed.count("customer") == 1
    assert "customer" not in str(rita.rows("DESCRIBE EXTENDED latest_order"))
    assert "customer" not in str(rita.rows("SHOW COLUMNS IN latest_order"))
    assert "customer" not in str(
        rita.rows("SELECT * FROM information_schema.columns WHERE table_name = 'latest_order'")
    )
    assert "may not see" in rita.is_refused("DESCRIBE latest_order customer")
    assert "may not see" in rita.is_refused("SHOW CREATE TABLE latest_order")
    assert "may not see" in rita.is_refused("DESCRIBE EXTENDED latest_order AS JSON")
    for command in (
        "DESCRIBE {}", "DESCRIBE EXTENDED {}", "DESCRIBE EXTENDED {} AS JSON", "SHOW CREATE TABLE {}",
        "SHOW TBLPROPERTIES {}", "DESCRIBE {} region",
    ):  # fmt: skip
        turned = command.format("IDENTIFIER('latest_' || 'order')")
        assert "may not see all of it" in rita.is_refused(turned), turned
        assert "may not see all of it" in rita.is_refused(f"EXECUTE IMMEDIATE \"{turned}\""), turned
    assert "customer" not in str(rita.rows("SHOW COLUMNS IN IDENTIFIER('latest_' || 'order')"))


def test_what_only_views_read_is_not_masked_for_them(
    rita: Person, sql: SqlServer, released: Released
) -> None:
    release = live(released.lake)
    assert release is not None
    watermark = watermark_name("sales_per_region", release.tables["sales_per_region"], "orders")
    rita.may(masks={"personal": "null"})
    asked = "SELECT final, count(*) AS n FROM sales_per_region GROUP BY final ORDER BY final"

    wait_for("the classifications", lambda: rita.rows(asked) == sql.rows(asked) or None, 10)
    assert {row["final"] for row in rita.rows(asked)} == {False, True}
    assert "read as it is" in rita.is_refused(f"SELECT * FROM meta.{watermark}")


def test_who_was_let_in_with_more_rights_has_those_of_now(rita: Person) -> None:
    """The rights change while the body of the request is on its way."""
    rita.may()
    asked = {"table": "latest_order", "key": {"customer": "c1"}}
    assert rita.gets("POST", "/explain", asked).is_success

    def body() -> Iterator[bytes]:
        text = json.dumps(asked).encode()
        yield text[:5]
        time.sleep(1)
        rita.may(masks={"latest_order.customer": "null"})
        yield text[5:]

    late = rita.gets("POST", "/explain", content=body(), headers={"Content-Type": "application/json"})

    assert late.status_code == 400 and "rights hold back" in late.text
    rita.may(tables=("serve.sales_*",))
    there, none = (
        rita.gets("POST", "/explain", {**asked, "table": table}).text
        for table in ("latest_order", "latest_ordex")
    )
    assert there == none.replace("latest_ordex", "latest_order")
    assert "amount" not in there and "sales" not in there
    rita.may(masks={"sales_per_region.before": "null"})
    assert "rights hold back" in rita.gets(
        "POST", "/explain", {"table": "sales_per_region", "key": {}, "as_of": "release:1"}
    ).text


def test_connections_end_with_the_password_that_opened_them(
    rita: Person, sql: SqlServer, jdbc: Callable[..., Any]
) -> None:
    rita.may(masks={"personal": "hash"})
    mine, other = jdbc(NAME), jdbc("ben")
    over_jdbc(mine, "SELECT 1")

    users.new_password(sql.scratch / "password", NAME)

    def is_ended() -> bool | None:
        try:
            over_jdbc(mine, "SELECT 1")
        except Exception as error:
            assert re.search("(?i)session|OperationHandle|password of rita has changed", str(error))
            return True
        return None

    wait_for("the connection to end", is_ended, 30)
    assert over_jdbc(other, "SELECT 1") == [["1"]]
    other.close()


def test_what_shows_rows_of_others_beside_statements_is_refused(rita: Person) -> None:
    rita.may(rows={"latest_order": "region = 'r1'"})

    asked = {"table": "latest_order", "key": {"customer": "c1"}}
    explained = rita.gets("POST", "/explain", asked)
    assert explained.status_code == 400 and "rights hold back" in explained.text
    for path in ("reports", "comparisons", "gates"):
        answer = rita.gets("GET", f"/{path}/p1")
        assert answer.status_code == 400 and "rights hold back" in answer.text


def test_who_loses_a_right_is_disconnected_and_their_statements_end(
    rita: Person, sql: SqlServer, jdbc: Callable[..., Any]
) -> None:
    rita.may(masks={"personal": "hash"})
    connection, idle = jdbc(NAME), jdbc(NAME)
    other = jdbc("ben")
    endless = "SELECT count(*) FROM range(100000000000) a WHERE sqrt(a.id) < 0"
    ends: list[Any] = []

    def over_http() -> None:
        ends.append(rita.asks(endless).text)

    def over_hive() -> None:
        with pytest.raises(Exception) as failed:
            over_jdbc(connection, endless)
        ends.append(str(failed.value))

    threads = [threading.Thread(target=one) for one in (over_http, over_hive)]
    try:
        over_jdbc(idle, "SELECT 1")
        for one in threads:
            one.start()
        wait_for("both to run", lambda: len(running(sql)) == 2 or ends or None, 60)
        assert not ends
        began = time.monotonic()
        rita.may(masks={"personal": "null"})
        for one in threads:
            one.join(30)

        assert time.monotonic() - began < 15 and len(ends) == 2
        assert all("rights of rita have changed" in one for one in ends), ends
        with pytest.raises(Exception, match=r"(?i)session"):
            over_jdbc(idle, "SELECT 1")
        assert over_jdbc(other, "SELECT 1") == [["1"]]
        assert {row["customer"] for row in rita.rows("SELECT customer FROM latest_order")} == {None}
    finally:
        other.close()


def running(sql: SqlServer) -> list[Any]:
    found = httpx.get(f"{sql.url}/queries", auth=(NAME, PASSWORD), trust_env=False, timeout=30).json()
    return [one for one in found if one["state"] == "running"]


def test_who_is_disabled_or_removed_reads_nothing(
    rita: Person, sql: SqlServer, jdbc: Callable[..., Any]
) -> None:
    rita.may(masks={"personal": "hash"})
    connection = jdbc(NAME)
    over_jdbc(connection, "SELECT * FROM latest_order")

    users.set_disabled(sql.scratch / "password", NAME, True)

    assert rita.asks("SELECT 1").status_code == 401
    with pytest.raises(Exception, match=r"(?i)session|rights of rita have changed"):
        over_jdbc(connection, "SELECT * FROM latest_order")
    with pytest.raises(Exception, match=r"(?i)login|password"):
        jdbc(NAME)
    users.set_disabled(sql.scratch / "password", NAME, False)
    assert rita.asks("SELECT 1").status_code == 200


def test_who_was_added_a_moment_ago_connects_over_jdbc(sql: SqlServer, jdbc: Callable[..., Any]) -> None:
    file = sql.scratch / "password"
    for number in range(3):
        with file.open("a") as lines:
            lines.write(f"{hashed(f'anew{number}', PASSWORD).strip()}:analyst\n")
        try:
            connection = jdbc(f"anew{number}")
            assert over_jdbc(connection, "SELECT count(*) FROM latest_order") == [["50"]]
            connection.close()
        finally:
            users.remove(file, f"anew{number}")


def test_a_statement_goes_past_no_view_that_was_put_in_place(rita: Person) -> None:
    """By rights that hold nothing back everything is as before; `SHOW TABLES` has temporary names, too."""
    rita.may()

    assert rita.rows("SELECT count(*) AS n FROM orders_valid")[0]["n"] == ALL
    assert json.loads(json.dumps(rita.rows("SHOW TABLES")))[0].keys() == {
        "namespace",
        "tableName",
        "isTemporary",
    }


def test_the_command_asks_the_server_whether_a_condition_is_sound(
    sql: SqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "access" / "users"
    users.add(file, NAME, "analyst")
    sql.services.save(tmp_path / "services.json")
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path))

    def rights(*words: str) -> Result:
        return CliRunner().invoke(build_app("users"), ["users", "rights", NAME, *words])

    with pytest.raises(UsageError, match="the condition of latest_order is wrong") as wrong:
        raise rights("--rows", "latest_order: zone = 'r1'").exception or AssertionError
    assert "zone" in wrong.value.why and users.load(file)[NAME].rights == ALL_OF_IT
    done = rights(
        "--rows", "latest_order: region = 'r1' -- theirs", "--tables", "latest_*", "--mask", "*=null"
    )
    assert done.exit_code == 0, done.output
    assert users.load(file)[NAME].rights.rows == {"latest_order": "region = 'r1' -- theirs"}
    assert json.loads(rights().stdout) == users.load(file)[NAME].rights.to_json()
    assert rights("--all").exit_code == 0 and users.load(file)[NAME].rights == ALL_OF_IT
