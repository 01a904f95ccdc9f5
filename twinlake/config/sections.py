# ruff: noqa: RUF009 -- `key` and its like make a field each time
"""Owns what can be set in `twinlake.toml`: every key with its type, its default, and what it is for.

`settings_file.py` reads it. A secret stands in a file of its own, or in the environment, never in
`twinlake.toml`, which people show each other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from twinlake.base.errors import UsageError
from twinlake.base.location import located

PLAINTEXT, SASL_SSL, SSL = "PLAINTEXT", "SASL_SSL", "SSL"
SCRAM, PLAIN = "SCRAM-SHA-512", "PLAIN"
LONGEST_STATEMENT_S = 5 * 3600
"""Files that a rebuild has replaced are kept for an hour longer: see `twinlake/batch/maintain.py`."""
_SECRET_NAMES = re.compile(r"secret|password|token|access[.-]?key|account[.-]?key", re.IGNORECASE)
_SECRET_OPTION = re.compile(rf"({_SECRET_NAMES.pattern})(?![\w.]*(file|path)=)[\w.]*=\S", re.IGNORECASE)
SECRET_FILE = "spark.authenticate.secret.file"
"""The setting of Spark's that names what driver and executors show each other."""

Role = Literal["ingest", "producer", "changelog"]
Kind = Callable[[Any], Any]
"""Takes what TOML has, gives what the field holds; ValueError says what it must be."""


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError('it must be text, like "..."')
    return value.strip()


def choice(*known: str) -> Kind:
    def one_of(value: Any) -> str:
        if value not in known:
            raise ValueError(f"it must be one of {', '.join(known)}")
        return str(value)

    return one_of


def whole(least: int, most: int) -> Kind:
    def number(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"it must be a whole number from {least} to {most}")
        return value

    return number


def matching(pattern: str, must: str) -> Kind:
    def matched(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"it must be {must}")
        return value

    return matched


def url(instead: str) -> Kind:
    """One address, without user and password: they would be in every error and log that names it.

    Of several, parted by commas, the registry's client tries each, with the password, https:// or not.
    """

    def address(value: Any) -> str:
        found = matching(r"https?://[^/?#\s,]+(/[^?#\s,]*)?", "an address like https://host:8081")(value)
        try:
            _ = urlsplit(found).port
        except ValueError as error:
            raise ValueError(f"it is no address: {error}") from error
        if "@" in found.split("//", 1)[1].split("/", 1)[0]:
            raise ValueError(f"it must hold no user and no password; {instead}")
        return str(found).rstrip("/")

    return address


def file(value: Any) -> Path:
    """A path; relative ones are made absolute by the reader, who knows the folder."""
    try:
        return Path(text(value)).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value}: there is no such user, or no home of theirs") from error


def spark_conf(value: Any) -> dict[str, str]:
    """Spark's own settings: text, numbers and booleans, as Spark writes them."""
    if not isinstance(value, dict):
        raise ValueError('it must be a table, like { "spark.executor.memory" = "4g" }')
    found = {}
    for name, one in value.items():
        if not name.startswith("spark."):
            raise ValueError(f'{name}: names begin with spark. and stand in quotes: "spark.executor.memory"')
        if not isinstance(one, str | int | float):
            raise ValueError(f"{name}: it must be text, a number or a boolean")
        found[name] = str(one).lower() if isinstance(one, bool) else str(one)
        if _SECRET_OPTION.search(found[name]):
            raise ValueError(
                f"{name}: it has a secret among options, and these stand on command lines, which everybody "
                "can read; have the program read it from a file"
            )
    return found


def lake_uri(value: Any) -> str:
    """The address of a place that a lake can be in."""
    found = str(
        matching(r"\w+://\S+", "an address like file:///data/lake or hdfs://name-node:8020/lake")(value)
    )
    try:
        located(found)
    except UsageError as error:
        raise ValueError(f"{error.why}; {error.remedy}") from error
    return found


PORT = whole(1, 65_535)
MEMORY = matching(r"[1-9]\d*[mg]", 'a size like "4g" or "1500m"')
SERVERS = matching(
    r"(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+(\s*,\s*(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+)*",
    'like "host:9092" or "one:9092,two:9092"',
)
MASTER = matching(
    r"local(\[(\d+|\*)\])?|spark://\S+:\d+(,\S+:\d+)*|yarn|k8s://\S+",
    "local[*], spark://host:7077, yarn or k8s://...",
)


def key(kind: Kind, doc: str, example: str, default: Any = "", shown: str = "") -> Any:
    """A setting: what it must be, what it is for, a TOML value of it, and its default as people read it."""
    return field(default=default, metadata={"kind": kind, "doc": doc, "example": example, "shown": shown})


def secret(of: str) -> Any:
    """What the file that `of` names holds; only the environment may give it directly."""
    return field(default="", repr=False, metadata={"secret": of})


def authority(doc: str) -> Any:
    """A file of certificates to trust."""
    return key(file, doc, '"/etc/twinlake/ca.pem"', None, "those that this system trusts")


def names_secret(name: str) -> bool:
    """Whether Spark itself, and Hadoop, take a setting for a secret by its name."""
    return bool(_SECRET_NAMES.search(name))


def section(kind: type, doc: str) -> Any:
    """A table of its own; None where nothing of it is given."""
    return field(default=None, metadata={"section": kind, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Login:
    """Who a client of Kafka is."""

    username: str = key(text, "with SASL_SSL", '"twinlake-ingest"')
    password_file: Path | None = key(file, "holds the password alone", '"/etc/twinlake/kafka"', None)
    password: str = secret("password_file")
    certificate_file: Path | None = key(file, "with SSL: PEM, the chain", '"/etc/twinlake/client.pem"', None)
    key_file: Path | None = key(file, "with SSL: PEM, its private key", '"/etc/twinlake/client.key"', None)
    key_password_file: Path | None = key(
        file, "where the private key is encrypted", '"/etc/twinlake/client.key.pass"', None
    )
    key_password: str = secret("key_password_file")

    @property
    def names_someone(self) -> bool:
        return bool(self.username or self.password or self.certificate_file or self.key_file)


@dataclass(frozen=True, kw_only=True)
class Kafka(Login):
    """The log's source. Its login is that of ingest; other roles have it too unless they have one of their
    own."""

    bootstrap_servers: str = key(
        SERVERS, "a Kafka of one's own: it is used, and no broker is started", '"kafka-1:9093,kafka-2:9093"',
        shown="a broker on this machine",
    )  # fmt: skip
    security: str = key(
        choice(PLAINTEXT, SASL_SSL, SSL), "PLAINTEXT, SASL_SSL, or SSL (mutual TLS)", '"SASL_SSL"', PLAINTEXT
    )
    mechanism: str = key(choice(SCRAM, PLAIN), f"with SASL_SSL: {SCRAM} or {PLAIN}", f'"{PLAIN}"', SCRAM)
    ca_file: Path | None = authority("PEM, who has signed the brokers' certificates")
    producer: Login | None = section(Login, "`twinlake produce` has a login of its own")
    changelog: Login | None = section(Login, "changelogs have a login of their own")

    @property
    def is_external(self) -> bool:
        """Whether there is a Kafka of one's own."""
        return bool(self.bootstrap_servers)

    def login(self, role: Role) -> Login:
        """Who a client of this role is."""
        own = {"producer": self.producer, "changelog": self.changelog}.get(role)
        return own or self


@dataclass(frozen=True, kw_only=True)
class Registry:
    """The schema registry, as Confluent's client speaks to it."""

    url: str = key(
        url("give username and password_file instead"),
        "a registry of one's own: it is used, and none is started", '"https://registry:8081"',
        shown="Apicurio on this machine",
    )  # fmt: skip
    username: str = key(text, "where it asks for one", '"twinlake"')
    password_file: Path | None = key(file, "holds the password alone", '"/etc/twinlake/registry"', None)
    password: str = secret("password_file")
    ca_file: Path | None = authority("PEM, who has signed its certificate")

    @property
    def is_external(self) -> bool:
        return bool(self.url)


@dataclass(frozen=True, kw_only=True)
class Spark:
    """Where the lake server's work runs."""

    master: str = key(MASTER, "a cluster of one's own", '"spark://spark:7077"', "local[*]")
    driver_memory: str = key(MEMORY, "the heap of the lake server", '"8g"', "4g")
    advertised_host: str = key(
        text, "what executors reach the lake server by", '"lake.example.com"', "127.0.0.1"
    )
    conf: Mapping[str, str] = field(
        default_factory=dict,
        repr=False,
        metadata={"kind": spark_conf, "doc": "Spark's own", "example": '{ "spark.executor.memory" = "4g" }'},
    )

    @property
    def is_external(self) -> bool:
        """Whether there is a cluster of one's own."""
        return not self.master.startswith("local")


@dataclass(frozen=True, kw_only=True)
class Lake:
    """Where logs and tables are."""

    uri: str = key(
        lake_uri, "a folder or a store of one's own", '"file:///data/lake"', shown="lake in $TWINLAKE_HOME"
    )


@dataclass(frozen=True, kw_only=True)
class Airflow:
    """What schedules, shows forms, and asks for approvals."""

    url: str = key(
        url("leave them out, nothing is asked that needs them"),
        "an Airflow of one's own: none is started; see docs/airflow.md", '"https://airflow.example.com"',
        shown="Airflow on this machine",
    )  # fmt: skip
    ca_file: Path | None = authority("PEM, who has signed its certificate")

    @property
    def is_external(self) -> bool:
        return bool(self.url)


def _port(doc: str, example: int) -> Any:
    return key(PORT, doc, str(example), None, "one that is free, kept")


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Ports on the loopback interface."""

    broker: int | None = _port("Kafka", 19092)
    broker_admin: int | None = _port("Kafka's door for the supervisor, with SASL_SSL", 19094)
    controller: int | None = _port("Kafka's controller", 19093)
    registry: int | None = _port("the schema registry", 18081)
    registry_management: int | None = _port("its health", 18082)
    lake: int | None = _port("the lake server's API", 18090)
    sql: int | None = _port("the SQL server's HTTP door", 18091)
    jdbc: int | None = _port("JDBC", 18092)
    airflow: int | None = _port("Airflow", 18080)

    @property
    def fixed(self) -> dict[str, int]:
        """Those that are set."""
        return {name: port for name, port in asdict(self).items() if port is not None}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long and how much."""

    query_seconds: int = key(whole(1, LONGEST_STATEMENT_S), "a statement of `twinlake query`", "900", 300)
    jdbc_seconds: int = key(whole(1, LONGEST_STATEMENT_S), "a statement over JDBC", "600", 3600)
    sql_memory: str = key(MEMORY, "the heap of the SQL server", '"4g"', "1500m")
    records_per_batch: int = key(
        whole(1_000, 10_000_000),
        "records that ingest takes at once, at most; fewer where they would take more than 5 seconds",
        "50000",
        200_000,
    )
    cycle_milliseconds: int = key(
        whole(100, 20_000),
        "between two batches of a topic, at least: fewer commits, later tables",
        "2000",
        250,
    )
    start_seconds: int = key(
        whole(10, 3_600), "`twinlake up` gives up when nothing has got ready for so long", "600", 180
    )
    airflow_keep_days: int = key(
        whole(1, 3_650), "how long the Airflow that is started here keeps its runs", "90", 30
    )
    job_minutes_without_progress: int = key(
        whole(1, 10_000), "a job in which nothing has gone on for so long is cancelled by its DAG", "240", 60
    )
    airflow_task_minutes: int = key(
        whole(1, 1_000), "a task in Airflow takes at most so long, waiting for its job not counted", "30", 15
    )
    airflow_run_hours: int = key(
        whole(1, 10_000), "a run of batch, maintain, replay or rollback takes at most so long", "48", 24
    )
    approval_hours: int = key(whole(1, 10_000), "a release waits so long for its approval", "8", 48)


@dataclass(frozen=True, kw_only=True)
class Values:
    """All settings of an installation."""

    kafka: Kafka = field(default_factory=Kafka)
    registry: Registry = field(default_factory=Registry)
    spark: Spark = field(default_factory=Spark)
    lake: Lake = field(default_factory=Lake)
    airflow: Airflow = field(default_factory=Airflow)
    ports: Ports = field(default_factory=Ports)
    limits: Limits = field(default_factory=Limits)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    """`kafka.security` -> the line of the file, or the variable, that gave it; defaults are not in it."""
    lacks: tuple[str, ...] = field(default=(), compare=False)
    """Secrets that only who starts the services needs: they may be in the environment of that shell alone."""

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
        told = {name: value for name, value in asdict(self).items() if name not in ("origins", "lacks")}
        text = json.dumps(_without_read(told), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_read(told: Mapping[str, Any]) -> dict[str, Any]:
    read = {name for name in told if told.get(f"{name}_file")}
    return {
        name: _without_read(value) if isinstance(value, dict) else value
        for name, value in told.items()
        if name not in read
    }


SECTIONS: Mapping[str, type] = {
    "kafka": Kafka, "registry": Registry, "spark": Spark, "lake": Lake, "airflow": Airflow, "ports": Ports,
    "limits": Limits,
}  # fmt: skip
