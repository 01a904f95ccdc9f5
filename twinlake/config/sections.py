"""Owns what can be set in `twinlake.toml`: every key with its type, its default, and what it is for.

`login.py` has those of Kafka and the registry, `settings_file.py` reads them. A secret stands in a file of
its own, or in the environment, never in `twinlake.toml`, which people show each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from twinlake.base.errors import UsageError
from twinlake.base.location import located
from twinlake.config import keys
from twinlake.config.alarms import Alarms
from twinlake.config.backup import Backups
from twinlake.config.keys import Key, Section, whole
from twinlake.config.login import File, Kafka, RegistryLogin

LONGEST_STATEMENT_S = 5 * 3600
"""Files that a rebuild has replaced are kept for an hour longer: see `twinlake/batch/maintain.py`."""
_SECRET_NAMES = re.compile(r"secret|password|token|access[.-]?key|account[.-]?key", re.IGNORECASE)
_SECRET_OPTION = re.compile(rf"({_SECRET_NAMES.pattern})(?![\w.]*(file|path)=)[\w.]*=\S", re.IGNORECASE)
_URI = r"\w+://\S+"
SECRET_FILE = "spark.authenticate.secret.file"
"""The setting of Spark's that names what driver and executors show each other."""


def names_secret(name: str) -> bool:
    """Whether Spark itself, and Hadoop, take a setting for a secret by its name."""
    return bool(_SECRET_NAMES.search(name))


@keys.formed(
    type="object", propertyNames={"pattern": "^spark\\."},
    additionalProperties={"type": ["string", "number", "boolean"]},
)  # fmt: skip
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
    if SECRET_FILE in found:
        found[SECRET_FILE] = str(keys.private_file(found[SECRET_FILE]))
    return found


@keys.formed(type="string", pattern=rf"^({_URI})$")
def lake_uri(value: Any) -> str:
    """The address of a place that a lake can be in."""
    found = str(keys.matching(_URI, "an address like file:///data/lake or hdfs://name-node:8020/lake")(value))
    try:
        located(found)
    except UsageError as error:
        raise ValueError(f"{error.why}; {error.remedy}") from error
    return found


_STATEMENT = whole(1, LONGEST_STATEMENT_S)
MASTER = keys.matching(
    r"local(\[(\d+|\*)\])?|spark://\S+:\d+(,\S+:\d+)*|yarn|k8s://\S+",
    "local[*], spark://host:7077, yarn or k8s://...",
)


@dataclass(frozen=True, kw_only=True)
class Spark:
    """Where the lake server's work runs."""

    master: Annotated[str, Key(MASTER, "an external cluster", '"spark://spark:7077"')] = "local[*]"
    driver_memory: Annotated[str, Key(keys.MEMORY, "the heap of the lake server", '"8g"')] = "4g"
    advertised_host: Annotated[str, Key(
        keys.text, "what executors reach the lake server by",
        '"lake.example.com"')] = "127.0.0.1"  # fmt: skip
    conf: Annotated[Mapping[str, str], Key(
        spark_conf, "Spark's own", '{ "spark.executor.memory" = "4g" }',
    )] = field(default_factory=dict, repr=False)  # fmt: skip

    @property
    def is_external(self) -> bool:
        """Whether there is an external cluster."""
        return not self.master.startswith("local")


@dataclass(frozen=True, kw_only=True)
class Lake:
    """Where logs and tables are."""

    uri: Annotated[str, Key(
        lake_uri, "your own folder or store", '"file:///data/lake"',
        "lake in $TWINLAKE_HOME")] = ""  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Airflow:
    """What schedules, shows forms, and asks for approvals."""

    url: Annotated[str, Key(
        keys.web_address("leave them out, nothing is asked that needs them"),
        "an external Airflow: none is started; see docs/airflow.md", '"https://airflow.example.com"',
        "Airflow on this machine")] = ""  # fmt: skip
    ca_file: Annotated[File, keys.ca_file("PEM, who has signed its certificate")] = None

    @property
    def is_external(self) -> bool:
        return bool(self.url)


_ADDRESS = keys.matching(r"[0-9a-fA-F:.]+", "an IP address, like 0.0.0.0")
_HOST = keys.matching(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "a host's name in small letters")


@dataclass(frozen=True, kw_only=True)
class Console:
    """The pages in a browser."""

    listen: Annotated[str, Key(
        _ADDRESS,
        "the address to listen on; beyond loopback it needs the three below",
        '"0.0.0.0"')] = "127.0.0.1"  # fmt: skip
    name: Annotated[str, Key(
        _HOST,
        "what browsers call it; any other name is refused", '"twinlake.example.com"',
        "127.0.0.1 and localhost")] = ""  # fmt: skip
    certificate_file: Annotated[File, Key(
        keys.file, "with TLS: PEM, the chain", '"/etc/twinlake/console.pem"')] = None  # fmt: skip
    key_file: Annotated[File, Key(
        keys.private_file, "with TLS: PEM, its private key",
        '"/etc/twinlake/console.key"')] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sql:
    """The SQL server for clients on other machines; on this one it listens without any of these."""

    listen: Annotated[str, Key(
        _ADDRESS,
        "the address to listen on for others, by TLS alone, by every protocol; it needs the three below",
        '"0.0.0.0"', "nowhere")] = ""  # fmt: skip
    name: Annotated[str, Key(
        _HOST,
        "what clients call it, as its certificate does; any other name is refused over HTTP",
        '"twinlake.example.com"')] = ""  # fmt: skip
    certificate_file: Annotated[File, Key(keys.file, "PEM, the chain", '"/etc/twinlake/sql.pem"')] = None
    key_file: Annotated[File, Key(
        keys.private_file, "PEM, its private key", '"/etc/twinlake/sql.key"')] = None  # fmt: skip


def _port(doc: str, example: int) -> Key:
    return Key(whole(1, 65_535), doc, str(example), "one that is free, kept")


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Ports on the loopback interface, and for other machines where [sql] says so."""

    broker: Annotated[int | None, _port("Kafka", 19092)] = None
    broker_admin: Annotated[
        int | None, _port("Kafka's endpoint for the supervisor, with SASL_SSL", 19094)
    ] = None
    controller: Annotated[int | None, _port("Kafka's controller", 19093)] = None
    registry: Annotated[int | None, _port("the schema registry", 18081)] = None
    registry_management: Annotated[int | None, _port("its health", 18082)] = None
    lake: Annotated[int | None, _port("the lake server's API", 18090)] = None
    sql: Annotated[int | None, _port("the SQL server's HTTP endpoint", 18091)] = None
    jdbc: Annotated[int | None, _port("JDBC", 18092)] = None
    flight: Annotated[int | None, _port("Arrow Flight SQL", 18098)] = None
    sql_tls: Annotated[int | None, _port("the SQL server's HTTP endpoint for other machines", 18096)] = None
    jdbc_tls: Annotated[int | None, _port("JDBC for other machines", 18097)] = None
    flight_tls: Annotated[int | None, _port("Arrow Flight SQL for other machines", 18099)] = None
    airflow: Annotated[int | None, _port("Airflow", 18080)] = None
    console: Annotated[int | None, _port("the console", 18070)] = None
    lake_metrics: Annotated[int | None, _port("the lake server's metrics", 18093)] = None
    sql_metrics: Annotated[int | None, _port("the SQL server's metrics", 18094)] = None
    console_metrics: Annotated[int | None, _port("the console's metrics", 18095)] = None

    @property
    def fixed(self) -> dict[str, int]:
        """Those that are set."""
        return {name: port for name, port in asdict(self).items() if port is not None}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long and how much."""

    query_seconds: Annotated[int, Key(_STATEMENT, "a statement of `twinlake query`", "900")] = 300
    jdbc_seconds: Annotated[int, Key(_STATEMENT, "a statement over JDBC", "600")] = 3600
    export_seconds: Annotated[int, Key(
        _STATEMENT, "a statement with a large result, to be computed, and again to be sent",
        "7200")] = 3600  # fmt: skip
    export_gigabytes: Annotated[int, Key(
        whole(1, 100_000), "large results on the SQL server's disk, all that are computed or sent together",
        "100")] = 20  # fmt: skip
    sql_memory: Annotated[str, Key(keys.MEMORY, "the heap of the SQL server", '"4g"')] = "1500m"
    records_per_batch: Annotated[int, Key(
        whole(1_000, 10_000_000), "records that ingest takes at once, at most; fewer where they would take "
        "more than 5 seconds", "50000")] = 200_000  # fmt: skip
    cycle_milliseconds: Annotated[int, Key(
        whole(100, 20_000), "between two batches of a topic, at least: fewer commits, later tables",
        "2000")] = 250  # fmt: skip
    start_seconds: Annotated[int, Key(
        whole(10, 3_600), "`twinlake up` gives up when nothing has got ready for so long",
        "600")] = 180  # fmt: skip
    airflow_keep_days: Annotated[int, Key(
        whole(1, 3_650), "how long the Airflow that is started here keeps its runs", "90")] = 30  # fmt: skip
    job_minutes_without_progress: Annotated[int, Key(
        whole(1, 10_000), "a job in which nothing has gone on for so long is cancelled by its DAG",
        "240")] = 60  # fmt: skip
    airflow_task_minutes: Annotated[int, Key(
        whole(1, 1_000), "a task in Airflow takes at most so long, waiting for its job not counted",
        "30")] = 15  # fmt: skip
    airflow_run_hours: Annotated[int, Key(
        whole(1, 10_000), "a run of backup, batch, maintain, replay or rollback takes at most so long",
        "48")] = 24  # fmt: skip
    approval_hours: Annotated[int, Key(
        whole(1, 10_000), "a release waits so long for its approval", "8")] = 48  # fmt: skip


WITNESS_OFF, WITNESS_REPORT, WITNESS_REQUIRED = "off", "report", "required"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a table must pass beside the comparison of speed with batch."""

    witness: Annotated[str, Key(
        keys.choice(WITNESS_OFF, WITNESS_REPORT, WITNESS_REQUIRED),
        "whether DuckDB evaluates each table from its log as well: off, report, or required for a release",
        f'"{WITNESS_REQUIRED}"')] = WITNESS_REPORT  # fmt: skip
    window_rows: Annotated[int, Key(
        whole(0, 10_000_000_000), "where the logs of a table's topics hold more rows, the check every "
        "15 minutes leaves it out, and it runs once a day alone", "5000000")] = 1_000_000  # fmt: skip


ANYONE, OTHERS = "anyone", "others"


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Who decides about a release."""

    approval_by: Annotated[str, Key(
        keys.choice(ANYONE, OTHERS),
        "who may approve a release: anyone, or only others than who has made its plan, wherever either is "
        "done; the first release needs nobody else", f'"{OTHERS}"')] = ANYONE  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LineageEvents:
    """Where OpenLineage's events of what runs go."""

    file: Annotated[str, Key(
        keys.choice("on", "off"), "whether they are written to logs/lineage.jsonl in $TWINLAKE_HOME",
        '"off"')] = "on"  # fmt: skip
    url: Annotated[str, Key(
        keys.web_address("name `api_key_file`"), "a receiver that they are sent to as well",
        '"http://marquez:5000"')] = ""  # fmt: skip
    api_key_file: Annotated[File, Key(
        keys.secret_in_file, "holds the key that the receiver asks for", '"/etc/twinlake/lineage"',
    )] = None  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """What holds of every `twinlake webhook`."""

    secret_file: Annotated[File, Key(
        keys.secret_in_file, "holds the secret that what is posted is signed with; see docs/changes.md",
        '"/etc/twinlake/webhooks"',
    )] = None  # fmt: skip


METRICS_ON, METRICS_OFF = "on", "off"


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """What Prometheus scrapes, and what is sent to a receiver of OpenTelemetry's."""

    serve: Annotated[str, Key(
        keys.choice(METRICS_ON, METRICS_OFF),
        "whether lake server, SQL server and console serve /metrics: on or off",
        f'"{METRICS_OFF}"')] = METRICS_ON  # fmt: skip
    host: Annotated[str, Key(
        keys.matching(r"[0-9a-zA-Z.:_-]+", 'an address or name of this machine like "127.0.0.1"'),
        "where they listen; beyond this machine user and password travel unencrypted, see docs/security.md",
        '"0.0.0.0"')] = "127.0.0.1"  # fmt: skip
    otlp_url: Annotated[str, Key(
        keys.web_address("name `otlp_headers_file`"),
        "a receiver of OTLP over HTTP that the same metrics are sent to, with the path",
        '"http://collector:4318/v1/metrics"')] = ""  # fmt: skip
    otlp_headers_file: Annotated[File, Key(
        keys.secret_in_file, "holds the headers that the receiver asks for, like Authorization=Bearer ...",
        '"/etc/twinlake/otlp"')] = None  # fmt: skip
    otlp_seconds: Annotated[int, Key(
        keys.whole(1, 3_600), "how often they are sent", "10")] = 30  # fmt: skip

    @property
    def is_on(self) -> bool:
        return self.serve == METRICS_ON


SQL_HISTORY = "sql_history"
"""A file in $TWINLAKE_HOME: what was asked at the prompt of `twinlake sql`."""
OF_HOME = (
    "lake", "checkpoints", "ids", "kafka", "registry", "airflow", "sql", "access", "run", "logs", "demo",
    "bench", "services.json", "gallery.json", SQL_HISTORY, "upgrade", "lake.before", "lake.before.making",
    "lake.after", "lake.going", "lake.restoring",
)  # fmt: skip
"""What is made in $TWINLAKE_HOME, and goes with it."""
SECTIONS: Mapping[str, Section] = {
    "kafka": Section(Kafka, "the log's source"),
    "registry": Section(RegistryLogin, "the schema registry, as Confluent's client speaks to it"),
    "spark": Section(Spark, "where the lake server's work runs"),
    "lake": Section(Lake, "where logs and tables are"),
    "airflow": Section(Airflow, "what schedules, shows forms, and asks for approvals"),
    "console": Section(Console, "the pages in a browser"),
    "sql": Section(Sql, "the SQL server for clients on other machines"),
    "ports": Section(Ports, "ports on the loopback interface, and for other machines"),
    "limits": Section(Limits, "how long and how much"),
    "alarms": Section(Alarms, "what is an alarm, and who hears of it"),
    "backup": Section(Backups, "backups that are taken by themselves"),
    "releases": Section(Releases, "who decides about a release"),
    "lineage": Section(LineageEvents, "where OpenLineage's events of what runs go"),
    "webhooks": Section(Webhooks, "changes of tables that are posted"),
    "metrics": Section(Metrics, "what Prometheus scrapes"),
    "proof": Section(Proof, "what a table must pass beside the comparison of speed with batch"),
}
PROJECT_SECTION = "project"
"""The one section of the other `twinlake.toml`, that of a project (`twinlake/config/project.py`)."""


def every_key() -> Iterator[tuple[str, Key]]:
    """Each key by its whole name, secrets included."""
    for name, section in SECTIONS.items():
        yield from section.every_key(name)
