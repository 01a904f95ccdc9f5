"""What a client of the wire protocol can do beside statements: each call is refused, or harmless."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.reading.conftest import ALL, PASSWORD, SqlServer
from twinlake.base.waiting import wait_for

ERROR = "ERROR_STATUS"
OF_AN_OPERATION = ("FetchResults", "CancelOperation", "CloseOperation", "GetOperationStatus", "GetQueryId")
"""Requests that name an operation and no session."""


@dataclass
class Wire:
    """One connection with a session, by the classes that Thrift made of the protocol."""

    thrift: Any
    client: Any
    transport: Any
    session: Any

    def ask(self, call: str, **fields: Any) -> Any:
        """The answer to a call whose request has these fields, and the session where it takes one."""
        request = getattr(self.thrift, f"T{call}Req")()
        for name, value in fields.items():
            getattr(request, f"set{name[0].upper()}{name[1:]}")(value)
        if call not in OF_AN_OPERATION and "sessionHandle" not in fields:
            request.setSessionHandle(self.session)
        return getattr(self.client, call)(request)

    def handle(self, guid: bytes, secret: bytes) -> Any:
        found = self.thrift.THandleIdentifier()
        found.setGuid(guid)
        found.setSecret(secret)
        return found


@pytest.fixture
def wire(sql: SqlServer, analyst_jvm: Any) -> Iterator[Callable[..., Wire]]:
    opened: list[Wire] = []

    def made(username: str = "analyst", **configuration: str) -> Wire:
        hive, thrift = analyst_jvm.org.apache.hive.service, analyst_jvm.org.apache.thrift
        transport = hive.auth.PlainSaslHelper.getPlainTransport(
            "analyst", PASSWORD, thrift.transport.TSocket("127.0.0.1", sql.jdbc_port)
        )
        transport.open()
        client = hive.rpc.thrift.TCLIService.Client(thrift.protocol.TBinaryProtocol(transport))
        asked = hive.rpc.thrift.TOpenSessionReq()
        asked.setUsername(username)
        for name, value in configuration.items():
            asked.putToConfiguration(name.replace("__", "."), value)
        told = client.OpenSession(asked)
        found = Wire(hive.rpc.thrift, client, transport, told.getSessionHandle())
        opened.append(found)
        assert status(told) == "SUCCESS_STATUS", told.getStatus().getErrorMessage()
        return found

    yield made
    for one in opened:
        one.transport.close()


def status(answer: Any) -> str:
    return str(answer.getStatus().getStatusCode().toString())


def count(sql: SqlServer) -> list[dict[str, Any]]:
    return sql.rows("SELECT count(*) AS n FROM serve.orders")


def test_there_are_no_delegation_tokens(wire: Callable[..., Wire]) -> None:
    one = wire()

    assert status(one.ask("GetDelegationToken", owner="root", renewer="root")) == ERROR
    assert status(one.ask("CancelDelegationToken", delegationToken="x")) == ERROR
    assert status(one.ask("RenewDelegationToken", delegationToken="x")) == ERROR


@pytest.mark.parametrize("call", ["UploadData", "DownloadData"])
def test_no_data_is_carried_beside_statements(sql: SqlServer, wire: Callable[..., Wire], call: str) -> None:
    one = wire()
    fields = {"tableName": "serve.orders"} | (
        {"values": b"x"} if call == "UploadData" else {"query": "SELECT 1"}
    )

    with pytest.raises(Exception, match=f"Internal error processing {call}"):
        one.ask(call, **fields)
    assert count(sql) == [{"n": ALL}]


def test_what_a_client_says_of_itself_sets_nothing(analyst_jvm: Any, wire: Callable[..., Wire]) -> None:
    one = wire()
    told = analyst_jvm.java.util.HashMap()
    told.put("spark.sql.variable.substitute", "true")
    told.put("ApplicationName", "x\n2026-01-31 ERROR forged")

    assert status(one.ask("SetClientInfo", configuration=told)) == "SUCCESS_STATUS"
    assert first(one, "SELECT '${env:PATH}'") == "${env:PATH}"


def test_settings_of_one_statement_set_nothing(analyst_jvm: Any, wire: Callable[..., Wire]) -> None:
    one = wire()
    overlay = analyst_jvm.java.util.HashMap()
    overlay.put("spark.sql.variable.substitute", "true")
    overlay.put("spark.sql.runSQLOnFiles", "true")

    for run_async in (False, True):
        told = one.ask(
            "ExecuteStatement", statement="SELECT '${env:PATH}'", confOverlay=overlay, runAsync=run_async
        )
        assert status(told) == ERROR or value_of(one, told) == "${env:PATH}"


def first(wire: Wire, statement: str) -> str:
    told = wire.ask("ExecuteStatement", statement=statement)
    assert status(told) == "SUCCESS_STATUS", told.getStatus().getErrorMessage()
    return value_of(wire, told)


def value_of(wire: Wire, told: Any) -> str:
    handle = told.getOperationHandle()

    def state() -> str | None:
        found = str(wire.ask("GetOperationStatus", operationHandle=handle).getOperationState().toString())
        return found if found.startswith(("FINISHED", "ERROR")) else None

    wait_for("the statement", state, 60)
    found = fetched(wire, handle)
    assert status(found) == "SUCCESS_STATUS", found.getStatus().getErrorMessage()
    return cell(found.getResults())


def cell(results: Any) -> str:
    """The first one, in the form of rows or of columns, by the version of the protocol."""
    if results.getColumnsSize() > 0:
        return str(results.getColumns().get(0).getStringVal().getValues().get(0))
    return str(results.getRows().get(0).getColVals().get(0).getStringVal().getValue())


def fetched(wire: Wire, handle: Any, **fields: Any) -> Any:
    asked = {"orientation": wire.thrift.TFetchOrientation.FETCH_NEXT, "maxRows": 10, **fields}
    return wire.ask("FetchResults", operationHandle=handle, **asked)


def numbers(found: Any) -> list[int]:
    """The only column of an answer, of type bigint."""
    return [int(one) for one in found.getResults().getColumns().get(0).getI64Val().getValues()]


def test_the_handle_of_another_session_is_no_use_without_its_secret(wire: Callable[..., Wire]) -> None:
    mine, other = wire(), wire()
    told = mine.ask("ExecuteStatement", statement="SELECT 'mine'")
    real = told.getOperationHandle()
    guid = mine.session.getSessionId().getGuid()
    guessed = other.thrift.TSessionHandle()
    guessed.setSessionId(other.handle(guid, os.urandom(16)))
    operation = other.thrift.TOperationHandle()
    operation.setOperationId(other.handle(real.getOperationId().getGuid(), os.urandom(16)))
    operation.setOperationType(real.getOperationType())
    operation.setHasResultSet(True)

    assert status(other.ask("GetTables", sessionHandle=guessed)) == ERROR
    assert status(other.ask("ExecuteStatement", sessionHandle=guessed, statement="SELECT 1")) == ERROR
    assert status(other.ask("CloseSession", sessionHandle=guessed)) == ERROR
    assert status(fetched(other, operation)) == ERROR
    assert status(other.ask("CancelOperation", operationHandle=operation)) == ERROR
    assert status(other.ask("CloseOperation", operationHandle=operation)) == ERROR
    assert value_of(mine, told) == "mine"


@pytest.mark.parametrize("length", [0, 1, 15, 17, 1 << 20])
def test_a_handle_of_a_wrong_length_ends_no_more_than_its_own_connection(
    sql: SqlServer, wire: Callable[..., Wire], length: int
) -> None:
    one = wire()
    handle = one.thrift.TSessionHandle()
    handle.setSessionId(one.handle(b"x" * length, b"y" * length))

    try:
        assert status(one.ask("GetSchemas", sessionHandle=handle)) == ERROR
    except Exception as ended:
        assert "SUCCESS" not in str(ended)
    assert status(wire().ask("GetSchemas")) == "SUCCESS_STATUS"


def test_nobody_is_somebody_else_by_a_setting(wire: Callable[..., Wire]) -> None:
    with pytest.raises(AssertionError, match=r"proxy|impersonat|allowed|restricted|runtime"):
        wire(hive__server2__proxy__user="root")


def test_another_name_than_the_one_that_logged_in_gives_nothing(wire: Callable[..., Wire]) -> None:
    assert first(wire(username="root"), "SELECT current_user()") != "root"


def test_no_log_of_the_server_is_fetched(wire: Callable[..., Wire]) -> None:
    one = wire()
    told = one.ask("ExecuteStatement", statement="SELECT 1")

    found = fetched(one, told.getOperationHandle(), fetchType=1)

    assert (
        status(found) == ERROR or found.getResults().getColumnsSize() + found.getResults().getRowsSize() == 0
    )


@pytest.mark.parametrize("most", [-1, 0, 1 << 62])
def test_an_odd_number_of_rows_gives_no_more_than_there_are(wire: Callable[..., Wire], most: int) -> None:
    one = wire()
    told = one.ask("ExecuteStatement", statement="SELECT id FROM range(5)")

    found = fetched(one, told.getOperationHandle(), maxRows=most)

    assert status(found) == ERROR or len(numbers(found)) <= 5
    assert first(one, "SELECT 'still here'") == "still here"


def test_every_piece_of_information_is_the_servers_or_refused(wire: Callable[..., Wire]) -> None:
    told, one = [], wire()
    for kind in one.thrift.TGetInfoType.values():
        try:
            answer = one.ask("GetInfo", infoType=kind)
            if status(answer) != ERROR:
                told.append(str(answer.getInfoValue().toString()))
        except Exception:  # of most kinds its own connection ends
            one = wire()

    assert any("Spark SQL" in text for text in told)
    assert not any("/" in text or "hive.server2" in text for text in told)


def test_the_id_of_a_query_tells_nothing_of_it(wire: Callable[..., Wire]) -> None:
    one = wire()
    told = one.ask("ExecuteStatement", statement="SELECT 'of its text'")

    found = str(one.ask("GetQueryId", operationHandle=told.getOperationHandle()).getQueryId())

    assert "of its text" not in found and PASSWORD not in found
