"""Flight SQL without a driver: what is no message, shows no login or takes no answer harms nobody."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tests.reading.conftest import PASSWORD, SqlServer
from tests.reading.test_flight import SLOW, running
from tests.reading.test_rights import NAME, Person, rita
from twinlake.base.waiting import wait_for
from twinlake.reading import wire
from twinlake.reading.flight import protocol
from twinlake.reading.flight.handles import Asked
from twinlake.reading.flight.login import token
from twinlake.reading.flight.service import OF_ONE_USER, READ_S

__all__ = ["rita"]  # a fixture


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
SILENT_ENDS = {"no message came", "others going on"}
"""How a call ends that says nothing."""


class Wire:
    """A client of gRPC without a driver."""

    def __init__(self, sql: SqlServer, user: str = "analyst", password: str = PASSWORD) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{sql.flight_port}")
        self._login = (("authorization", token(user, password)),) if user else ()

    def __call__(self, method: str, *messages: bytes, more: tuple[tuple[str, str], ...] = ()) -> list[bytes]:
        """Its answers; RpcError for what is refused."""
        call = self._channel.stream_stream(f"/{protocol.SERVICE}/{method}")
        return list(call(iter(messages), metadata=self._login + more, timeout=60))

    def stalled(self, statement: str) -> Any:
        """A call that takes nothing of its answer but the first message."""
        made = self._channel.stream_stream(f"/{protocol.SERVICE}/DoGet")(
            iter([ticket(Asked(sql=statement))]), metadata=self._login
        )
        next(made)
        return made

    def silent(self) -> Any:
        """A call whose message does not come."""
        return self._channel.stream_stream(f"/{protocol.SERVICE}/DoPut")(waited(), metadata=self._login)

    def close(self) -> None:
        self._channel.close()


def waited() -> Iterator[bytes]:
    time.sleep(2 * READ_S)
    yield b""


def ticket(asked: Asked) -> bytes:
    of = protocol.wrapped("TicketStatementQuery", statement_handle=asked.to_bytes())
    return bytes(protocol.make("Ticket", ticket=of).SerializeToString())


@pytest.fixture
def grpc_wire(sql: SqlServer) -> Iterator[Wire]:
    made = Wire(sql)
    yield made
    made.close()


@pytest.mark.parametrize("message", [
    b"", b"\xff\xff", protocol.make("Ticket", ticket=b"x").SerializeToString(),
    protocol.make("Ticket", ticket=protocol.wrapped("TicketStatementQuery", statement_handle=b"[1]")),
    protocol.make("Ticket", ticket=protocol.wrapped("TicketStatementQuery", statement_handle=b"[]")),
    protocol.make("Ticket", ticket=protocol.wrapped("CommandStatementUpdate", query="DROP VIEW orders")),
    ticket(Asked(sql="SELECT ?", parameters=b"\xff\xff\xff\xff\x00\x10\x00\x00" + b"\x00" * 64)),
    ticket(Asked(sql="SELECT ?", parameters=b"x" * 1000)),
])  # fmt: skip
def test_what_is_no_message_is_refused(grpc_wire: Wire, message: Any) -> None:
    said = message if isinstance(message, bytes) else message.SerializeToString()
    for method in ("DoGet", "GetFlightInfo", "GetSchema", "DoPut", "DoAction"):
        with pytest.raises(grpc.RpcError) as refused:
            grpc_wire(method, said)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT, (method, refused.value)


def test_nobodys_message_is_read(sql: SqlServer) -> None:
    wires = [Wire(sql, ""), Wire(sql, "analyst", "wrong")]
    for one in wires:
        for method in ("Handshake", "GetFlightInfo", "DoGet", "DoPut", "DoAction", "ListActions"):
            with pytest.raises(grpc.RpcError) as refused:
                one(method, b"\xff" * 1_000_000)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        one.close()


def test_a_handle_reads_by_the_rights_of_who_shows_it(rita: Person, sql: SqlServer) -> None:
    rita.may(tables=("serve.sales_*",))
    hers = Wire(sql, NAME)

    with pytest.raises(grpc.RpcError) as refused:
        hers("DoGet", ticket(Asked(sql="SELECT * FROM latest_order")))
    hers.close()
    assert "may read" in refused.value.details()


def test_one_that_runs_is_ended_by_its_own_users_alone(rita: Person, sql: SqlServer, grpc_wire: Wire) -> None:
    rita.may()
    asked = Asked(sql=SLOW, id="0123456789ab")
    failed: list[grpc.RpcError] = []

    def ask() -> None:
        try:
            grpc_wire("DoGet", ticket(asked))
        except grpc.RpcError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for("it to run", lambda: running(sql, "analyst") or None, 30)
    endpoint = protocol.make("FlightEndpoint", ticket=protocol.read("Ticket", ticket(asked)))
    info = protocol.make("FlightInfo", endpoint=[endpoint])
    request = protocol.make("CancelFlightInfoRequest", info=info).SerializeToString()
    action = protocol.make("Action", type="CancelFlightInfo", body=request).SerializeToString()
    hers = Wire(sql, NAME)

    def status(of: Wire) -> int:
        (answer,) = of("DoAction", action)
        found = protocol.read("CancelFlightInfoResult", protocol.read("Result", answer).body)
        return int(found.status)

    told = [status(hers), status(grpc_wire)]
    asking.join(60)
    hers.close()
    assert told == [3, 1]
    assert failed[0].code() == grpc.StatusCode.ABORTED and "analyst has cancelled it" in failed[0].details()


def test_a_client_that_takes_nothing_is_cut_off(sql: SqlServer, grpc_wire: Wire) -> None:
    call = grpc_wire.stalled("SELECT id, repeat('x', 1000) AS t FROM range(100000)")
    begun = time.monotonic()

    def cut() -> bool | None:
        return any("too slowly" in one.get("event", "") for one in sql.logged()) or None

    wait_for("it to be cut off", cut, 2 * wire.SLOW_S)
    assert time.monotonic() - begun >= wire.SLOW_S - 5
    with pytest.raises(grpc.RpcError) as ended:
        for _ in call:
            """What was on its way."""
    assert ended.value.code() == grpc.StatusCode.ABORTED and "too slowly" in ended.value.details()
    assert time.monotonic() - begun < 2 * wire.SLOW_S


@pytest.mark.faults
@pytest.mark.parametrize(("said", "until_s"), [(b"", 20), (PREFACE, 20), (PREFACE + SETTINGS, 80)])
def test_a_client_that_says_or_asks_nothing_is_cut_off(sql: SqlServer, said: bytes, until_s: float) -> None:
    with socket.create_connection(("127.0.0.1", sql.flight_port), timeout=until_s) as client:
        client.sendall(said)
        began = time.monotonic()
        while client.recv(1 << 16):
            assert time.monotonic() - began < until_s


def test_one_user_s_calls_leave_room_for_others(sql: SqlServer, grpc_wire: Wire) -> None:
    other = Wire(sql, "ben")
    asked = ticket(Asked(sql="SELECT 1"))
    silent: list[Any] = []

    def is_refused() -> str | None:
        """The first may have been given up before the last one is there: another takes its place."""
        going_on = sum(not call.done() for call in silent)
        silent.extend(grpc_wire.silent() for _ in range(OF_ONE_USER - going_on))
        try:
            grpc_wire("DoGet", asked)
        except grpc.RpcError as error:
            return str(error.details())
        return None

    assert "others going on" in wait_for("the calls to have begun", is_refused, 60)
    assert len(other("DoGet", asked)) == 2
    ends = set()
    for call in silent:
        with pytest.raises(grpc.RpcError) as refused:
            list(call)
        said = refused.value.details()
        ends.add(next((end for end in SILENT_ENDS if end in said), said))
    assert "no message came" in ends and ends <= SILENT_ENDS
    assert len(grpc_wire("DoGet", asked)) == 2
    other.close()
