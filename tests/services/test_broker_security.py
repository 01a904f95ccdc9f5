"""The lock of the embedded broker, before anything runs: its doors, its users, its certificates."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from twinlake.base.times import utc_now
from twinlake.config.login import ROLES, Login
from twinlake.config.settings import Services
from twinlake.services import certificates as made
from twinlake.services.addresses import addresses
from twinlake.services.broker_security import listeners, supervisor_access
from twinlake.services.certificates import BROKER, SUPERVISOR, Certificates
from twinlake.services.part import Context
from twinlake.services.rights import rights


@pytest.fixture
def locked(context: Context) -> Context:
    context.settings.file.write_text('[kafka]\nsecurity = "SASL_SSL"\n')
    return context


def test_without_settings_the_broker_has_one_open_door(context: Context) -> None:
    lines = listeners(context).splitlines()

    broker, controller = context.ports["broker"], context.ports["controller"]
    assert lines == [
        f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{broker}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
    ]
    assert addresses(context).kafka_access == {}


def test_a_locked_broker_has_no_door_without_tls_and_no_password_in_its_settings(locked: Context) -> None:
    services = addresses(locked)
    text = listeners(replace(locked, services=services))

    protocols = text.split("listener.security.protocol.map=")[1].splitlines()[0]
    assert protocols == "CLIENTS:SASL_SSL,BROKERS:SSL,CONTROLLER:SSL"
    assert "allow.everyone.if.no.acl.found=false" in text
    assert not [role for role in ROLES if services.kafka_access[role]["password"] in text]


def test_each_role_has_a_password_of_its_own_that_is_kept(locked: Context) -> None:
    first = addresses(locked)
    second = addresses(replace(locked, services=first))

    passwords = {first.kafka_access[role]["password"] for role in ROLES}
    assert len(passwords) == len(ROLES) and min(map(len, passwords)) >= 32
    assert second.kafka_access == first.kafka_access


def test_a_password_of_another_kafka_is_not_taken_for_the_brokers_own(locked: Context) -> None:
    other = {"username": "someone", "password": "of another Kafka"}
    found = addresses(replace(locked, services=Services(kafka_access={"ingest": other})))

    assert "of another Kafka" not in str(found.kafka_access)


def test_the_supervisor_shows_a_certificate_at_a_door_of_its_own(locked: Context) -> None:
    login = supervisor_access(locked)

    assert login.bootstrap_servers == f"127.0.0.1:{locked.ports['broker_admin']}"
    assert login.security == "SSL" and str(login.certificate_file).endswith(f"{SUPERVISOR}.pem")
    assert supervisor_access(replace(locked, services=addresses(locked))) == login


def test_private_keys_are_their_owners_only_and_the_authoritys_is_nowhere(tmp_path: Path) -> None:
    held = Certificates(tmp_path / "kafka" / "tls")
    held.make()

    keys = [file for file in held.folder.iterdir() if b"PRIVATE KEY" in file.read_bytes()]
    assert sorted(file.name for file in keys) == sorted(
        f"{name}{end}" for name in (BROKER, SUPERVISOR) for end in (".key", ".pair.pem")
    )
    assert {stat.S_IMODE(file.stat().st_mode) for file in keys} == {0o600}
    assert stat.S_IMODE(held.folder.stat().st_mode) == 0o700
    authority = x509.load_pem_x509_certificate(held.authority.read_bytes())
    for name in (BROKER, SUPERVISOR):
        certificate = x509.load_pem_x509_certificate(held.certificate(name).read_bytes())
        certificate.verify_directly_issued_by(authority)
        assert certificate.subject.rfc4514_string() == f"CN={name}"


def test_certificates_are_kept_until_one_is_missing_or_ends_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Certificates(tmp_path / "tls")

    def seen() -> bytes:
        held.make()
        return held.authority.read_bytes()

    first, second = seen(), seen()
    held.certificate(BROKER).unlink()
    third = seen()
    monkeypatch.setattr(made, "RENEWED_BEFORE", made.VALID)
    fourth = seen()

    assert first == second
    assert len({first, third, fourth}) == 3


@pytest.mark.parametrize(
    "gone", ["twinlake-broker.key", "twinlake-broker.pair.pem", "twinlake-supervisor.key"]
)
def test_certificates_without_their_keys_are_made_anew(tmp_path: Path, gone: str) -> None:
    """As a start leaves them that was killed while it took the old ones away; the broker never started."""
    held = Certificates(tmp_path / "tls")
    held.make()
    (held.folder / gone).unlink()

    held.make()

    assert held.pair(BROKER).read_bytes().startswith(held.key(BROKER).read_bytes())
    assert held.key(SUPERVISOR).exists()


def test_certificates_of_a_clock_that_was_ahead_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Certificates(tmp_path / "tls")
    monkeypatch.setattr(made, "utc_now", lambda: utc_now() + timedelta(days=2))
    held.make()
    monkeypatch.undo()

    held.make()

    certificate = x509.load_pem_x509_certificate(held.certificate(BROKER).read_bytes())
    assert certificate.not_valid_before_utc < utc_now()


def test_nobody_has_more_rights_than_the_role_needs() -> None:
    found = {
        (
            right.principal,
            right.restype.name,
            right.name,
            right.resource_pattern_type.name,
            right.operation.name,
        )
        for right in rights(["orders"])
    }

    topics = {("User:producer", "TOPIC", "orders", "LITERAL", one) for one in ("WRITE", "DESCRIBE")}
    topics |= {
        ("User:ingest", "TOPIC", "orders", "LITERAL", one) for one in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
    }
    topics |= {
        ("User:changelog", "TOPIC", "changelog.", "PREFIXED", one)
        for one in ("CREATE", "WRITE", "READ", "DESCRIBE", "DESCRIBE_CONFIGS")
    }
    others = {
        ("User:ingest", "GROUP", "twinlake-", "PREFIXED", "READ"),
        ("User:changelog", "GROUP", "twinlake-", "PREFIXED", "READ"),
        ("User:changelog", "TRANSACTIONAL_ID", "twinlake-", "PREFIXED", "WRITE"),
        ("User:changelog", "TRANSACTIONAL_ID", "twinlake-", "PREFIXED", "DESCRIBE"),
    }
    assert found == topics | others


def test_a_kafka_of_ones_own_is_shown_what_the_settings_say(context: Context) -> None:
    password = context.folders.home / "password"
    password.write_text("of the settings\n")
    password.chmod(0o600)
    context.settings.file.write_text(
        '[kafka]\nbootstrap_servers = "kafka:9093"\nsecurity = "SASL_SSL"\nmechanism = "PLAIN"\n'
        f'username = "reader"\npassword_file = "{password}"\n'
        f'[kafka.producer]\nusername = "writer"\npassword_file = "{password}"\n'
    )
    services = replace(addresses(context), bootstrap_servers="kafka:9093")

    assert services.kafka("ingest") == services.kafka("changelog")
    assert services.kafka("producer") == Login(
        bootstrap_servers="kafka:9093", security="SASL_SSL", mechanism="PLAIN", username="writer",
        password="of the settings",
    )  # fmt: skip
    assert services.kafka("ingest").username == "reader"
    assert "of the settings" not in str(services.kafka_access)
