"""The readers' doors, attacked: each hostile statement through HTTP and through JDBC."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.reading.conftest import ALL, PASSWORD, SqlServer

REFUSED = "is refused, because"
SPARKS_OWN = (
    "UNRESOLVED_ROUTINE", "EXPECT_TABLE_NOT_VIEW", "UNSUPPORTED_FEATURE.SQL_SCRIPTING", "FEATURE_NOT_ENABLED",
    "MISSING_CATALOG_ABILITY.PROCEDURES", "UNSUPPORTED_FILE_SYSTEM", "FAILED_TO_CREATE_PLAN_FOR_DIRECT_QUERY",
    "NUM_COLUMNS_MISMATCH", "REQUIRES_SINGLE_PART_NAMESPACE", "PARSE_SYNTAX_ERROR",
    "TABLE_OR_VIEW_NOT_FOUND",
)  # fmt: skip
"""Why Spark itself does not run a hostile statement, before our rule is asked."""

HOSTILE: dict[str, list[str]] = {
    "changes the catalog": [
        "DROP VIEW serve.orders",
        "DROP VIEW IF EXISTS serve.orders",
        "ALTER VIEW serve.orders AS SELECT 1",
        "CREATE OR REPLACE VIEW serve.orders AS SELECT 1",
        "CREATE VIEW serve.mine AS SELECT 1",
        "CREATE GLOBAL TEMPORARY VIEW mine AS SELECT 1",
        "ALTER VIEW serve.orders RENAME TO serve.gone",
        "ALTER VIEW serve.orders SET TBLPROPERTIES ('a' = 'b')",
        "CREATE DATABASE mine",
        "CREATE DATABASE mine LOCATION '{scratch}/mine'",
        "DROP DATABASE serve CASCADE",
        "ALTER DATABASE serve SET LOCATION '{scratch}/elsewhere'",
        "COMMENT ON DATABASE serve IS 'x'",
        "EXECUTE IMMEDIATE 'DROP VIEW serve.orders'",
        "DROP VIEW IDENTIFIER('serve.orders')",
        "BEGIN DROP VIEW serve.orders; END",
    ],
    "writes": [
        "CREATE TABLE serve.t AS SELECT 1 AS a",
        "CREATE TABLE t (a INT) USING delta LOCATION '{scratch}/t'",
        "CREATE TABLE delta.`{scratch}/t` (a INT) USING delta",
        "REPLACE TABLE delta.`{lake}/logs/orders` (a INT) USING delta",
        "INSERT INTO delta.`{lake}/logs/orders` SELECT * FROM delta.`{lake}/logs/orders`",
        "INSERT INTO serve.orders SELECT * FROM serve.orders",
        "WITH a AS (SELECT 1) INSERT INTO serve.orders SELECT * FROM a",
        "INSERT OVERWRITE DIRECTORY '{scratch}/out' USING csv SELECT 1",
        "INSERT OVERWRITE LOCAL DIRECTORY '{scratch}/out' USING csv SELECT 1",
        "DELETE FROM delta.`{lake}/logs/orders`",
        "UPDATE delta.`{lake}/logs/orders` SET batch = 0",
        "MERGE INTO delta.`{lake}/logs/orders` t USING (SELECT 1 b) s ON batch = b WHEN MATCHED THEN DELETE",
        "VACUUM delta.`{lake}/logs/orders` RETAIN 0 HOURS",
        "OPTIMIZE delta.`{lake}/logs/orders`",
        "RESTORE delta.`{lake}/logs/orders` TO VERSION AS OF 0",
        "ALTER TABLE delta.`{lake}/logs/orders` ADD COLUMNS (x INT)",
        "CONVERT TO DELTA parquet.`{lake}/logs/orders`",
        "TRUNCATE TABLE delta.`{lake}/logs/orders`",
        "CACHE TABLE serve.orders",
        "CACHE TABLE mine AS SELECT 1",
        "ANALYZE TABLE delta.`{lake}/logs/orders` COMPUTE STATISTICS",
    ],
    "runs programs": [
        "SELECT TRANSFORM(1) USING 'id' AS x",
        "SELECT (SELECT max(x) FROM (SELECT TRANSFORM(1) USING 'id' AS x))",
        "FROM serve.orders MAP order_id USING 'id' AS x",
        "EXECUTE IMMEDIATE \"SELECT TRANSFORM(1) USING 'id' AS x\"",
        "CREATE TEMPORARY VIEW run AS SELECT TRANSFORM(1) USING 'id' AS x",
        "ADD JAR '{scratch}/x.jar'",
        "ADD FILE '/etc/passwd'",
        "ADD ARCHIVE '{scratch}/x.zip'",
        "CREATE FUNCTION f AS 'java.lang.Runtime' USING JAR '{scratch}/x.jar'",
        "CREATE TEMPORARY FUNCTION f AS 'org.apache.hadoop.hive.ql.udf.generic.GenericUDFReflect'",
        "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x + 1",
        "SELECT java_method('java.lang.System', 'getProperty', 'user.name')",
        "SELECT reflect('java.lang.System', 'getProperty', 'user.name')",
        "SELECT try_reflect('java.lang.System', 'getProperty', 'user.name')",
        "SELECT * FROM serve.orders WHERE reflect('java.lang.System', 'getProperty', 'a') = customer",
        "CALL system.run('id')",
    ],
    "reads files": [
        "SELECT * FROM text.`/etc/passwd`",
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM binaryFile.`/etc/passwd`",
        "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
        "SELECT (SELECT max(value) FROM text.`/etc/passwd`)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM text.`/etc/passwd`)",
        "WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT count(*) FROM a",
        "SELECT * FROM serve.orders o JOIN text.`/etc/passwd` p ON o.customer = p.value",
        "SELECT * FROM serve.orders UNION ALL SELECT * FROM delta.`{lake}/logs/orders`",
        "SELECT * FROM delta.`{lake}/logs/orders`",
        "SELECT * FROM parquet.`{lake}/logs/orders`",
        "SELECT * FROM delta.`{lake}/logs/orders` VERSION AS OF 1",
        "SELECT * FROM table_changes_by_path('{lake}/logs/orders', 0)",
        "SELECT * FROM table_changes('delta.`{lake}/logs/orders`', 0)",
        "SELECT * FROM twinlake_live('{lake}/logs/orders')",
        "SELECT * FROM twinlake_past('as_of/orders')",
        "SELECT * FROM `TWINLAKE_live`('{lake}/logs/orders')",
        "SELECT count(*) FROM serve.orders o, LATERAL twinlake_live('{lake}/logs/orders') l",
        "CREATE TEMPORARY VIEW v AS SELECT * FROM twinlake_live('{lake}/logs/orders')",
        "EXECUTE IMMEDIATE \"SELECT * FROM twinlake_live('{lake}/logs/orders')\"",
        "SELECT * FROM IDENTIFIER('twinlake_live')('{lake}/logs/orders')",
        "TABLE text.`/etc/passwd`",
        "CREATE TEMPORARY VIEW v USING text OPTIONS (path '/etc/passwd')",
        "CREATE TEMPORARY VIEW v AS SELECT * FROM text.`/etc/passwd`",
        "EXECUTE IMMEDIATE 'SELECT * FROM text.`/etc/passwd`'",
        "DESCRIBE QUERY SELECT * FROM text.`/etc/passwd`",
        "DESCRIBE TABLE delta.`{lake}/logs/orders`",
        "DESCRIBE HISTORY delta.`{lake}/logs/orders`",
        "DESCRIBE DETAIL '{lake}/logs/orders'",
        "SHOW COLUMNS IN delta.`{lake}/logs/orders`",
        "SELECT from_avro(X'00', '\"string\"', map('avroSchemaUrl', 'file:/etc/passwd'))",
        "SELECT from_xml('<a/>', 'a STRING', map('rowValidationXSDPath', 'http://127.0.0.1:{port}/status'))",
        "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/passwd'))",
        "SELECT from_protobuf(X'00', 'M', '/etc/passwd')",
        "LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE serve.orders",
        "SELECT * FROM serve.orders WITH ('path' = '/etc/passwd')",
        "SELECT * FROM serve.orders WITH (path = '{lake}/logs/orders')",
        "SELECT input_file_name() FROM serve.orders",
        "SELECT * FROM nothing_known('{lake}/logs/orders')",
        "SELECT system.builtin.from_avro(X'00', 'x', map('avroSchemaUrl', 'file:/etc/passwd'))",
        "LIST JARS",
        "LIST FILES",
    ],
    "changes or shows settings": [
        "SET spark.sql.variable.substitute=true",
        "SET spark.sql.runSQLOnFiles=true",
        "SET spark.sql.scripting.enabled=true",
        "SET spark.sql.extensions=",
        "SET spark.sql.shuffle.partitions=2000000000",
        "SET spark.hadoop.fs.defaultFS=file:///etc",
        "SET env:PATH",
        "SET system:user.home",
        "SET hiveconf:hive.server2.authentication=NONE",
        "SET",
        "SET -v",
        "SELECT * FROM python_worker_logs()",
        "REFRESH '/etc'",
        "CLEAR CACHE",
    ],
}
EVERY = [pytest.param(text, id=text[:60]) for texts in HOSTILE.values() for text in texts]


@pytest.fixture(scope="module")
def places(sql: SqlServer) -> dict[str, str]:
    return {"lake": str(sql.home / "lake"), "scratch": str(sql.scratch), "port": str(sql.port)}


@pytest.fixture(scope="module", autouse=True)
def unharmed(sql: SqlServer) -> Any:
    """After all that was tried the views show what they showed, and nothing was written."""
    files = {path for path in (sql.home / "lake").rglob("*")}
    yield
    assert sql.rows("SELECT count(*) AS n FROM serve.orders") == [{"n": ALL}]
    assert {path for path in (sql.home / "lake").rglob("*")} == files
    assert not {"t", "out", "mine", "elsewhere"} & {path.name for path in sql.scratch.iterdir()}


def test_there_are_enough_of_them() -> None:
    assert len(EVERY) >= 60


@pytest.mark.parametrize("statement", EVERY)
def test_http_refuses(sql: SqlServer, places: dict[str, str], statement: str) -> None:
    answer = sql.ask(statement.format(**places))

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] == "UsageError"
    assert any(why in answer.text for why in (REFUSED, *SPARKS_OWN)), answer.text
    assert "root:" not in answer.text and "at org.apache.spark" not in answer.text


def message(error: Exception) -> str:
    """What Java said."""
    raised = getattr(error, "java_exception", None)
    return str(raised.getMessage() if raised else error)


@pytest.fixture(scope="module")
def connection(sql: SqlServer, jdbc: Callable[..., Any]) -> Any:
    found = jdbc()
    yield found
    found.close()


@pytest.mark.parametrize("statement", EVERY)
def test_jdbc_refuses(sql: SqlServer, connection: Any, places: dict[str, str], statement: str) -> None:
    asked = connection.createStatement()

    with pytest.raises(Exception) as refused:
        asked.execute(statement.format(**places))
    told = message(refused.value)
    assert any(why in told for why in (REFUSED, *SPARKS_OWN)), told
    assert "root:" not in told
    asked.close()


def test_an_insert_is_refused_as_a_write(sql: SqlServer) -> None:
    """Spark marks its target with an option that nobody wrote."""
    answer = sql.ask("INSERT INTO serve.orders SELECT * FROM serve.orders")

    assert answer.status_code == 400, answer.text
    assert "a statement that writes is refused" in answer.json()["why"]


def test_a_variable_hides_no_statement(connection: Any) -> None:
    connection.createStatement().execute("DECLARE OR REPLACE VARIABLE told = 'DROP VIEW serve.orders'")

    with pytest.raises(Exception, match=REFUSED):
        connection.createStatement().execute("EXECUTE IMMEDIATE told")


def test_the_environment_is_no_text_in_a_statement(sql: SqlServer, connection: Any) -> None:
    assert sql.rows("SELECT '${env:PATH}${system:user.home}' AS a") == [
        {"a": "${env:PATH}${system:user.home}"}
    ]
    found = connection.createStatement().executeQuery("SELECT '${env:PATH}'")
    assert found.next() and found.getString(1) == "${env:PATH}"


@pytest.mark.parametrize("inner", ["DROP VIEW serve.orders", "SELECT * FROM text.`/etc/passwd`"])
def test_explain_tells_the_refusal(sql: SqlServer, inner: str) -> None:
    assert REFUSED in sql.ask(f"EXPLAIN {inner}").text


def test_an_xml_document_names_no_file(sql: SqlServer) -> None:
    document = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'

    assert sql.rows(f"SELECT xpath_string('{document}', 'a') AS x") == [{"x": ""}]


ALLOWED = [
    "SELECT count(*) FROM serve.orders",
    "WITH a AS (SELECT region FROM serve.orders) SELECT region, count(*) FROM a GROUP BY ALL LIMIT 3",
    "SELECT region, row_number() OVER (PARTITION BY region ORDER BY order_id) FROM serve.orders",
    "SELECT * FROM serve.orders o WHERE amount > (SELECT avg(amount) FROM serve.orders)",
    "SELECT * FROM (SELECT status, amount FROM serve.orders) PIVOT (sum(amount) FOR status IN ('paid'))",
    "SELECT explode(sequence(1, 3))",
    "SELECT * FROM serve.orders TABLESAMPLE (10 PERCENT)",
    "SELECT a.region FROM serve.orders a FULL JOIN serve.latest_order b USING (customer)",
    "SELECT region FROM serve.orders EXCEPT SELECT region FROM serve.sales_per_region",
    "SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)",
    "SELECT t.* FROM serve.latest_order, LATERAL (SELECT customer AS c) t",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
    "SELECT DISTINCT region FROM release_1.sales_per_region",
    "SELECT url_encode(customer), aes_encrypt('a', '0000111122223333') FROM serve.orders",
    "SELECT from_json('{\"a\":1}', 'a INT'), to_csv(struct(1)), parse_url('http://a/b', 'HOST')",
    "SHOW TABLES IN serve",
    "SHOW VIEWS IN serve",
    "SHOW DATABASES",
    "SHOW SCHEMAS",
    "SHOW COLUMNS IN serve.orders",
    "SHOW FUNCTIONS LIKE 'su*'",
    "SHOW CREATE TABLE serve.orders",
    "DESCRIBE serve.orders",
    "DESCRIBE EXTENDED serve.sales_per_region",
    "DESCRIBE DATABASE serve",
    "DESCRIBE FUNCTION sum",
    "DESCRIBE QUERY SELECT * FROM serve.orders",
    "EXPLAIN FORMATTED SELECT * FROM serve.orders",
    "USE serve",
    "SET TIME ZONE 'Europe/Vienna'",
    "SET spark.sql.session.timeZone = UTC",
    "EXECUTE IMMEDIATE 'SELECT count(*) FROM serve.orders'",
    "FROM serve.orders |> WHERE amount > 1 |> AGGREGATE sum(amount) GROUP BY region",
]


@pytest.mark.parametrize("statement", ALLOWED, ids=[text[:60] for text in ALLOWED])
def test_what_reads_is_answered_at_both_doors(sql: SqlServer, connection: Any, statement: str) -> None:
    answer = sql.ask(statement)
    asked = connection.createStatement()

    assert answer.status_code == 200, answer.text
    asked.execute(statement)
    asked.close()


def test_a_reader_has_temporary_views_and_variables_of_its_own(
    sql: SqlServer, jdbc: Callable[..., Any]
) -> None:
    mine, other = jdbc(), jdbc()
    for text in (
        "CREATE TEMPORARY VIEW paid AS SELECT * FROM serve.orders WHERE status = 'paid'",
        "CREATE OR REPLACE TEMPORARY VIEW few AS SELECT * FROM paid LIMIT 3",
        "DECLARE VARIABLE least DECIMAL(12, 2) DEFAULT 1.00",
        "SET VAR least = 2.00",
    ):
        mine.createStatement().execute(text)
    found = mine.createStatement().executeQuery("SELECT count(*) FROM few WHERE amount < least + 100")

    assert found.next() and found.getLong(1) == 3
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        other.createStatement().executeQuery("SELECT * FROM few")
    mine.createStatement().execute("DROP VIEW few")
    mine.close()
    other.close()


@pytest.mark.parametrize(
    "more",
    [
        "?spark.sql.variable.substitute=true",
        "?spark.sql.runSQLOnFiles=true",
        "?spark.sql.analyzer.singlePassResolver.enabled=true",
        "?fs.defaultFS=hdfs://127.0.0.1:9",
        "#spark.sql.scripting.enabled=true",
        "?system:twinlake.passwords=/dev/null",
        "?hive.exec.scratchdir=/tmp/elsewhere",
    ],
)
def test_a_connection_string_sets_nothing_that_is_the_servers(jdbc: Callable[..., Any], more: str) -> None:
    with pytest.raises(Exception, match=f"{REFUSED}|Cannot modify hive.exec.scratchdir at runtime"):
        jdbc(more=more).createStatement().execute("SELECT '${env:PATH}'")


def opened(sql: SqlServer, analyst_jvm: Any, key: str, value: str) -> Any:
    """What OpenSession answers, whose session is closed when the connection is."""
    hive, thrift = analyst_jvm.org.apache.hive.service, analyst_jvm.org.apache.thrift
    wire = hive.auth.PlainSaslHelper.getPlainTransport(
        "analyst", PASSWORD, thrift.transport.TSocket("127.0.0.1", sql.jdbc_port)
    )
    wire.open()
    asked = hive.rpc.thrift.TOpenSessionReq()
    asked.putToConfiguration(key, value)
    told = hive.rpc.thrift.TCLIService.Client(thrift.protocol.TBinaryProtocol(wire)).OpenSession(asked)
    wire.close()
    return told


FETCHES = [
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"http://127.0.0.1:{port}/x.dtd\"><a>hi</a>', 'a')",
    "SELECT * FROM text.`webhdfs://127.0.0.1:{port}/x`",
    "SELECT * FROM text.`hdfs://127.0.0.1:{port}/x`",
    "SELECT * FROM text.`ftp://127.0.0.1:{port}/x`",
    "SELECT * FROM json.`http://127.0.0.1:{port}/x`",
    "SELECT * FROM IDENTIFIER('json.`http://127.0.0.1:{port}/x`')",
    "SELECT * FROM delta.`http://127.0.0.1:{port}/x.json`",
    "SELECT * FROM spark_catalog.delta.`http://127.0.0.1:{port}/x.json`",
    "INSERT INTO delta.`http://127.0.0.1:{port}/x` SELECT 1",
    "DESCRIBE TABLE delta.`http://127.0.0.1:{port}/x`",
    "DESCRIBE DETAIL 'http://127.0.0.1:{port}/x'",
    "SELECT * FROM table_changes_by_path('http://127.0.0.1:{port}/x', 0)",
    "SELECT a FROM xml.`/etc/passwd` WITH ('rowTag' = 'a', 'rowValidationXSDPath' = 'http://127.0.0.1:{port}/x')",
    "SELECT * FROM avro.`/etc/passwd` WITH ('avroSchemaUrl' = 'http://127.0.0.1:{port}/x')",
    "SELECT (SELECT max(value) FROM text.`http://127.0.0.1:{port}/x`)",
    "EXECUTE IMMEDIATE 'SELECT * FROM text.`http://127.0.0.1:{port}/x`'",
]


@pytest.mark.parametrize("statement", FETCHES, ids=[text[:60] for text in FETCHES])
def test_no_statement_makes_the_server_call_out(sql: SqlServer, connection: Any, statement: str) -> None:
    """To resolve a name opens the file, so a refusal after that is too late."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        text = statement.format(port=listener.getsockname()[1])
        answer = sql.ask(text)
        asked = connection.createStatement()
        with pytest.raises(Exception) as refused:
            asked.execute(text)
        assert message(refused.value)

        assert answer.status_code == 400
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_temporary_view_is_not_turned_to_a_file_later(connection: Any) -> None:
    asked = connection.createStatement()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        asked.execute("DECLARE OR REPLACE VARIABLE turned STRING DEFAULT 'serve.orders'")
        asked.execute("CREATE OR REPLACE TEMPORARY VIEW turns AS SELECT * FROM IDENTIFIER(turned)")
        asked.execute(f"SET VAR turned = 'json.`http://127.0.0.1:{listener.getsockname()[1]}/x`'")
        asked.executeQuery("SELECT 1")
        with pytest.raises(Exception) as refused:
            asked.executeQuery("SELECT * FROM turns")
        assert message(refused.value)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_client_of_the_wire_protocol_has_no_folder_deleted(
    sql: SqlServer, analyst_jvm: Any, tmp_path: Path
) -> None:
    """Hive's session takes settings before any statement, and when closed deletes a folder that one names."""
    (tmp_path / "victim").mkdir()

    told = opened(sql, analyst_jvm, "set:hiveconf:hive.downloaded.resources.dir", str(tmp_path / "victim"))

    assert told.getStatus().getStatusCode().toString() == "ERROR_STATUS"
    assert (tmp_path / "victim").is_dir()


def test_a_client_of_the_wire_protocol_sets_no_system_property(sql: SqlServer, analyst_jvm: Any) -> None:
    """Hive's own driver does not send such a setting; nothing keeps another client from it."""
    told = opened(sql, analyst_jvm, "set:system:twinlake.passwords", "/dev/null")

    assert told.getStatus().getStatusCode().toString() == "ERROR_STATUS"
    assert "system property twinlake.passwords is refused" in told.getStatus().getErrorMessage()


@pytest.mark.parametrize(
    ("user", "password"),
    [("analyst", ""), ("analyst", "wrong"), ("", ""), ("root", "for-tests-only"), ("analyst:", "x")],
)
def test_neither_door_opens_without_the_password(
    sql: SqlServer, jdbc: Callable[..., Any], user: str, password: str
) -> None:
    for method, path in (
        ("POST", "/query"), ("GET", "/reports/0123456789ab"), ("GET", "/comparisons/0123456789ab"),
        ("GET", "/gates/0123456789ab"),
    ):  # fmt: skip
        answer = httpx.request(
            method, f"{sql.url}{path}", auth=(user, password), trust_env=False,
            headers={"X-Twinlake-Query": "1"}, json={"sql": "SELECT 1"},
        )  # fmt: skip
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Basic realm="Twinlake"')
    with pytest.raises(Exception, match="Error validating the login"):
        jdbc(user=user, password=password)


A_HASH = f":1:{32 * 'f'}:{64 * 'f'}"


@pytest.mark.parametrize(
    "added",
    [
        "half", "a:1:ff:ff:admin", f"a{A_HASH}:opera", "twice", f"a{A_HASH}{A_HASH[:-1]}:admin",
        f"a{A_HASH}{A_HASH}", f"a{3 * A_HASH}:admin", f":mask:{64 * 'f'}",
    ],
)  # fmt: skip
def test_neither_door_opens_by_what_is_left_of_the_users(
    sql: SqlServer, jdbc: Callable[..., Any], added: str
) -> None:
    file = sql.scratch / "password"
    whole = file.read_text()
    try:
        file.write_text(f"{whole}{whole.splitlines()[-1] if added == 'twice' else added}\n")
        answer = httpx.post(
            f"{sql.url}/query", auth=("analyst", PASSWORD), trust_env=False,
            headers={"X-Twinlake-Query": "1"}, json={"sql": "SELECT 1"},
        )  # fmt: skip
        assert answer.status_code == 503 and "cannot be read" in answer.json()["what"]
        assert not any(part in answer.text for line in whole.splitlines() for part in line.split(":")[2:4])
        with pytest.raises(Exception, match="Error validating the login"):
            jdbc()
    finally:
        file.write_text(whole)
    assert jdbc().isValid(10)


def test_a_stranger_s_body_is_not_read(sql: SqlServer) -> None:
    answer = httpx.post(f"{sql.url}/query", content=b" " * (8 << 20), trust_env=False)

    assert answer.status_code == 401


def test_odd_requests_and_rows_are_told_as_such(sql: SqlServer) -> None:
    bodies = [
        b'{"sql": "SELECT \'\\ud800\'"}', b'{"sql": "SELECT 1", "limit": NaN}',
        b'{"sql": "SELECT 1", "limit": 1e400}',
    ]  # fmt: skip
    answers = [
        httpx.post(
            f"{sql.url}/query", content=body, auth=("analyst", PASSWORD), trust_env=False, timeout=60,
            headers={"X-Twinlake-Query": "1", "Content-Type": "application/json"},
        ).status_code
        for body in bodies
    ]  # fmt: skip

    assert answers == [400, 400, 400]
    assert sql.ask("SELECT cast(X'ff41' AS string) AS s, 1.5D AS d").status_code == 400
    assert sql.rows("SELECT 1 a, 2 a, 3 a_2") == [{"a": 1, "a_3": 2, "a_2": 3}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(("query", {"sql": "SELECT 1", "limit": wrong}) for wrong in (True, "1", 1.0, None, 2**70, [1])),
        *(("query", {"sql": wrong}) for wrong in ("", 1, True, ["SELECT 1"], "SELECT 1\0")),
        *(("query", {"sql": "SELECT 1", "as_of": wrong}) for wrong in ("", 1, True, "release:1\0")),
        *(("explain", {"table": wrong, "key": {}}) for wrong in ("", 1, True, "orders\0")),
        *(
            ("explain", {"table": "latest_order", "key": {"customer": wrong}})
            for wrong in (1, True, 1.0, ["c"])
        ),
        ("explain", {"table": "latest_order", "key": []}),
    ],
)
def test_a_field_of_a_request_is_not_taken_for_something_else(
    sql: SqlServer, path: str, body: dict[str, Any]
) -> None:
    answer = httpx.post(
        f"{sql.url}/{path}", content=json.dumps(body), auth=("analyst", PASSWORD), trust_env=False,
        timeout=60, headers={"X-Twinlake-Query": "1", "Content-Type": "application/json"},
    )  # fmt: skip

    assert answer.status_code in (400, 404) and answer.json()["what"]


def test_status_is_open_and_tells_no_secret(sql: SqlServer) -> None:
    answer = httpx.get(f"{sql.url}/status", trust_env=False)

    told = {"release", "ready", "broken", "error", "protection", "no_report"}
    assert (answer.status_code, set(answer.json())) == (200, told)


def test_the_server_knows_the_hash_and_not_the_password(sql: SqlServer) -> None:
    told = [(sql.scratch / "password").read_text(), (sql.scratch / "sql.log").read_text()]

    assert all(PASSWORD not in text for text in told)
