"""Answers: the same values whoever computes them, in bounded memory, never half of one for a whole one."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pytest
import uvicorn
from pyspark.sql import SparkSession

from tests.broker import free_port
from tests.reading.conftest import PASSWORD, SqlServer
from twinlake.base.errors import BusyError, UnreachableError, UsageError
from twinlake.base.http_errors import Protocol
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.config.users import User
from twinlake.reading import client, query, wire
from twinlake.reading.answer import Answers
from twinlake.reading.followed import Followed
from twinlake.reading.prepared import unique
from twinlake.reading.reader import Reader
from twinlake.spark import prepared_plan
from twinlake.spark.session import scratch_folder

_BOOLEANS = ", ".join(f"(id + {number}) % 3 = 0 AS c{number}" for number in range(1_000))
WIDE = f"SELECT {_BOOLEANS} FROM range(25000)"
MOST_GROWTH = 300 << 20
VALUES: list[tuple[str, Any]] = [
    ("cast(null as void)", None), ("true", True), ("1Y", 1), ("4L", 4), ("1.5F", 1.5), ("'ä\\n'", "ä\n"),
    ("double('NaN')", "nan"), ("double('-Infinity')", "-inf"), ("X'00ff'", "00ff"),
    ("cast(1e-10 as decimal(38,18))", "0.000000000100000000"),
    ("date'0001-01-01'", "0001-01-01"), ("date'+12026-01-31'", "+12026-01-31"),
    ("date'-0005-01-31'", "-0005-01-31"), ("array(date'+12026-01-31', null)", ["+12026-01-31", None]),
    ("timestamp'2026-01-31 12:00:00.5'", "2026-01-31T12:00:00.500000Z"),
    ("timestamp_ntz'2026-01-31 12:00:00'", "2026-01-31T12:00:00Z"),
    ("timestamp_seconds(400000000000)", "+14645-06-30T15:06:40Z"),
    ("interval '1 02:03:04.5' day to second", "1 day, 2:03:04.500000"),
    ("named_struct('a', 1, 'b', named_struct('c', cast(null as int), 'd', 1.50BD))",
     {"a": 1, "b": {"c": None, "d": "1.50"}}),
    ("array(array(1), null, array())", [[1], None, []]),
    ("array(named_struct('x', X'00ff'))", [{"x": "00ff"}]),
    ("map('k', 1, 'l', null)", {"k": 1, "l": None}), ("map(true, 1.5D)", {"True": 1.5}),
    ("map(timestamp'2026-01-31 12:00:00.25', array(1))", {"2026-01-31 12:00:00.250000": [1]}),
    ("map(named_struct('a', 1), 1)", {"Row(a=1)": 1}),
    ('parse_json(\'{"a": [1, 2.5, "x", null]}\')', '{"a":[1,2.5,"x",null]}'),
    ("array(parse_json('1'))", ["1"]), ("cast(null as struct<a: int>)", None),
    ("cast(null as map<string,int>)", None), ("cast(null as variant)", None),
]  # fmt: skip
"""What Spark's rows were as JSON when they were collected one by one."""


@pytest.fixture
def door(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The endpoint over the test's own session."""
    reader = Reader(spark, Path("/none"), Followed, lambda: None)
    user = User(name="analyst", role="analyst", line="")
    app = query.build_app(reader, lambda: Followed(ready=True), Settings(home=tmp_path), lambda *_: user)
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, http=Protocol))
    serving = threading.Thread(target=server.run)
    serving.start()
    wait_for("the endpoint", lambda: server.started or None, 30)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    serving.join(30)


@pytest.mark.parametrize("small", [prepared_plan.SMALL_BYTES, 0], ids=["in this thread", "by tasks"])
def test_values_are_the_same_whoever_computes_them(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(prepared_plan, "SMALL_BYTES", small)
    columns = ", ".join(f"{text} AS c{number}" for number, (text, _) in enumerate(VALUES))
    sql = f"SELECT {columns} FROM range(0, 3, 1, 1)"  # a second and a third row: no offset is 0

    found = Reader(spark, Path("/none"), Followed, lambda: None).read(sql, 10, threading.Event())["rows"]

    assert found == [{f"c{number}": value for number, (_, value) in enumerate(VALUES)}] * 3


def test_rows_of_structs_and_nulls_keep_their_places_in_every_piece(spark: SparkSession) -> None:
    sql = """SELECT id, if(id % 3 = 0, null, named_struct('l', sequence(0, id % 4))) s,
        if(id % 5 = 0, null, map(id, array(cast(id AS string)))) m FROM range(0, 50000, 1, 4) ORDER BY id"""

    found = Reader(spark, Path("/none"), Followed, lambda: None).read(sql, 50_000, threading.Event())["rows"]

    assert found == [
        {
            "id": number,
            "s": {"l": [*range(number % 4 + 1)]} if number % 3 else None,
            "m": {str(number): [str(number)]} if number % 5 else None,
        }
        for number in range(50_000)
    ]


def test_a_wide_answer_is_whole_and_takes_little_memory(sql: SqlServer) -> None:
    assert sql._process is not None
    server = psutil.Process(sql._process.pid)
    sql.rows("SELECT true AS c FROM range(10)")
    before = most = server.memory_info().rss
    ended = threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.02):
            most = max(most, server.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    count, first, last = 0, b"", b""
    asked = {"sql": WIDE, "limit": 1_000_000}
    with httpx.stream(
        "POST", f"{sql.url}/query", json=asked, timeout=300, trust_env=False,
        headers={"X-Twinlake-Query": "1"}, auth=("analyst", PASSWORD),
    ) as answer:  # fmt: skip
        rest = b""
        for piece in answer.iter_bytes():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                count += line.startswith(b'{"c0":')
                first, last = first or line[:0] + (line if line.startswith(b'{"c0":') else b""), line
    ended.set()
    watching.join()

    assert (answer.status_code, count, rest) == (200, 25_000, b"]}")
    assert json.loads(first.rstrip(b",")) == {f"c{n}": n % 3 == 0 for n in range(1_000)}
    assert json.loads(last) == {f"c{n}": (24_999 + n) % 3 == 0 for n in range(1_000)}
    assert most - before < MOST_GROWTH


def test_an_arrow_answer_is_the_same_rows(door: str) -> None:
    sql = "SELECT id, repeat('x', 1000) AS x FROM range(0, 30000, 1, 3) ORDER BY id"

    got = httpx.post(f"{door}/query", json={"sql": sql, "limit": 20_000}, timeout=120, trust_env=False,
                     auth=("a", "b"), headers={"X-Twinlake-Query": "1", "Accept": wire.ARROW})  # fmt: skip

    with pa.ipc.open_stream(got.content) as stream:
        found = stream.read_all()
    assert found.column("id").to_pylist() == [*range(20_000)]
    assert wire.facts_of(found.schema)["truncated"] is True


def test_an_answer_with_too_many_bytes_is_refused_and_nothing_of_it_stays(spark: SparkSession) -> None:
    answers = Answers(spark, most=1_000_000)
    before = answers.bytes_held
    frame = spark.sql("SELECT id, repeat('x', 1000) AS x FROM range(0, 30000, 1, 3)")

    with pytest.raises(UsageError, match="was stopped") as raised:
        answers.of(frame, 30_000)

    assert raised.value.why == "the answer has more than 1,000,000 bytes"
    assert answers.bytes_held == before
    assert [*scratch_folder(spark).glob("answer-*")] == []


def test_all_answers_together_have_a_limit_and_make_room_when_they_are_closed(spark: SparkSession) -> None:
    frame = "SELECT id, repeat('x', 1000) AS x FROM range(0, 6000, 1, 3)"
    answers = Answers(spark, most_in_all=Answers(spark).bytes_held + 8_000_000)
    first = answers.of(spark.sql(frame), 10_000)

    with pytest.raises(BusyError, match="was stopped"):
        answers.of(spark.sql(frame), 10_000)
    first.close()

    second = answers.of(spark.sql(frame), 10_000)
    assert second.found.num_rows == 6_000
    second.close()


def test_a_client_that_takes_nothing_is_cut_off_and_holds_nothing(
    door: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SLOW_S", 1.0)
    answers = Answers(spark)
    before = answers.bytes_held
    body = json.dumps({"sql": "SELECT id, repeat('x', 1000) FROM range(0, 30000, 1, 3)", "limit": 30_000})
    with socket.create_connection(("127.0.0.1", int(door.rsplit(":", 1)[1]))) as client:
        client.sendall(
            f"POST /query HTTP/1.1\r\nHost: localhost\r\nX-Twinlake-Query: 1\r\nAuthorization: Basic YTpi\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        wait_for("the answer", lambda: answers.bytes_held > before or None, 60)
        wait_for("its end", lambda: answers.bytes_held == before or None, 60)
        time.sleep(0.5)
        client.settimeout(10)
        taken = b""
        while piece := client.recv(1 << 20):
            taken += piece

    assert b'"rows":[' in taken and not taken.endswith(b"0\r\n\r\n"), "the chunk that ends an answer"


def test_columns_of_one_name_are_told_apart_in_no_time() -> None:
    names, began = [f"c{number}" for number in range(1_000)] * 38, time.process_time()

    found = unique(names)

    assert len({*found}) == len(found) == 38_000 and found[-1] == "c999_38"
    assert time.process_time() - began < 5, "it took hours, and no other reader got a turn"
    assert unique(["a", "b", "a", "a_2", "a"]) == ["a", "b", "a_3", "a_2", "a_4"]


def test_a_client_of_ours_that_was_too_slow_is_told_so_and_asks_no_second_time(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "SLOW_S", 1.0)
    services = Services(sql_url=door, sql_user="a", sql_password="b")
    sql, said = "SELECT id, repeat('x', 1000) FROM range(0, 30000, 1, 3)", list[str]()

    def slowly(head: dict[str, Any], rows: Iterator[dict[str, Any]]) -> int:
        next(rows)
        time.sleep(3)
        return 1 + sum(1 for _ in rows)

    with pytest.raises(UnreachableError) as raised:
        client.ask_each(services, sql, 30_000, None, slowly, client.Waiting(said.append))

    assert "the server cuts off who takes nothing for 1 s" in raised.value.why and said == []


def test_every_error_is_json_with_what_why_and_remedy(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(method: str, path: str, **more: Any) -> tuple[int, set[str]]:
        answer = httpx.request(
            method, f"{door}{path}", auth=("a", "b"), trust_env=False, timeout=60,
            **{"headers": {"X-Twinlake-Query": "1"}, **more},
        )  # fmt: skip
        assert all(answer.json().values()), answer.text
        return answer.status_code, set(answer.json())

    def broken(*_: Any) -> Any:
        raise RuntimeError("planted")

    said = {"error", "what", "why", "remedy"}
    assert ask("GET", "/nothing") == (404, said)
    assert ask("GET", "/query") == (405, said)
    assert ask("POST", "/query", content=b" " * (query.LARGEST_BODY + 1)) == (413, said)
    assert ask("POST", "/query", json={"sql": "SELECT 1", "more": 1}) == (400, said)
    assert ask("POST", "/query", json={"sql": "SELECT no_such_column"}) == (400, said)
    assert ask("POST", "/query", json={"sql": "SELECT 1"}, headers={"X-Twinlake-Query": "0"}) == (403, said)
    assert raw(door, b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000) == (431, said)
    assert raw(door, b"no HTTP\r\n\r\n") == (400, said)
    assert ask("GET", "/status", headers={"Host": "elsewhere"}) == (403, said)
    monkeypatch.setattr(Reader, "answer", broken)
    assert ask("POST", "/query", json={"sql": "SELECT 1"}) == (500, said)


def raw(door: str, some: bytes) -> tuple[int, set[str]]:
    with socket.create_connection(("127.0.0.1", int(door.rsplit(":", 1)[1])), timeout=30) as client:
        client.sendall(some)
        taken = b""
        with suppress(ConnectionResetError):  # it answers before it has read all: its end is then a reset
            while piece := client.recv(1 << 20):
                taken += piece
    head, body = taken.split(b"\r\n\r\n")
    assert all(json.loads(body).values())
    return int(head.split()[1]), set(json.loads(body))
