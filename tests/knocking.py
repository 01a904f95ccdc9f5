"""What a stranger on this machine says to a socket, and how each kind of socket refuses him.

The stranger is another user, who holds no secret: `knock` asks in a process of his.
"""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NOBODY = 65534
_KNOCK = (
    f"NOBODY = {NOBODY}"
    + """
import base64, encodings.idna, json, os, socket, sys, threading  # nothing can be read afterwards

def knock(one):
    heard, closed = b"", False
    try:
        with socket.create_connection(("127.0.0.1", one["port"]), 20) as door:
            door.settimeout(20)
            door.sendall(base64.b64decode(one["says"]))
            while len(heard) < 100_000:
                more = door.recv(65_536)
                if not more:
                    closed = True
                    break
                heard += more
                door.settimeout(1)
    except TimeoutError:
        pass
    except OSError:
        closed = True
    one["heard"], one["closed"] = base64.b64encode(heard).decode(), closed

if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
asked = json.load(sys.stdin)
threads = [threading.Thread(target=knock, args=(one,)) for one in asked]
for thread in threads: thread.start()
for thread in threads: thread.join()
json.dump({"user": os.geteuid(), "heard": asked}, sys.stdout)
"""
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was heard, and whether the other side closed the connection."""

    heard: bytes
    closed: bool


@dataclass(frozen=True, kw_only=True)
class Knock:
    """Words to a port, and whether an answer to them is a refusal."""

    says: bytes
    is_refused: Callable[[Answer], bool]


def knock(asked: Sequence[tuple[int, bytes]]) -> list[Answer]:
    """The answers to these words at these ports, said by nobody where this process may become him."""
    body = [{"port": port, "says": base64.b64encode(says).decode()} for port, says in asked]
    done = subprocess.run(
        [sys.executable, "-I", "-c", _KNOCK], input=json.dumps(body), capture_output=True, text=True,
        timeout=120, cwd="/", env={}, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["user"] == NOBODY or os.geteuid() != 0
    return [Answer(heard=base64.b64decode(one["heard"]), closed=one["closed"]) for one in told["heard"]]


def http(method: str, path: str, *refusals: int, body: bytes = b"") -> Knock:
    """A request without a token, a password or a cookie."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nX-Twinlake-Query: 1\r\nContent-Length: {len(body)}\r\n\r\n"
    expected = tuple(f"HTTP/1.1 {code} ".encode() for code in refusals or (401,))
    return Knock(says=head.encode() + body, is_refused=lambda answer: answer.heard.startswith(expected))


def _jdbc() -> Knock:
    """Hive's client, as the user that it is by default: mechanism, then its first message."""
    messages = ((1, b"PLAIN"), (2, b"\0anonymous\0anonymous"))
    says = b"".join(struct.pack(">BI", status, len(text)) + text for status, text in messages)
    bad, error = b"\x03", b"\x04"
    return Knock(says=says, is_refused=lambda answer: answer.closed and answer.heard[:1] in (bad, error))


def _flight() -> Knock:
    """A call without a login: HTTP/2's first words, empty settings, then the headers of a handshake."""

    def text(words: str) -> bytes:
        return bytes((len(words),)) + words.encode()

    named = {
        ":method": "POST", ":scheme": "http", ":path": "/arrow.flight.protocol.FlightService/Handshake",
        ":authority": "127.0.0.1", "content-type": "application/grpc", "te": "trailers",
    }  # fmt: skip
    headers = b"".join(b"\0" + text(name) + text(value) for name, value in named.items())
    frames = ((4, 0, 0, b""), (1, 4 | 1, 1, headers))  # SETTINGS; HEADERS that end the stream
    says = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"".join(
        struct.pack(">I", len(body))[1:] + struct.pack(">BBI", type_, flags, stream) + body
        for type_, flags, stream, body in frames
    )
    unauthenticated = b"grpc-status\x0216"
    return Knock(says=says, is_refused=lambda answer: unauthenticated in answer.heard)


def _spark(endpoint: str = "BlockManagerMaster") -> Knock:
    """A request to an endpoint of the driver; behind its name comes an object of Java's."""

    def text(words: str) -> bytes:
        return struct.pack(">H", len(words)) + words.encode()

    address = b"\x01" + text("127.0.0.1") + struct.pack(">I", 1)
    body = b"\x00" + address + text(endpoint) + b"\xac\xed\x00\x05t" + text("hello")
    request = b"\x03" + struct.pack(">QI", 7, len(body)) + body
    says = struct.pack(">Q", 8 + len(request)) + request
    failed = b"\x05" + struct.pack(">Q", 7)
    return Knock(
        says=says,
        is_refused=lambda answer: answer.heard[8:17] == failed and b"Expected SaslMessage" in answer.heard,
    )


def _gateway() -> Knock:
    """A call into Java by py4j's protocol."""
    return Knock(
        says=b"c\nz:java.lang.System\ngetProperty\nsuser.name\ne\n",
        is_refused=lambda answer: answer.closed and b"Authentication error" in answer.heard,
    )


def _python() -> Knock:
    """A call into Python by py4j's protocol, long enough to be taken for a token as well."""
    return Knock(
        says=b"c\np0\ncall\ne\n" + b"x" * 500 + b"\n",
        is_refused=lambda answer: answer.closed and not answer.heard,
    )


NAMED: dict[str, tuple[Knock, ...]] = {
    "lake": (http("GET", "/status"), http("POST", "/jobs", body=b'{"kind": "plan"}')),
    "sql": (http("POST", "/query", body=b'{"sql": "SELECT 1"}'), http("GET", "/reports/p")),
    "jdbc": (_jdbc(),),
    "flight": (_flight(),),
    "console": (http("GET", "/", 303), http("GET", "/part/home"), http("POST", "/query", 303)),
    "lake_metrics": (http("GET", "/metrics"), http("GET", "/")),
    "sql_metrics": (http("GET", "/metrics"),),
    "console_metrics": (http("GET", "/metrics"),),
    "airflow": (
        http("GET", "/api/v2/connections"),
        http("POST", "/api/v2/dags/release/dagRuns", body=b'{"logical_date": null}'),
        http("GET", "/execution/connections/twinlake", 401, 403),
        http("GET", "/auth/token", 401, 403),
    ),
}  # fmt: skip
"""By the name of their port."""
OF_JAVA = {"py4j of Spark": _gateway(), "Spark": _spark()}
OF_PYTHON = {"PySpark": _python()}
"""Ports that nobody chose: whose a socket is shows in how it refuses."""
