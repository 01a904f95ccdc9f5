"""One login: where a client gets in and what it shows of itself, from `twinlake.toml` to the client.

`services.json` has it in between. `client()` says it in the words of librdkafka, `java()` in those of Kafka's
own client, which Spark uses. No `repr` shows a secret.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from twinlake.base.errors import UsageError
from twinlake.base.files import named_secret, named_text
from twinlake.config import keys
from twinlake.config.keys import SECRET, Key, Section

PLAINTEXT, SASL_SSL, SSL = "PLAINTEXT", "SASL_SSL", "SSL"
SCRAM, PLAIN = "SCRAM-SHA-512", "PLAIN"
File = Path | None
Role = Literal["ingest", "producer", "changelog"]
ROLES: tuple[Role, ...] = ("ingest", "producer", "changelog")
_SECRETS = ("password", "key_password")
_MODULES = {
    SCRAM: "org.apache.kafka.common.security.scram.ScramLoginModule",
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
}
_text = partial(named_text, section="kafka")


@dataclass(frozen=True, kw_only=True)
class _Login:
    """What the logins of both services do."""

    SECTION: ClassVar[str]
    ADDRESS: ClassVar[str]

    def __post_init__(self) -> None:
        """A secret that is given itself goes before a file that holds one."""
        for name in _SECRETS:
            if getattr(self, name, ""):
                object.__setattr__(self, f"{name}_file", None)

    @classmethod
    def of(cls, address: str, shown: Mapping[str, str]) -> Self:
        """What `services.json` has, with the secrets that files hold now: a new one holds at once."""
        known = {one.name for one in fields(cls)}
        values = {
            name: Path(value) if name.endswith("_file") else value
            for name, value in shown.items()
            if name in known and value
        }
        return cls(**{**values, cls.ADDRESS: address}).opened()

    def shown(self) -> dict[str, str]:
        """What `services.json` has of it besides the address; of a secret in a file, where."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != self.ADDRESS}
        return {name: str(value) for name, value in values.items() if value and isinstance(value, str | Path)}

    def opened(self) -> Self:
        """With the secrets that its files hold now; UsageError names a file that holds none."""
        files = {name: getattr(self, f"{name}_file", None) for name in _SECRETS}
        return replace(self, **{name: named_secret(one, self.SECTION) for name, one in files.items() if one})

    @property
    def has_password(self) -> bool:
        return any(getattr(self, name) for name in ("password", "password_file"))


@dataclass(frozen=True, kw_only=True)
class Login(_Login):
    """One client of one Kafka."""

    SECTION, ADDRESS = "kafka", "bootstrap_servers"

    bootstrap_servers: Annotated[str, Key(
        keys.SERVERS, "an external Kafka: it is used, and no broker is started",
        '"kafka-1:9093,kafka-2:9093"', "a broker on this machine", is_shared=True)] = ""  # fmt: skip
    security: Annotated[str, Key(
        keys.choice(PLAINTEXT, SASL_SSL, SSL), "PLAINTEXT, SASL_SSL, or SSL (mutual TLS)", '"SASL_SSL"',
        is_shared=True)] = PLAINTEXT  # fmt: skip
    mechanism: Annotated[str, Key(
        keys.choice(SCRAM, PLAIN), f"with SASL_SSL: {SCRAM} or {PLAIN}", f'"{PLAIN}"',
        is_shared=True)] = SCRAM  # fmt: skip
    ca_file: Annotated[
        File, keys.ca_file("PEM, who has signed the brokers' certificates", is_shared=True)
    ] = None
    username: Annotated[str, Key(keys.text, "with SASL_SSL", '"twinlake-ingest"')] = ""
    password_file: Annotated[File, Key(
        keys.secret_in_file, "holds the password alone", '"/etc/twinlake/kafka"')] = None  # fmt: skip
    password: Annotated[str, SECRET] = field(default="", repr=False)
    certificate_file: Annotated[File, Key(
        keys.file, "with SSL: PEM, the chain", '"/etc/twinlake/client.pem"')] = None  # fmt: skip
    key_file: Annotated[File, Key(
        keys.private_file, "with SSL: PEM, its private key",
        '"/etc/twinlake/client.key"')] = None  # fmt: skip
    key_password_file: Annotated[File, Key(
        keys.secret_in_file, "where the private key is encrypted",
        '"/etc/twinlake/client.key.pass"')] = None  # fmt: skip
    key_password: Annotated[str, SECRET] = field(default="", repr=False)

    @property
    def names_someone(self) -> bool:
        return bool(self.username or self.has_password or self.certificate_file or self.key_file)

    @property
    def who(self) -> str:
        """The name that the broker knows this client by, as far as it is known here."""
        if self.security == SASL_SSL:
            return f"user {self.username!r}"
        return f"certificate {self.certificate_file}" if self.certificate_file else "a client without a name"

    def shown(self) -> dict[str, str]:
        """Nothing for an open broker, which asks nobody."""
        if self.security == PLAINTEXT:
            return {}
        unused = "" if self.security == SASL_SSL else "mechanism"
        return {name: value for name, value in super().shown().items() if name != unused}

    def client(self) -> dict[str, str]:
        """For librdkafka: confluent-kafka's Producer, Consumer and AdminClient. Files are read now."""
        found = {"bootstrap.servers": self.bootstrap_servers}
        if self.security == PLAINTEXT:
            return found
        held = self.opened()
        found["security.protocol"] = self.security
        if self.security == SASL_SSL:
            found |= {
                "sasl.mechanism": self.mechanism, "sasl.username": self.username,
                "sasl.password": held.password,
            }  # fmt: skip
        for one in (self.ca_file, self.certificate_file, self.key_file):
            if one:
                _text(one)  # for an error that says more than librdkafka's
        named = {
            "ssl.ca.location": self.ca_file, "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file, "ssl.key.password": held.key_password,
        }  # fmt: skip
        return found | {name: str(value) for name, value in named.items() if value}

    def java(self) -> dict[str, str]:
        """For Kafka's own client; certificates go along as text, so that executors need no files.

        What is secret in it is of the type PASSWORD there, which the client never logs.
        """
        found = {"bootstrap.servers": self.bootstrap_servers}
        if self.security == PLAINTEXT:
            return found
        held = self.opened()
        found["security.protocol"] = self.security
        if self.security == SASL_SSL:
            found |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": held._jaas()}
        if self.ca_file:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _text(self.ca_file)}
        if self.certificate_file and self.key_file:
            found |= {
                "ssl.keystore.type": "PEM", "ssl.keystore.key": _pkcs8(self.key_file),
                "ssl.keystore.certificate.chain": _text(self.certificate_file),
            }  # fmt: skip
            if held.key_password:
                found["ssl.key.password"] = held.key_password
        return found

    def spark(self) -> dict[str, str]:
        """The same as options of Spark's reader."""
        return {f"kafka.{name}": value for name, value in self.java().items()}

    def _jaas(self) -> str:
        user, password = (
            '"{}"'.format(one.replace("\\", "\\\\").replace('"', '\\"'))
            for one in (self.username, self.password)
        )
        return f"{_MODULES[self.mechanism]} required username={user} password={password};"


_INNER = partial(Section, Login, is_inner=True)


@dataclass(frozen=True, kw_only=True)
class Kafka(Login):
    """The log's source. Its login is that of ingest; other roles have it too unless they have their own."""

    producer: Annotated[Login | None, _INNER("`twinlake produce` has a login of its own")] = None
    changelog: Annotated[Login | None, _INNER("changelogs have a login of their own")] = None

    @property
    def is_external(self) -> bool:
        """Whether there is an external Kafka."""
        return bool(self.bootstrap_servers)

    @property
    def own(self) -> dict[Role, Login | None]:
        """What the section of a role gives, which lacks what they share."""
        return {"producer": self.producer, "changelog": self.changelog}

    def login(self, role: Role) -> Login:
        """How a client of this role gets in."""
        if (own := self.own.get(role)) is None:
            return self
        return replace(
            own, bootstrap_servers=self.bootstrap_servers, security=self.security, mechanism=self.mechanism,
            ca_file=self.ca_file,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class RegistryLogin(_Login):
    """One client of one schema registry, as Confluent's client speaks to it."""

    SECTION, ADDRESS = "registry", "url"

    url: Annotated[str, Key(
        keys.web_address("give username and password_file instead"),
        "an external registry: it is used, and none is started", '"https://registry:8081"',
        "Apicurio on this machine")] = ""  # fmt: skip
    username: Annotated[str, Key(keys.text, "where it asks for one", '"twinlake"')] = ""
    password_file: Annotated[File, Key(
        keys.secret_in_file, "holds the password alone", '"/etc/twinlake/registry"')] = None  # fmt: skip
    password: Annotated[str, SECRET] = field(default="", repr=False)
    ca_file: Annotated[File, keys.ca_file("PEM, who has signed its certificate")] = None

    @property
    def is_external(self) -> bool:
        return bool(self.url)

    @property
    def who(self) -> str:
        """The name that the registry knows this client by."""
        return f"user {self.username!r}" if self.username else "a client without a name"

    @property
    def basic_auth(self) -> tuple[str, str] | None:
        """User and password, None for a registry that asks for none."""
        return (self.username, self.opened().password) if self.username else None

    def trust(self) -> ssl.SSLContext:
        """Whom to trust where the address is one of TLS; UsageError where the file holds no certificates."""
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise UsageError(
                f"{self.ca_file} holds no certificates", str(error), "name a PEM file with ca_file"
            ) from error


def _pkcs8(key: Path) -> str:
    text = _text(key)
    if "PRIVATE KEY-----" in text and not any(
        f"-----BEGIN {kind}PRIVATE KEY-----" in text for kind in ("", "ENCRYPTED ")
    ):
        raise UsageError(
            f"the private key in {key} is not in PKCS#8", "Kafka's Java client, which Spark reads by, takes "
            "no other form", f"convert it: openssl pkcs8 -topk8 -nocrypt -in {key} -out NEW",
        )  # fmt: skip
    return text
