"""How clients get into Kafka: the same in the words of both of them, and no secret in any text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.topic import client_of
from twinlake.base.errors import UsageError
from twinlake.config.login import Login
from twinlake.config.settings import Services

SECRET = 'pass"word\\'
KEY = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for name, text in {"ca": "the authority\n", "certificate": "me\n", "key": KEY}.items():
        (tmp_path / f"{name}.pem").write_text(text)
    return {f"{name}_file": tmp_path / f"{name}.pem" for name in ("ca", "certificate", "key")}


def test_an_open_broker_needs_an_address_only() -> None:
    login = Services(bootstrap_servers="here:1").kafka("ingest")

    assert login.client() == login.java() == {"bootstrap.servers": "here:1"}
    assert login.spark() == {"kafka.bootstrap.servers": "here:1"}


def test_both_clients_get_the_same_password(files: dict[str, Path]) -> None:
    login = Login(
        bootstrap_servers="here:1", security="SASL_SSL", username="ann", password=SECRET,
        ca_file=files["ca_file"],
    )  # fmt: skip

    assert login.client() == {
        "bootstrap.servers": "here:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "ann", "sasl.password": SECRET, "ssl.ca.location": str(files["ca_file"]),
    }  # fmt: skip
    assert login.java() == {
        "bootstrap.servers": "here:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="pass\\"word\\\\";',
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": "the authority\n",
    }  # fmt: skip


def test_both_clients_get_the_same_certificate(files: dict[str, Path]) -> None:
    login = Login(bootstrap_servers="here:1", security="SSL", key_password="open", **files)

    assert login.client() == {
        "bootstrap.servers": "here:1", "security.protocol": "SSL", "ssl.ca.location": str(files["ca_file"]),
        "ssl.certificate.location": str(files["certificate_file"]),
        "ssl.key.location": str(files["key_file"]), "ssl.key.password": "open",
    }  # fmt: skip
    assert login.java() == {
        "bootstrap.servers": "here:1", "security.protocol": "SSL", "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "the authority\n", "ssl.keystore.type": "PEM",
        "ssl.keystore.key": KEY, "ssl.keystore.certificate.chain": "me\n", "ssl.key.password": "open",
    }  # fmt: skip


def test_no_text_shows_a_secret() -> None:
    shown = {"security": "SASL_SSL", "username": "ann", "password": SECRET, "key_password": SECRET}
    services = Services(bootstrap_servers="here:1", kafka_access={"ingest": shown})

    assert services.kafka("ingest").password == SECRET
    assert SECRET not in f"{services!r} {services.kafka('ingest')!r} {services.kafka('ingest')}"


def test_a_password_file_is_read_each_time(tmp_path: Path) -> None:
    file = tmp_path / "password"
    shown = {"security": "SASL_SSL", "username": "ann", "password_file": str(file)}
    services = Services(bootstrap_servers="here:1", kafka_access={"producer": shown})

    found = []
    for text in ("first\n", " second \n"):
        file.write_text(text)
        found.append(services.kafka("producer").password)
    file.unlink()

    assert found == ["first", " second "]
    with pytest.raises(UsageError, match="password cannot be read"):
        services.kafka("producer")
    assert services.kafka("ingest").password == ""


def test_a_key_that_java_cannot_read_is_refused_with_the_command_that_converts_it(
    files: dict[str, Path],
) -> None:
    files["key_file"].write_text(KEY.replace("PRIVATE", "RSA PRIVATE"))
    login = Login(bootstrap_servers="here:1", security="SSL", **files)

    with pytest.raises(UsageError) as raised:
        login.java()
    assert raised.value.remedy.startswith(
        f"convert it: openssl pkcs8 -topk8 -nocrypt -in {files['key_file']}"
    )


def test_the_oracle_gets_in_as_ingest_does(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "ca.pem").write_text("the authority")
    shown = {
        "security": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "ann",
        "password_file": str(tmp_path / "password"), "ca_file": str(tmp_path / "ca.pem"),
    }  # fmt: skip
    services = {"bootstrap_servers": "here:1", "kafka_access": {"ingest": shown}}

    assert client_of(services) == Services(**services).kafka("ingest").client()  # type: ignore[arg-type]
    assert client_of({"bootstrap_servers": "here:1"}) == {"bootstrap.servers": "here:1"}


@pytest.mark.parametrize("content", [b"", b"\n", b"old\nhunter2\n", b"old\rhunter2\n"])
def test_a_password_file_that_holds_no_single_line_is_refused_without_telling_it(
    tmp_path: Path, content: bytes
) -> None:
    """Kafka's Java client names what stands in the next line, librdkafka an authority for an empty one."""
    (tmp_path / "password").write_bytes(content)
    told = {"security": "SASL_SSL", "username": "ann", "password_file": str(tmp_path / "password")}

    with pytest.raises(UsageError) as refused:
        Login.of("here:1", told)

    assert "one line" in str(refused.value) and "hunter2" not in str(refused.value)


def test_a_password_file_may_have_been_written_on_windows(tmp_path: Path) -> None:
    (tmp_path / "password").write_bytes(b"\xef\xbb\xbfhunter2\r\n")
    told = {"security": "SASL_SSL", "username": "ann", "password_file": str(tmp_path / "password")}

    assert Login.of("here:1", told).password == "hunter2"
