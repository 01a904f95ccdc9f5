"""Client of the SQL server's HTTP endpoint: one statement, its rows. Needs no Spark.

A server that is away is waited for: the supervisor starts it again. A statement that was running when it died
is sent once more; what the server refuses is not. An answer is read as it comes; what is kept is bounded.
"""

from __future__ import annotations

import io
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import httpx

from twinlake.base.errors import TimedOutError, TwinlakeError, UnreachableError, UsageError, error_of
from twinlake.base.waiting import wait_for_answer
from twinlake.config.settings import Services
from twinlake.reading import wire
from twinlake.reading.server_address import CA_FILE, connections

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Row = dict[str, Any]
Take = Callable[[dict[str, Any], Iterator[Row]], T]

MORE_S = 30.0
"""So much longer than the server gives a statement is waited for its answer."""
AWAY_S = 90.0
"""A server that does not answer, or is starting, is asked again for so long."""
AGAIN_S = 0.5
MOST_TEXT = 64 << 20
"""Bytes of JSON that are kept of one answer; as objects of Python they are several times as many."""
MOST_ARROW = 1 << 30
_LOGS = "see `twinlake status` and `twinlake logs sql`"


class _AwayError(Exception):
    """Nobody has taken the statement."""


class _StartingError(_AwayError):
    """It will: it runs, and says that it is starting."""


class LostError(Exception):
    """The connection broke while the statement ran, or before all of its answer was here."""


def log(text: str) -> None:
    logging.getLogger("twinlake").warning(text)


@dataclass(frozen=True)
class Waiting:
    """What is done while the server is away."""

    say: Callable[[str], None] = log
    """Is called once with why it takes longer."""
    check: Callable[[], None] = lambda: None
    """Is called before a server that does not answer is asked again; raises where nobody will start it."""
    remedy: str = _LOGS
    """What to do about a server that fails."""


PATIENT = Waiting()


@dataclass(frozen=True, kw_only=True)
class Until:
    """What a look-up waits for: that the table has passed a position (`orders=120,payments=7`), and the
    offsets of records (`orders/0=1234`)."""

    min_position: str | None = None
    min_offsets: str | None = None
    wait_seconds: float | None = None


AT_ONCE = Until()


def ask(
    services: Services, sql: str, limit: int = 10_000, as_of: str | None = None, waiting: Waiting = PATIENT
) -> dict[str, Any]:
    """The SQL server's answer: columns, rows, truncated, release, stalled; `as_of` too where it is asked."""

    def take(head: dict[str, Any], rows: Iterator[Row]) -> dict[str, Any]:
        return {**head, "rows": [*rows]}

    return _ask(services, "query", _statement(sql, limit, as_of), _json(take, MOST_TEXT), waiting)


def ask_each(
    services: Services, sql: str, limit: int, as_of: str | None, take: Take[T], waiting: Waiting = PATIENT
) -> T:
    """The same for `take`, which is given the answer without its rows, and each row as it comes: however many
    there are, none is kept here."""
    return _ask(services, "query", _statement(sql, limit, as_of), _json(take, None), waiting)


def ask_arrow(
    services: Services, sql: str, limit: int, as_of: str | None = None, waiting: Waiting = PATIENT
) -> pa.Table:
    """The same rows as Arrow; what is known of them is in the schema's metadata."""

    def take(stream: pa.RecordBatchReader) -> pa.Table:
        return stream.read_all()

    return ask_batches(services, sql, limit, as_of, take, waiting)


def ask_batches(
    services: Services, sql: str, limit: int, as_of: str | None,
    take: Callable[[pa.RecordBatchReader], T], waiting: Waiting = PATIENT,
) -> T:  # fmt: skip
    """The same for `take`, which reads them as they come; again from the first where they broke off."""
    return _ask(services, "query", _statement(sql, limit, as_of), _arrow(take), waiting, wire.ARROW)


def ask_why(
    services: Services, table: str, key: Mapping[str, str | None], as_of: str | None = None,
    waiting: Waiting = PATIENT,
) -> dict[str, Any]:  # fmt: skip
    """The row with this key, and the records behind it."""
    asked = {"table": table, "key": dict(key), "as_of": as_of}
    return _ask(services, "explain", asked, lambda answer: json.loads(b"".join(_bounded(answer))), waiting)


def look_up(
    services: Services, table: str, key: Mapping[str, str | None], until: Until = AT_ONCE,
    waiting: Waiting = PATIENT,
) -> dict[str, Any]:  # fmt: skip
    """The rows with this key, all of it or some columns: columns, rows, release, position, stalled."""

    def take(head: dict[str, Any], rows: Iterator[Row]) -> dict[str, Any]:
        return {**head, "rows": [*rows]}

    asked, path = _of_key(key, until), f"tables/{quote(table, safe='')}/rows"
    return _ask(services, path, asked, _json(take, MOST_TEXT), waiting, method="GET")


def look_up_arrow(
    services: Services, table: str, key: Mapping[str, str | None], until: Until = AT_ONCE,
    waiting: Waiting = PATIENT,
) -> pa.Table:  # fmt: skip
    """The same rows as Arrow; what is known of them is in the schema's metadata."""

    def take(stream: pa.RecordBatchReader) -> pa.Table:
        return stream.read_all()

    asked, path = _of_key(key, until), f"tables/{quote(table, safe='')}/rows"
    return _ask(services, path, asked, _arrow(take), waiting, wire.ARROW, "GET")


def _of_key(key: Mapping[str, str | None], until: Until) -> dict[str, Any]:
    given = [name if value is None else f"{name}={value}" for name, value in key.items()]
    return {"key": given, **{name: value for name, value in asdict(until).items() if value is not None}}


def _statement(sql: str, limit: int, as_of: str | None) -> dict[str, Any]:
    return {"sql": sql, "limit": limit, **({} if as_of is None else {"as_of": as_of})}


def _ask(
    services: Services, path: str, asked: Mapping[str, Any], take: Callable[[httpx.Response], T],
    waiting: Waiting, accepts: str = "application/json", method: str = "POST",
) -> T:  # fmt: skip
    url = services.sql_url
    if not url:
        raise UnreachableError(
            "the SQL server is not running", "it has no address", "start it with `twinlake up`"
        )

    def send() -> T:
        return _sent(services, path, asked, take, accepts, waiting.remedy, method)

    return again(url, asked, send, waiting)


def again(url: str, asked: Mapping[str, Any], send: Callable[[], T], waiting: Waiting) -> T:
    """Sends what is asked until there is an answer; once more where the server has died of it."""
    said: list[str] = []
    refused: list[TimedOutError] = []

    def once() -> T:
        try:
            return send()
        except TimedOutError as error:  # the server's answer, of what it has waited for itself
            refused.append(error)
            raise
        except _AwayError as away:
            if not isinstance(away, _StartingError):
                waiting.check()
            if not said:
                said.append(str(away))
                waiting.say(f"the SQL server does not answer ({away}); it is asked again for {AWAY_S:g} s")
            raise

    lost: list[str] = []
    while True:
        try:
            return wait_for_answer("the SQL server", once, AWAY_S, every_s=AGAIN_S, unready=(_AwayError,))
        except TimedOutError as error:
            if error in refused:
                raise
            why = f"{url}: {said[0]}; it was asked again for {AWAY_S:g} s"
            raise UnreachableError("the SQL server does not answer", why, waiting.remedy) from error
        except LostError as error:
            lost.append(str(error))
            if len(lost) > 1:
                named = str(asked.get("sql") or asked)[:1_000]
                raise UnreachableError(
                    "the SQL server ended twice while it ran one statement",
                    f"{named}\n{url}: {'; then '.join(lost)}",
                    f"ask for less, or raise sql_memory in [limits] of twinlake.toml; {waiting.remedy}",
                ) from error
            waiting.say(f"the SQL server ended while it ran the statement ({error}); it is sent once more")
            said.clear()
            time.sleep(AGAIN_S)  # one that is killed takes connections for a moment still, and resets them


def _sent(
    services: Services, path: str, asked: Mapping[str, Any], take: Callable[[httpx.Response], T],
    accepts: str, remedy: str, method: str,
) -> T:  # fmt: skip
    with answered(services, path, asked, accepts, remedy, services.query_seconds, method) as answer:
        return take(answer)


@contextmanager
def answered(
    services: Services, path: str, asked: Mapping[str, Any], accepts: str, remedy: str, longest_s: float,
    method: str = "POST",
) -> Iterator[httpx.Response]:  # fmt: skip
    """An answer that is no error, to be read inside; nothing comes for `longest_s` at most."""
    given: dict[str, Any] = {"params" if method == "GET" else "json": asked}
    timeout = httpx.Timeout(longest_s + MORE_S, connect=5)
    try:
        with connections(services.sql_ca_file).stream(
            method, f"{services.sql_url}/{path}", auth=services.reader, timeout=timeout,
            headers={wire.HEADER: "1", "Accept": accepts}, **given,
        ) as answer:  # fmt: skip
            if not answer.is_success:
                raise _refusal(answer, remedy)
            yield answer
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise UnreachableError(
                "the SQL server was not asked",
                f"{services.sql_url} shows a certificate that does not hold: {error}",
                "ask it by the name in its certificate; who has signed it is given as PEM: ca_file= in "
                f"Python, or {CA_FILE} in the environment",
            ) from error  # fmt: skip
        raise _AwayError(str(error) or type(error).__name__) from error
    except httpx.TimeoutException as error:
        raise UnreachableError(
            "the SQL server does not answer",
            f"{services.sql_url}: nothing came for {longest_s + MORE_S:g} s", remedy,
        ) from error  # fmt: skip
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UnreachableError(
            "the SQL server cannot be asked", f"{services.sql_url!r} is not an address: {error}",
            "correct `sql_url` in services.json, or run `twinlake up`, which writes it",
        ) from error  # fmt: skip
    except httpx.HTTPError as error:
        raise LostError(str(error) or type(error).__name__) from error


def _refusal(answer: httpx.Response, remedy: str) -> Exception:
    answer.read()
    try:
        error = answer.json()
    except ValueError:
        error = None
    if not isinstance(error, dict) or "what" not in error:
        kind = UsageError if answer.status_code < 500 else TwinlakeError
        return kind(f"the SQL server answered {answer.status_code}", answer.text[:500], remedy)
    if "error" not in error:
        error = {**error, "error": "UsageError" if answer.status_code < 500 else "TwinlakeError"}
    if answer.status_code == 503 and "retry-after" in answer.headers:
        return _StartingError(f"{error['what']}: {error.get('why', '')}")
    return error_of(error)


def _json(take: Take[T], most: int | None) -> Callable[[httpx.Response], T]:
    """Reads an answer whose rows are its last member, each on a line of its own."""
    given = 0

    def rows(lines: Iterator[bytes], names: list[str]) -> Iterator[Row]:
        nonlocal given
        for line in lines:
            if line == b"]}":
                return
            given += most is None  # what was given away cannot be given again
            # each row's own names would be most of what a wide row takes
            yield dict(zip(names, json.loads(line.removesuffix(b",")).values(), strict=True))
        raise LostError("the answer broke off")

    def read(answer: httpx.Response) -> T:
        lines = _lines(_bounded(answer, most))
        first = next(lines, b"")
        if not first.endswith(b"["):  # written again on the way
            found = json.loads(first + b"".join(lines))
            return take(found, iter(found.pop("rows")))
        head = json.loads(first + b"]}")
        del head["rows"]
        try:
            return take(head, rows(lines, [column["name"] for column in head["columns"]]))
        except (httpx.HTTPError, LostError) as error:
            if not given:
                raise
            raise UnreachableError(
                "the answer broke off", f"after {given:,} rows: {error or type(error).__name__}",
                f"the rows so far are not all; {_LOGS}, then ask again",
            ) from error  # fmt: skip

    return read


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Not by what else ends a line in Unicode; without empty ones."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from filter(None, whole)
    if rest:
        yield rest


def _bounded(
    answer: httpx.Response, most: int | None = MOST_TEXT, cut_off_s: float | None = None
) -> Iterator[bytes]:
    had, slowest_s = 0, 0.0
    cut_off_s = wire.SLOW_S if cut_off_s is None else cut_off_s
    try:
        for piece in answer.iter_bytes():
            had += len(piece)
            if most is not None and had > most:
                raise UsageError(
                    "the answer was not read", f"it has more than {most:,} bytes, which are kept in memory",
                    "ask for fewer rows or columns; `twinlake query --json` keeps none of them",
                )  # fmt: skip
            given = time.monotonic()
            yield piece
            slowest_s = max(slowest_s, time.monotonic() - given)
    except httpx.HTTPError as error:
        if slowest_s < cut_off_s:
            raise
        raise UnreachableError(
            "the answer broke off",
            f"nothing of it was taken for {slowest_s:.0f} s, and the server cuts off who takes nothing for "
            f"{cut_off_s:g} s",
            "take the rows at once, into a file for example; or ask for fewer",
        ) from error


def _arrow(take: Callable[[pa.RecordBatchReader], T]) -> Callable[[httpx.Response], T]:
    def read(answer: httpx.Response) -> T:
        import pyarrow as pa

        body = file_of(answer, MOST_ARROW)
        with pa.ipc.open_stream(pa.PythonFile(body, "r")) as stream:
            found = take(stream)
        body.read()  # without its end it is not whole
        return found

    return read


def file_of(answer: httpx.Response, most: int | None, cut_off_s: float | None = None) -> io.BufferedReader:
    """What comes of an answer, to be read."""
    return io.BufferedReader(_Body(_bounded(answer, most, cut_off_s)))


class _Body(io.RawIOBase):
    """The pieces as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
