"""How a client gets into Kafka: the addresses, the protocol, and what it shows of itself.

One object says it to both kinds of clients: `client()` in the words of librdkafka, `java()` in those of
Kafka's own client, which Spark uses. No `repr` shows a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

from twinlake.base.errors import UsageError
from twinlake.base.files import named_secret, named_text
from twinlake.config.sections import PLAIN, PLAINTEXT, SASL_SSL, SCRAM, Role
from twinlake.config.sections import Kafka as KafkaSettings

ROLES: tuple[Role, ...] = ("ingest", "producer", "changelog")
_LOGIN = {
    SCRAM: "org.apache.kafka.common.security.scram.ScramLoginModule",
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
}
_IN_FILES = ("password", "key_password")
_text = partial(named_text, section="kafka")


@dataclass(frozen=True, kw_only=True)
class KafkaAccess:
    """One client of one cluster; files are read when the client is made."""

    bootstrap_servers: str
    security: str = PLAINTEXT
    """`PLAINTEXT`, `SSL` (a client certificate, if the broker asks for one) or `SASL_SSL` (a password)."""
    mechanism: str = SCRAM
    username: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    """Whom to trust (PEM); without one, those whom this system trusts."""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = field(default="", repr=False)

    @classmethod
    def of(cls, bootstrap_servers: str, told: Mapping[str, str]) -> KafkaAccess:
        """What `services.json` tells of one role; `password_file` is read now, so a new one holds at once."""
        known = {one.name for one in fields(cls)} - {"bootstrap_servers"}
        said = {name: value for name, value in told.items() if name in known and value}
        found = cls(bootstrap_servers=bootstrap_servers, **said)
        files = {name: told[f"{name}_file"] for name in _IN_FILES if told.get(f"{name}_file")}
        secrets = {name: named_secret(Path(file), section="kafka") for name, file in files.items()}
        return replace(found, **secrets)

    @property
    def who(self) -> str:
        """The name that the broker knows this client by, as far as it is known here."""
        if self.security == SASL_SSL:
            return f"user {self.username!r}"
        return f"certificate {self.certificate_file}" if self.certificate_file else "a client without a name"

    def client(self) -> dict[str, str]:
        """For librdkafka: confluent-kafka's Producer, Consumer and AdminClient."""
        found = {"bootstrap.servers": self.bootstrap_servers}
        if self.security == PLAINTEXT:
            return found
        found["security.protocol"] = self.security
        if self.security == SASL_SSL:
            found |= {
                "sasl.mechanism": self.mechanism, "sasl.username": self.username,
                "sasl.password": self.password,
            }  # fmt: skip
        named = {
            "ssl.ca.location": self.ca_file, "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file, "ssl.key.password": self.key_password,
        }  # fmt: skip
        for file in (self.ca_file, self.certificate_file, self.key_file):
            if file:
                _text(Path(file))  # for an error that says more than librdkafka's
        return found | {name: value for name, value in named.items() if value}

    def java(self) -> dict[str, str]:
        """For Kafka's own client; certificates go along as text, so that executors need no files.

        What is secret in it is of the type PASSWORD there, which the client never logs.
        """
        found = {"bootstrap.servers": self.bootstrap_servers}
        if self.security == PLAINTEXT:
            return found
        found["security.protocol"] = self.security
        if self.security == SASL_SSL:
            found |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": self._jaas()}
        if self.ca_file:
            found |= {
                "ssl.truststore.type": "PEM", "ssl.truststore.certificates": _text(Path(self.ca_file)),
            }  # fmt: skip
        if self.certificate_file:
            found |= {
                "ssl.keystore.type": "PEM", "ssl.keystore.key": _pkcs8(Path(self.key_file)),
                "ssl.keystore.certificate.chain": _text(Path(self.certificate_file)),
            }  # fmt: skip
            if self.key_password:
                found["ssl.key.password"] = self.key_password
        return found

    def spark(self) -> dict[str, str]:
        """The same as options of Spark's reader."""
        return {f"kafka.{name}": value for name, value in self.java().items()}

    def _jaas(self) -> str:
        return (
            f"{_LOGIN[self.mechanism]} required "
            f"username={_quoted(self.username)} password={_quoted(self.password)};"
        )


def given(kafka: KafkaSettings) -> dict[str, dict[str, str]]:
    """What `services.json` tells of the roles of a Kafka of one's own; of secrets in files, where."""
    found: dict[str, dict[str, str]] = {}
    if kafka.security == PLAINTEXT:
        return found
    for role in ROLES:
        login = kafka.login(role)
        told = {"security": kafka.security, "username": login.username, "ca_file": _name(kafka.ca_file)}
        if kafka.security == SASL_SSL:
            told["mechanism"] = kafka.mechanism
        files = ("certificate_file", "key_file", "password_file", "key_password_file")
        told |= {name: _name(getattr(login, name)) for name in files}
        for name in _IN_FILES:
            if not told[f"{name}_file"]:
                told[name] = getattr(login, name)
        found[role] = {name: value for name, value in told.items() if value}
    return found


def _name(file: Path | None) -> str:
    return str(file) if file else ""


def _quoted(text: str) -> str:
    """As JAAS reads it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pkcs8(file: Path) -> str:
    text = _text(file)
    if "PRIVATE KEY-----" in text and not any(
        f"-----BEGIN {kind}PRIVATE KEY-----" in text for kind in ("", "ENCRYPTED ")
    ):
        raise UsageError(
            f"the private key in {file} is not in PKCS#8", "Kafka's Java client, which Spark reads by, takes "
            "no other form", f"convert it: openssl pkcs8 -topk8 -nocrypt -in {file} -out NEW",
        )  # fmt: skip
    return text
