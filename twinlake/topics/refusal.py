"""Refusal: what is heard of a cluster that does not let a client in, or not do something, in words of ours.

librdkafka goes on trying whatever happens; what its connections run into it only tells its `error_cb`. So a
client is given an ErrorCollector, and whoever waits for it asks that one now and then.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException

from twinlake.base.address import host_and_port
from twinlake.base.errors import DeniedError
from twinlake.config.login import PLAINTEXT, SASL_SSL, SSL, Login

_UNHEARD = logging.getLogger("twinlake.librdkafka")
_UNHEARD.addHandler(logging.NullHandler())
_UNHEARD.propagate = False
QUIET: Mapping[str, Any] = {"log_level": 0, "logger": _UNHEARD}
"""Options of each client: librdkafka writes no lines of its own beside our errors. `log_level` alone leaves
those about what it cannot get over."""
ASK_S = 0.5
"""Between two questions whether what is waited for was refused."""
RIGHTS = "rights"
"""The fact of an error that says which rights are missing."""
_UNKNOWN = (
    "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "ILLEGAL_SASL_STATE", "UNSUPPORTED_SASL_MECHANISM",
)  # fmt: skip
_PROTOCOL = ("security.protocol", "connecting to a PLAINTEXT broker listener")
_PASSING = (*_PROTOCOL, "Local:", "Disconnected", "reset by peer")
"""A broker that is just ending makes a client say this as well: it is believed once the time is up."""
_JAVA = re.compile(r"(\w*(Authentication|Authorization|SslHandshake|SSLHandshake)\w*Exception): ([^\n]*)")


class Client(Protocol):
    """A Producer or an AdminClient."""

    def poll(self, timeout: float = ..., /) -> int: ...

    def list_topics(self, topic: str | None = ..., timeout: float = ...) -> Any: ...


@dataclass
class ErrorCollector:
    """The `error_cb` of one client; it hears while the client is polled."""

    login: Login
    doing: str = ""
    """What the client is for, and the rights that takes, as `refusal` wants them."""
    rights: str = ""
    _heard: list[KafkaError] = field(default_factory=list)

    def __call__(self, error: KafkaError) -> None:
        self._heard = [*self._heard[-9:], error]

    def forget(self) -> None:
        """The client has been let in."""
        self._heard = []

    @property
    def last(self) -> str:
        """What went wrong last, as librdkafka says it; empty for nothing."""
        return self._heard[-1].str() if self._heard else ""

    def refuse(self, *, time_is_up: bool = False) -> None:
        """Raises the refusal, if there is one."""
        refused = self.refusal(time_is_up=time_is_up)
        try:
            if refused:
                raise refused
        finally:
            del refused  # else error and frame hold each other, and keep the client alive

    def refusal(self, *, time_is_up: bool = False) -> DeniedError | None:
        """The newest refusal of those heard; before the time is up only one that cannot be a broker's end."""
        for error in reversed(self._heard):
            if any(words in error.str() for words in _PASSING) and not time_is_up:
                continue
            if refused := refusal(error, self.login, self.doing, self.rights):
                return refused
        if time_is_up and self.login.security == PLAINTEXT and (server := _speaking_tls(self.login)):
            return _other_protocol(self.login, f"{server} speaks TLS, and closes what does not")
        return None


def metadata(client: Client, collector: ErrorCollector, topic: str | None, limit_s: float) -> Any:
    """What the cluster says of the topic (None: of all), once it lets the client in.

    DeniedError as soon as it refuses, KafkaException when it has not answered in time.
    """
    until = time.monotonic() + limit_s
    while True:
        left = until - time.monotonic()
        try:
            found = client.list_topics(topic, timeout=max(0.05, min(ASK_S, left)))
        except KafkaException:
            client.poll(0)
            collector.refuse(time_is_up=left <= ASK_S)
            if left <= ASK_S:
                raise
        else:
            collector.forget()
            return found


def unusable(error: KafkaException, login: Login) -> DeniedError:
    """librdkafka makes no client of this."""
    return _untrusted_certificate(login, error.args[0].str())


def refusal(error: KafkaError, login: Login, doing: str = "", rights: str = "") -> DeniedError | None:
    """The error as a refusal, None for one of another kind.

    `doing` says what was tried ("write topic 'orders'"), `rights` what it takes ("WRITE on topic orders").
    """
    name, why = error.name(), error.str()
    if name in _UNKNOWN:
        return _authentication_failed(login, why)
    if any(words in why for words in _PROTOCOL):
        return _other_protocol(login, why)
    if name == "_SSL" or "SSL routines" in why:
        return _untrusted_certificate(login, why)
    if name.endswith("_AUTHORIZATION_FAILED"):
        return _no_right(login, why, doing or "do that", rights)
    return None


def refusal_in_java(text: str, login: Login, doing: str, rights: str) -> DeniedError | None:
    """The same for what Kafka's Java client has said, within a longer text."""
    if not (found := _JAVA.search(text)):
        return None
    why = f"{found[1]}: {found[3]}"[:400]
    if found[2] == "Authorization":
        return _no_right(login, why, doing, rights)
    return (
        _untrusted_certificate(login, why)
        if "ssl" in found[1].lower()
        else _authentication_failed(login, why)
    )


def _speaking_tls(login: Login) -> str:
    """The first of the servers that does; librdkafka says no more of it than that it went away."""
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE  # nothing is sent, nothing is believed
    for server in map(str.strip, login.bootstrap_servers.split(",")):
        try:
            host, port = host_and_port(server)
            with socket.create_connection((host, port), timeout=2) as wire:
                asking.wrap_socket(wire, server_hostname=host).close()
            return server
        except (OSError, ValueError):
            continue
    return ""


def _authentication_failed(login: Login, why: str) -> DeniedError:
    return DeniedError(
        f"Kafka at {login.bootstrap_servers} does not let {login.who} in", why,
        "put the right user, password and mechanism into [kafka] of twinlake.toml and the file that "
        "password_file names; for the broker that Twinlake runs itself: `twinlake down`, then `twinlake up`",
    )  # fmt: skip


def _untrusted_certificate(login: Login, why: str) -> DeniedError:
    trusted = login.ca_file or "the authorities that this system trusts"
    return DeniedError(
        f"no trusted connection to Kafka at {login.bootstrap_servers}", f"{why} (trusted: {trusted})",
        "have ca_file in [kafka] of twinlake.toml name the authority that signed the broker's certificate, "
        "for the address as it is written there; a broker that asks for a client's certificate needs "
        "certificate_file and key_file",
    )  # fmt: skip


def _other_protocol(login: Login, why: str) -> DeniedError:
    return DeniedError(
        f"Kafka at {login.bootstrap_servers} does not speak {login.security}", why,
        f"set security in [kafka] of twinlake.toml to what that listener speaks: {SASL_SSL}, {SSL} or "
        "PLAINTEXT",
    )  # fmt: skip


def _no_right(login: Login, why: str, doing: str, rights: str) -> DeniedError:
    return DeniedError(
        f"{login.who} may not {doing} of Kafka at {login.bootstrap_servers}", why,
        f"have somebody who administers that cluster give it {rights or 'the right'}: docs/security.md has "
        "what each user needs", {RIGHTS: rights},
    )  # fmt: skip
