"""TLS door: lets clients of other machines in, by TLS alone, to an endpoint that listens on loopback.

The endpoints know nothing of it: a connection is passed on byte by byte, and ends with either side. Who is
let in decides the endpoint behind it, by user and password.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from twinlake.base.errors import UsageError

LOOPBACK = "127.0.0.1"
AT_ONCE = 256
"""Connections through a door; the next one is closed at once, and others go through other doors."""
HANDSHAKE_S = 10.0
FIRST_S = 10.0
"""So long a client may say nothing once it is connected."""
PIECE = 1 << 16
HTTP2 = "h2"
"""What clients of gRPC want to hear in the handshake: they leave a server that does not name it."""

journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """PEM files: the chain that is shown, and its private key."""

    chain: Path
    key: Path

    def context(self, protocol: str = "") -> ssl.SSLContext:
        """TLS 1.2 and later, over which this protocol is spoken. UsageError for files that are no certificate
        with its key."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(self.chain, self.key)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                "the SQL server cannot speak TLS", f"{self.chain} and {self.key}: {error}",
                "give a certificate and its unencrypted private key as PEM in [sql] of twinlake.toml",
            ) from error  # fmt: skip
        if protocol:
            made.set_alpn_protocols([protocol])
        return made


class TlsDoors:
    """`doors` maps each port that is listened on, at `address`, to the loopback port behind it; `protocols`
    some of them to what is named in their handshakes."""

    def __init__(
        self, address: str, doors: Mapping[int, int], certificate: Certificate,
        protocols: Mapping[int, str] = {},
    ) -> None:  # fmt: skip
        self._address, self._doors = address, dict(doors)
        self._contexts = {port: certificate.context(protocols.get(port, "")) for port in doors}
        self._loop = asyncio.new_event_loop()
        self._opened = threading.Event()
        self._failed: OSError | None = None
        self._inside = dict.fromkeys(doors, 0)
        self._thread = threading.Thread(target=self._run, name="tls-doors", daemon=True)

    def open(self) -> None:
        """They are open when this returns; UsageError where an address or port cannot be listened on."""
        self._thread.start()
        self._opened.wait()
        if self._failed:
            raise UsageError(
                f"the SQL server cannot listen at {self._address}", str(self._failed),
                "correct listen in [sql] of twinlake.toml, or the port in [ports]",
            )  # fmt: skip

    def close(self) -> None:
        """Every connection ends."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            for port, behind in self._doors.items():
                self._loop.run_until_complete(self._listen(port, behind))
        except OSError as error:
            self._failed = error
            self._opened.set()
            return
        self._opened.set()
        self._loop.run_forever()

    async def _listen(self, port: int, behind: int) -> None:
        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._pass_on(reader, writer, port, behind)

        await asyncio.start_server(
            come,
            self._address,
            port,
            ssl=self._contexts[port],
            ssl_handshake_timeout=HANDSHAKE_S,
            limit=PIECE,
        )

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, behind: int
    ) -> None:
        if self._inside[port] >= AT_ONCE:
            journal.warning("a connection was closed: too many come from other machines", at_once=AT_ONCE)
            writer.close()
            return
        self._inside[port] += 1
        try:
            first = await asyncio.wait_for(reader.read(PIECE), FIRST_S)  # clients begin, in all protocols
            inner_reader, inner_writer = await asyncio.open_connection(LOOPBACK, behind, limit=PIECE)
            try:
                inner_writer.write(first)
                ways = {
                    asyncio.ensure_future(_copy(reader, inner_writer)),
                    asyncio.ensure_future(_copy(inner_reader, writer)),
                }
                _, open_ways = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for one in open_ways:
                    one.cancel()
            finally:
                inner_writer.close()
        except (OSError, TimeoutError) as error:  # it says nothing; what is behind does not listen
            journal.info("a connection from another machine was not passed on", why=str(error))
        finally:
            self._inside[port] -= 1
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, ssl.SSLError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
