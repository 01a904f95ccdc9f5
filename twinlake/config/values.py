"""The model of all settings, and what no installation can mean by them together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict
from pydantic_settings import PydanticBaseSettingsSource as Source

from twinlake.base.address import is_loopback, is_open
from twinlake.base.location import located, overlap
from twinlake.config.alarms import MAIL_PLAIN, Alarms
from twinlake.config.backup import Backups
from twinlake.config.keys import variable_of
from twinlake.config.login import PLAINTEXT, SASL_SSL, SSL, Kafka, Login, RegistryLogin
from twinlake.config.sections import (
    OF_HOME,
    SECTIONS,
    Airflow,
    Console,
    Lake,
    Limits,
    LineageEvents,
    Metrics,
    Ports,
    Proof,
    Releases,
    Spark,
    Sql,
    Webhooks,
)

_VARIABLES: ContextVar[dict[str, Any] | None] = ContextVar("what variables say", default=None)
Mistake = tuple[str, str]
"""The key or section, and what is wrong with it."""


class Values(BaseSettings):
    """What each setting of an installation is; `settings_file.load` reads them from file and environment."""

    model_config = SettingsConfigDict(frozen=True, validate_default=False)

    kafka: Kafka = Kafka()
    registry: RegistryLogin = RegistryLogin()
    spark: Spark = Spark()
    lake: Lake = Lake()
    airflow: Airflow = Airflow()
    console: Console = Console()
    sql: Sql = Sql()
    ports: Ports = Ports()
    limits: Limits = Limits()
    lineage: LineageEvents = LineageEvents()
    metrics: Metrics = Metrics()
    releases: Releases = Releases()
    alarms: Alarms = Alarms()
    backup: Backups = Backups()
    proof: Proof = Proof()
    webhooks: Webhooks = Webhooks()
    origins: Mapping[str, str] = {}
    """`kafka.security` -> the line of the file, or the variable, that gave it; defaults are not in it."""
    lacks: tuple[str, ...] = ()
    """Secrets that only who starts the services needs: they may be in the environment of that shell alone."""

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: Source, env_settings: Source,
        dotenv_settings: Source, file_secret_settings: Source,
    ) -> tuple[Source, ...]:  # fmt: skip
        """What variables say, then what is handed in. Nothing here looks at the process's environment."""
        return InitSettingsSource(settings_cls, _VARIABLES.get() or {}), init_settings

    @classmethod
    def read(cls, of_environment: dict[str, Any], of_file: dict[str, Any]) -> Self:
        """Both by section; pydantic's ValidationError has every mistake."""
        before = _VARIABLES.set(of_environment)
        try:
            return cls(**of_file)
        finally:
            _VARIABLES.reset(before)

    @property
    def given(self) -> tuple[str, ...]:
        """The services that are used and not started."""
        services = {
            "broker": self.kafka.is_external, "registry": self.registry.is_external,
            "airflow": self.airflow.is_external,
        }  # fmt: skip
        return tuple(name for name, is_external in services.items() if is_external)

    @property
    def digest(self) -> str:
        """Tells these settings from others; what a secret's file holds is read whenever it is used."""
        values = {name: asdict(getattr(self, name)) for name in SECTIONS}
        return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def missing_secrets(values: Values) -> Iterator[Mistake]:
    """Passwords that nobody has given here."""
    kafka, registry = values.kafka, values.registry
    needing: dict[str, tuple[str, Login | RegistryLogin]] = {}
    if kafka.is_external and kafka.security == SASL_SSL:
        needing |= {name: (SASL_SSL, login) for name, login in _logins(kafka).items()}
    if registry.username:
        needing["registry"] = ("username", registry)
    for name, (needs_it, login) in needing.items():
        if not login.has_password:
            variable = variable_of(f"{name}.password")
            yield name, f"{needs_it} needs a password: password_file, or {variable} in the environment"


def inconsistencies(values: Values, home: Path) -> Iterator[Mistake]:
    """What each key allows, and no installation can mean together."""
    kafka, airflow = values.kafka, values.airflow
    yield from _of_own_kafka(kafka, values.origins) if kafka.is_external else _of_started_kafka(kafka)
    yield from _of_registry(values.registry)
    yield from _of_lake(values.lake, home)
    if airflow.ca_file and not airflow.is_external:
        yield "airflow.ca_file", "without url nobody asks for it"
    yield from _of_console(values.console)
    yield from _of_sql(values.sql)
    yield from _of_alarms(values.alarms)
    yield from _of_backup(values.backup, values.lake, home)
    taken: dict[int, str] = {}
    for name, port in values.ports.fixed.items():
        if taken.setdefault(port, name) != name:
            yield f"ports.{name}", f"{port} is {taken[port]}'s already"


def _logins(kafka: Kafka) -> dict[str, Login]:
    """Those that have a section."""
    return {"kafka": kafka, **{f"kafka.{role}": own for role, own in kafka.own.items() if own}}


def _of_started_kafka(kafka: Kafka) -> Iterator[Mistake]:
    if kafka.security == SSL:
        yield "kafka.security", f"the broker that is started here knows {PLAINTEXT} and {SASL_SSL}"
    for name, login in _logins(kafka).items():
        if login.names_someone or name != "kafka":
            yield name, ("who clients are is for an external Kafka, and kafka.bootstrap_servers is "
                         "missing; the broker that is started here makes its own passwords")  # fmt: skip
    if kafka.ca_file:
        yield "kafka.ca_file", "it is for an external Kafka; bootstrap_servers is missing"


def _of_own_kafka(kafka: Kafka, origins: Mapping[str, str]) -> Iterator[Mistake]:
    for name, login in _logins(kafka).items():
        has_certificate = (bool(login.certificate_file), bool(login.key_file))
        if kafka.security == SASL_SSL and not login.username:
            yield name, f"{SASL_SSL} needs username and password_file"
        if kafka.security == SASL_SSL and any(has_certificate):
            yield name, f'certificate_file and key_file are for security = "{SSL}"'
        if kafka.security == SSL and not all(has_certificate):
            yield name, f"{SSL} needs certificate_file and key_file"
        if kafka.security == SSL and (login.username or login.has_password):
            yield name, f'username and password are for security = "{SASL_SSL}"'
        if kafka.security == PLAINTEXT and login.names_someone:
            yield name, f"with {PLAINTEXT} nobody asks who a client is; set security to {SASL_SSL} or {SSL}"
    if kafka.security == PLAINTEXT and kafka.ca_file:
        yield "kafka.ca_file", f"with {PLAINTEXT} there are no certificates"
    if kafka.security != SASL_SSL and "kafka.mechanism" in origins:
        yield "kafka.mechanism", f'it is for security = "{SASL_SSL}"'


def _of_registry(registry: RegistryLogin) -> Iterator[Mistake]:
    is_https = registry.url.startswith("https://")
    if not registry.is_external:
        if registry.username or registry.has_password or registry.ca_file:
            yield "registry", "url is missing; the registry that is started here asks for nothing"
        return
    if registry.has_password and not registry.username:
        yield "registry", "username and password_file need each other"
    if registry.ca_file and not is_https:
        yield "registry.ca_file", "the url is not https://, there is no certificate"
    if registry.has_password and is_open(registry.url):
        yield "registry.url", "the password would be readable on the way; use https://"


def _of_console(console: Console) -> Iterator[Mistake]:
    has_certificate = (bool(console.certificate_file), bool(console.key_file))
    if any(has_certificate) and not all(has_certificate):
        yield "console", "certificate_file and key_file need each other"
    if not is_loopback(console.listen):
        if not all(has_certificate):
            yield "console.listen", ("beyond loopback passwords would be readable on the way; give "
                                     "certificate_file and key_file")  # fmt: skip
        if not console.name:
            yield "console.listen", "beyond loopback it answers to one name alone; give name"


def _of_sql(sql: Sql) -> Iterator[Mistake]:
    needed = {"name": sql.name, "certificate_file": sql.certificate_file, "key_file": sql.key_file}
    if sql.listen and (missing := " and ".join(name for name, value in needed.items() if not value)):
        yield "sql.listen", f"other machines reach it by TLS and one name alone; give {missing}"
    if not sql.listen and (given := " and ".join(name for name, value in needed.items() if value)):
        yield "sql", f"{given} without listen: nobody on another machine reaches it"


def _of_alarms(alarms: Alarms) -> Iterator[Mistake]:
    if alarms.webhook_token_file and not alarms.webhook_url:
        yield "alarms.webhook_token_file", "without webhook_url nobody is sent it"
    if alarms.webhook_token_file and is_open(alarms.webhook_url):
        yield "alarms.webhook_url", "the token would be readable on the way; use https://"
    host = alarms.mail_server.rpartition(":")[0]
    if not alarms.mail_server:
        for name in ("mail_from", "mail_to", "mail_user", "mail_password_file"):
            if getattr(alarms, name):
                yield f"alarms.{name}", "without mail_server no mail is sent"
        return
    if not alarms.mail_from:
        yield "alarms.mail_server", "mail needs mail_from"
    if bool(alarms.mail_user) != bool(alarms.mail_password_file):
        yield "alarms", "mail_user and mail_password_file need each other"
    if alarms.mail_user and alarms.mail_security == MAIL_PLAIN and not is_loopback(host):
        yield "alarms.mail_security", "the password would be readable on the way; use starttls or tls"


def _of_lake(lake: Lake, home: Path) -> Iterator[Mistake]:
    """In the home the lake has a place of its own; what is in another part's is deleted with that."""
    place = located(lake.uri) if lake.uri else None
    if not isinstance(place, Path):
        return
    inside, folder = home.resolve(), place.resolve()
    within = folder.relative_to(inside).parts if folder.is_relative_to(inside) else ()
    if inside.is_relative_to(folder) or (within[:1] and within[0] in OF_HOME and within != ("lake",)):
        yield "lake.uri", (f"{place} is around {home}, where passwords are, or in what `twinlake reset` "
                           "deletes there; name a folder elsewhere")  # fmt: skip


def _of_backup(backup: Backups, lake: Lake, home: Path) -> Iterator[Mistake]:
    """What is lost with the lake is no backup of it."""
    if (folder := backup.place) is None:
        return
    for place in (home, located(lake.uri) if lake.uri else home / "lake"):
        if overlap(folder, place):
            yield "backup.folder", (f"{folder} is in {place}, or around it, and would be lost with it; name "
                                    "a folder on another disk")  # fmt: skip
            return
