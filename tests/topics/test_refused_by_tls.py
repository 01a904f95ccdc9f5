"""Clients that a TLS listener does not let in: each learns why, and nobody waits for ever.

The listener is a real one that asks for a client's certificate; what Kafka would say behind it is not asked.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from records import Sample
from twinlake.base.errors import DeniedError, UnreachableError
from twinlake.config.login import Login
from twinlake.services.certificates import BROKER, SUPERVISOR, Certificates
from twinlake.topics import kafka as kafka_module
from twinlake.topics import produce as produce_module
from twinlake.topics.kafka import Kafka
from twinlake.topics.produce import produce


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("held") / "tls")
    made.make()
    return made


@pytest.fixture(scope="module")
def known(held: Certificates) -> Iterator[Login]:
    """Who has a certificate, at a listener that asks for one."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    asking.load_cert_chain(held.pair(BROKER))
    asking.load_verify_locations(held.authority)
    asking.verify_mode = ssl.CERT_REQUIRED
    door = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                wire, _ = door.accept()
            except OSError:
                return
            with wire, suppress(OSError):
                asking.wrap_socket(wire, server_side=True).recv(100)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield Login(
        bootstrap_servers=f"127.0.0.1:{door.getsockname()[1]}", security="SSL", ca_file=held.authority,
        certificate_file=held.certificate(SUPERVISOR), key_file=held.key(SUPERVISOR),
    )  # fmt: skip
    door.shutdown(socket.SHUT_RDWR)
    door.close()
    thread.join(5)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_module, "TIMEOUT_S", 2.0)
    monkeypatch.setattr(produce_module, "FIRST_ANSWER_SECONDS", 2.0)


def test_a_broker_that_another_authority_has_signed_is_not_trusted(
    known: Login, tmp_path: Path
) -> None:
    other = Certificates(tmp_path / "other")
    other.make()

    with pytest.raises(DeniedError) as raised:
        Kafka(replace(known, ca_file=other.authority)).cluster_id()

    assert "no trusted connection" in raised.value.what
    assert "certificate verify failed" in raised.value.why and str(other.authority) in raised.value.why
    assert "ca_file" in raised.value.remedy


def test_a_client_without_a_certificate_learns_that_it_needs_one(known: Login) -> None:
    with pytest.raises(DeniedError) as raised:
        Kafka(replace(known, certificate_file=None, key_file=None)).topic("orders")

    assert "certificate required" in raised.value.why
    assert "certificate_file and key_file" in raised.value.remedy


def test_a_client_without_tls_learns_that_the_listener_speaks_it(known: Login) -> None:
    plain = Login(bootstrap_servers=f"127.0.0.1:1, {known.bootstrap_servers}")

    with pytest.raises(DeniedError) as raised:
        Kafka(plain).cluster_id()
    with pytest.raises(DeniedError) as produced:
        _produce(plain)

    assert "does not speak PLAINTEXT" in raised.value.what
    assert raised.value.why == f"{known.bootstrap_servers} speaks TLS, and closes what does not"
    assert produced.value.to_json() == raised.value.to_json()


def test_who_is_let_in_and_gets_no_answer_was_not_refused(known: Login) -> None:
    with pytest.raises(UnreachableError, match="did not answer"):
        Kafka(known).cluster_id()


def test_a_file_that_holds_no_certificate_is_refused_at_once(known: Login, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing\n")

    with pytest.raises(DeniedError, match="no trusted connection"):
        Kafka(replace(known, ca_file=tmp_path / "ca.pem"))
    with pytest.raises(DeniedError, match="no trusted connection"):
        _produce(replace(known, ca_file=tmp_path / "ca.pem"))


def _produce(login: Login) -> None:
    source = Sample(seed=1, run="r", schema_id=1, span_ms=0, faults=None)
    produce(source, login=login, topic="orders", count=10, rate=None, stop=Event(), report=print)
