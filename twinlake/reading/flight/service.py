"""Service: Arrow Flight SQL over gRPC, for ADBC and whatever speaks it: the SQL server's third endpoint.

Statements go the way of those over HTTP: the same users, turns, reader and limits. A call shows who it is
before its message is read; the server keeps nothing between two calls (`handles.py`, `login.py`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import grpc
import structlog
from grpc import aio

from twinlake.base.errors import BusyError, NotFoundError, TwinlakeError, UsageError
from twinlake.config.users import User
from twinlake.reading import as_of, wire
from twinlake.reading.answer import STOPPED, Answer
from twinlake.reading.flight import catalog, framing, login, protocol
from twinlake.reading.flight.handles import Asked
from twinlake.reading.flight.login import UnknownUserError
from twinlake.reading.reader import Reader
from twinlake.reading.running import FLIGHT, Running, RunningStatements, new_id
from twinlake.reading.turns import Statements

T = TypeVar("T")
Method = Callable[[User, aio.ServicerContext], Awaitable[None]]
HOST = "127.0.0.1"
AS_OF = "twinlake-as-of"
"""The header of a call that names a point in time."""
LISTING = "twinlake-listing"
"""The header that says for whom tables are listed, see `catalog.SQLALCHEMY`."""
LARGEST_MESSAGE = 4 << 20
MOST_PARAMETER_BYTES = 1 << 20
AT_ONCE, OF_ONE_USER = 200, 150
"""Calls, most of which wait."""
LISTINGS = 2
"""At once, of what there is: who signs in, or is sent rows, finds threads beside them."""
READ_S = 10.0
"""So long a client may take for a message of a call that it has begun."""
FIRST_S, IDLE_S = 10.0, 60.0
"""So long a client may say nothing, and ask nothing, once it is connected."""
CONNECTED_S = 600.0
"""So old a connection takes no more calls; its driver opens the next one by itself."""
LONGEST_STATUS = 4_000
"""Characters: what is said of an error travels in a header."""
CANCELLED, NOT_CANCELLABLE = 1, 3

journal = structlog.get_logger(__name__)


class FlightService:
    """The methods of the protocol, each for somebody who has shown who they are."""

    def __init__(
        self, reader: Reader, statements: Statements, running: RunningStatements,
        admits: Callable[[str, str], User | None], longest_s: float,
    ) -> None:  # fmt: skip
        self._reader, self._statements, self._running = reader, statements, running
        self._admits, self._longest_s = admits, longest_s
        self._calls = Counter[str]()
        self._listing = ThreadPoolExecutor(LISTINGS, thread_name_prefix="listing")

    def handler(self) -> grpc.GenericRpcHandler:
        """All methods are streams both ways, which is the same on the wire: a message is read when it is
        asked for, so not before its sender has shown who they are."""
        methods = {
            "Handshake": self._handshake, "GetFlightInfo": self._flight_info, "GetSchema": self._schema,
            "DoGet": self._get, "DoPut": self._put, "DoAction": self._action,
            "ListActions": self._list_actions,
        }  # fmt: skip
        return grpc.method_handlers_generic_handler(
            protocol.SERVICE,
            {
                name: grpc.stream_stream_rpc_method_handler(partial(self._called, method))
                for name, method in methods.items()
            },
        )

    async def _called(self, method: Method, _: AsyncIterator[bytes], context: aio.ServicerContext) -> None:
        try:
            shown = login.shown(context.invocation_metadata() or ())
            user = await asyncio.to_thread(self._admits, *shown)
            if user is None:
                raise UnknownUserError()
            with self._counted(user):
                await method(user, context)
        except TwinlakeError as error:
            failed = (_status(error), str(error)[:LONGEST_STATUS])
        except aio.AbortError:
            raise
        except Exception:
            journal.exception("a call over Flight SQL failed")
            failed = (grpc.StatusCode.INTERNAL, "the SQL server failed\nDo: see `twinlake logs sql`")
        else:
            return
        await context.abort(*failed)

    @contextmanager
    def _counted(self, user: User) -> Iterator[None]:
        """One user alone leaves calls to others."""
        if self._calls[user.name] >= OF_ONE_USER:
            why = f"{user.name} has {OF_ONE_USER} others going on"
            raise BusyError("the request was refused", why, "ask again once one of them has ended")
        self._calls[user.name] += 1
        try:
            yield
        finally:
            self._calls[user.name] -= 1
            if not self._calls[user.name]:
                del self._calls[user.name]

    async def _handshake(self, user: User, context: aio.ServicerContext) -> None:
        token = login.token(*login.shown(context.invocation_metadata() or ()))
        await context.send_initial_metadata(((login.HEADER, token),))

    async def _flight_info(self, user: User, context: aio.ServicerContext) -> None:
        descriptor = protocol.read("FlightDescriptor", await _message(context))
        kind, command = protocol.unwrapped(descriptor.cmd)
        columns, ticket = catalog.columns(kind, command), descriptor.cmd
        if columns is None:
            handle = self._asked(kind, command, context, new_id()).to_bytes()
            ticket = protocol.wrapped("TicketStatementQuery", statement_handle=handle)
        info = protocol.make(
            "FlightInfo", schema=b"" if columns is None else framing.schema_bytes(columns),
            flight_descriptor=descriptor, total_records=-1, total_bytes=-1,
            endpoint=[protocol.make("FlightEndpoint", ticket=protocol.make("Ticket", ticket=ticket))],
        )  # fmt: skip
        await context.write(info.SerializeToString())

    async def _schema(self, user: User, context: aio.ServicerContext) -> None:
        kind, command = protocol.unwrapped(protocol.read("FlightDescriptor", await _message(context)).cmd)
        columns = catalog.columns(kind, command)
        if columns is None:
            asked = self._asked(kind, command, context)
            columns = await self._in_turn(user, asked, context, partial(self._columns_of, asked))
        made = protocol.make("SchemaResult", schema=framing.schema_bytes(columns))
        await context.write(made.SerializeToString())

    async def _get(self, user: User, context: aio.ServicerContext) -> None:
        kind, command = protocol.unwrapped(protocol.read("Ticket", await _message(context)).ticket)
        if catalog.columns(kind, command) is not None:
            asking = (self._reader, user.name, kind, command, _header(context, LISTING))
            rows = await asyncio.get_running_loop().run_in_executor(self._listing, catalog.answer, *asking)
            return await self._send(framing.frames(rows), context)
        asked = self._asked(kind, command, context)

        def answer(one: Running) -> Answer:
            return self._reader.answer(
                asked.sql, None, one.left, asked.as_of, one.tag, one.user, asked.parameters
            )

        found = await self._in_turn(user, asked, context, answer)
        try:
            await self._send(framing.frames(found.table()), context)
        finally:
            await asyncio.to_thread(found.close)

    async def _put(self, user: User, context: aio.ServicerContext) -> None:
        """Values for a prepared statement: the statement with them is the handle from then on."""
        first = protocol.read("FlightData", await _message(context))
        kind, command = protocol.unwrapped(first.flight_descriptor.cmd)
        if kind != "CommandPreparedStatementQuery":
            raise _only_reads()
        asked = Asked.of_bytes(command.prepared_statement_handle)
        messages, taken = [first], first.ByteSize()
        while data := await _message(context, is_last=True):
            messages.append(protocol.read("FlightData", data))
            taken += len(data)
            if taken > MOST_PARAMETER_BYTES:
                raise framing.unusable(f"they have more than {MOST_PARAMETER_BYTES:,} bytes")
        bound = asked.with_parameters(framing.parameters(framing.stream_of(messages)))
        made = protocol.make("DoPutPreparedStatementResult", prepared_statement_handle=bound.to_bytes())
        put = protocol.make("PutResult", app_metadata=made.SerializeToString())
        await context.write(put.SerializeToString())

    async def _action(self, user: User, context: aio.ServicerContext) -> None:
        action = protocol.read("Action", await _message(context))
        actions: dict[str, Callable[[User, bytes, aio.ServicerContext], Awaitable[bytes | None]]] = {
            "CreatePreparedStatement": self._prepare, "ClosePreparedStatement": self._close,
            "CancelFlightInfo": self._cancel, "CancelQuery": self._cancel_query,
        }  # fmt: skip
        if action.type not in actions:
            why = f"the SQL server has no action {action.type[:100]!r}"
            raise UsageError("the request was refused", why, "it reads, and knows no transactions")
        body = await actions[action.type](user, action.body, context)
        if body is not None:
            await context.write(protocol.make("Result", body=body).SerializeToString())

    async def _list_actions(self, user: User, context: aio.ServicerContext) -> None:
        for name in ("CreatePreparedStatement", "ClosePreparedStatement", "CancelFlightInfo", "CancelQuery"):
            await context.write(protocol.make("ActionType", type=name).SerializeToString())

    async def _prepare(self, user: User, body: bytes, context: aio.ServicerContext) -> bytes:
        """Its errors come now; those of one with `?` when it is run, where its values are known."""
        _, command = protocol.unwrapped(body)
        asked = Asked(sql=command.query, as_of=_as_of(context))

        def read(one: Running) -> tuple[int, Any]:
            count = self._reader.parameters(asked.sql)
            try:
                return count, self._columns_of(asked, one)
            except UsageError:
                if not count:
                    raise
                return count, None

        count, found = await self._in_turn(user, asked, context, read)
        columns = b"" if found is None else framing.schema_bytes(found)
        values = framing.schema_bytes(framing.unknown(count)) if count else b""
        return protocol.wrapped(
            "ActionCreatePreparedStatementResult", prepared_statement_handle=asked.to_bytes(),
            dataset_schema=columns, parameter_schema=values,
        )  # fmt: skip

    async def _close(self, user: User, body: bytes, context: aio.ServicerContext) -> None:
        """Nothing is kept."""

    async def _cancel(self, user: User, body: bytes, context: aio.ServicerContext) -> bytes:
        status = self._end(user, protocol.read("CancelFlightInfoRequest", body).info)
        return bytes(protocol.make("CancelFlightInfoResult", status=status).SerializeToString())

    async def _cancel_query(self, user: User, body: bytes, context: aio.ServicerContext) -> bytes:
        _, command = protocol.unwrapped(body)
        status = self._end(user, protocol.read("FlightInfo", command.info))
        return protocol.wrapped("ActionCancelQueryResult", result=status)

    def _end(self, user: User, info: Any) -> int:
        for endpoint in info.endpoint:
            kind, command = protocol.unwrapped(endpoint.ticket.ticket)
            if kind == "TicketStatementQuery":
                try:
                    self._running.end(Asked.of_bytes(command.statement_handle).id, user)
                except NotFoundError:
                    return NOT_CANCELLABLE  # it has not begun, or has ended
                return CANCELLED
        return NOT_CANCELLABLE

    def _asked(self, kind: str, command: Any, context: aio.ServicerContext, id: str = "") -> Asked:
        if kind == "CommandStatementQuery":
            return Asked(sql=command.query, as_of=_as_of(context), id=id)
        if kind in ("CommandPreparedStatementQuery", "TicketStatementQuery"):
            is_ticket = kind == "TicketStatementQuery"
            asked = Asked.of_bytes(
                command.statement_handle if is_ticket else command.prepared_statement_handle
            )
            if asked.parameters:  # Java takes them as they are, and a handle may be anybody's invention
                asked = asked.with_parameters(framing.parameters(asked.parameters))
            return asked if is_ticket else asked.at(_as_of(context), id)
        raise _only_reads()

    def _columns_of(self, asked: Asked, one: Running) -> Any:
        values = asked.parameters
        if not values and (count := self._reader.parameters(asked.sql)):
            values = framing.nulls(count)
        return self._reader.columns(asked.sql, one.left, asked.as_of, one.tag, one.user, values)

    async def _in_turn(
        self, user: User, asked: Asked, context: aio.ServicerContext, work: Callable[[Running], T]
    ) -> T:
        """It keeps its turn until it has ended, also where its client has left before."""
        asking = _Asking(context)
        made = asyncio.ensure_future(
            self._statements.in_turn(asking, user.name, asked.sql, work, FLIGHT, asked.id)
        )
        try:
            return await asyncio.shield(made)
        except asyncio.CancelledError:
            asking.has_left = True
            made.add_done_callback(_drop)
            raise

    async def _send(self, messages: Iterator[bytes], context: aio.ServicerContext) -> None:
        """A client that takes nothing for a while, or not all in its time, is cut off."""
        clock = asyncio.get_running_loop().time
        until = clock() + self._longest_s
        while (message := await asyncio.to_thread(next, messages, None)) is not None:
            try:
                async with asyncio.timeout(min(wire.SLOW_S, until - clock())):
                    await context.write(message)
            except TimeoutError:
                journal.warning("a client that takes its answer too slowly was cut off")
                _abort_later(context, grpc.StatusCode.ABORTED, "the answer was taken too slowly")
                raise asyncio.CancelledError from None


class _Asking:
    def __init__(self, context: aio.ServicerContext) -> None:
        self._context, self.has_left = context, False

    async def is_disconnected(self) -> bool:
        return self.has_left or bool(self._context.done())


class FlightServer:
    """Listens on loopback, in the loop that it is started in."""

    def __init__(self, service: FlightService, port: int, longest_s: float) -> None:
        """`longest_s` is what a statement has to be computed, and its answer to be sent."""
        self._service, self._port = service, port
        self._grace_s = 2 * longest_s + READ_S
        self._server: aio.Server | None = None

    async def start(self) -> None:
        options = (
            ("grpc.so_reuseport", 0),  # nobody else listens at the same port
            ("grpc.max_receive_message_length", LARGEST_MESSAGE), ("grpc.max_send_message_length", -1),
            ("grpc.server_handshake_timeout_ms", int(FIRST_S * 1_000)),
            ("grpc.max_connection_idle_ms", int(IDLE_S * 1_000)),
            # drivers open another; calls of those who never take their answer end with it
            ("grpc.max_connection_age_ms", int(CONNECTED_S * 1_000)),
            ("grpc.max_connection_age_grace_ms", int(self._grace_s * 1_000)),
        )  # fmt: skip
        self._server = aio.server(options=options, maximum_concurrent_rpcs=AT_ONCE)
        self._server.add_generic_rpc_handlers((self._service.handler(),))
        self._server.add_insecure_port(f"{HOST}:{self._port}")
        await self._server.start()

    async def stop(self) -> None:
        """Every call ends."""
        if self._server:
            await self._server.stop(None)


async def _message(context: aio.ServicerContext, *, is_last: bool = False) -> bytes:
    """The next one of the client's; empty, where it may be the last, once there are no more."""
    try:
        async with asyncio.timeout(READ_S):
            read = await context.read()
    except TimeoutError as error:
        why = f"no message came within {READ_S:g} s"
        raise UsageError("the request was refused", why, "ask again") from error
    if read is not aio.EOF:
        return bytes(read)
    if not is_last:
        raise UsageError("the request was refused", "it has no message", "ask with a driver of Flight SQL")
    return b""


def _as_of(context: aio.ServicerContext) -> str | None:
    """UsageError for a text that is too long to be a point in time."""
    given = _header(context, AS_OF)
    if len(given) > as_of.LONGEST:
        raise UsageError(f"{AS_OF} was refused", f"it has more than {as_of.LONGEST} characters")
    return given or None


def _header(context: aio.ServicerContext, name: str) -> str:
    """Empty where the call has none; a statement's own stands behind that of its connection."""
    given = [value for key, value in context.invocation_metadata() or () if key == name]
    return str(given[-1]) if given else ""


def _status(error: TwinlakeError) -> grpc.StatusCode:
    if isinstance(error, UnknownUserError):
        return grpc.StatusCode.UNAUTHENTICATED
    if isinstance(error, BusyError):
        return grpc.StatusCode.ABORTED if error.what == STOPPED else grpc.StatusCode.UNAVAILABLE
    if isinstance(error, NotFoundError):
        return grpc.StatusCode.NOT_FOUND
    return grpc.StatusCode.INVALID_ARGUMENT if isinstance(error, UsageError) else grpc.StatusCode.INTERNAL


def _abort_later(context: aio.ServicerContext, code: grpc.StatusCode, details: str) -> None:
    """The status stands behind a message that nobody takes: who would wait for it keeps what the call has."""
    ended = asyncio.ensure_future(context.abort(code, details))
    _ENDED.add(ended)
    ended.add_done_callback(_end)


_ENDED: set[asyncio.Future[Any]] = set()
"""The loop itself keeps none."""


def _end(ended: asyncio.Future[Any]) -> None:
    _ENDED.discard(ended)
    if not ended.cancelled():
        ended.exception()  # that of every abort, or its client has left


def _drop(made: asyncio.Future[Any]) -> None:
    """An answer that nobody waits for any more; an error that nobody hears of."""
    if not made.cancelled() and made.exception() is None and isinstance(made.result(), Answer):
        made.result().close()


def _only_reads() -> UsageError:
    return UsageError("the statement was refused", "the SQL server only reads", "ask with a query")
