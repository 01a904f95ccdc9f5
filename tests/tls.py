"""A door with TLS before a port on loopback, as a reverse proxy is one, and a certificate for it."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from twinlake.base.times import utc_now


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key, both in PEM; the first is the file to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "twinlake test")])
    now = utc_now()
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "door.pem", folder / "door.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


class _Door(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, behind: int, context: ssl.SSLContext) -> None:
        self.behind, self.context = behind, context
        super().__init__(("127.0.0.1", 0), _Passage)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that does not trust the door leaves in the middle of it."""


class _Passage(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Door)
        with (
            self.server.context.wrap_socket(self.request, server_side=True) as outer,
            socket.create_connection(("127.0.0.1", self.server.behind)) as inner,
        ):
            there = threading.Thread(target=_pass_on, args=(outer, inner), daemon=True)
            there.start()
            _pass_on(inner, outer)
            there.join()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
    except OSError:  # one of the two has gone
        pass
    for each in (one, other):
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


@contextmanager
def tls_door(behind: int, certificate: tuple[Path, Path]) -> Iterator[int]:
    """The port at which the port `behind` is reached with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with _Door(behind, context) as door:
        threading.Thread(target=door.serve_forever, daemon=True).start()
        try:
            yield int(door.server_address[1])
        finally:
            door.shutdown()
