"""An external Spark cluster: what executors get, what may be set, whether its master is there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.base.address import connection_error, host_and_port, is_loopback
from twinlake.base.errors import UnreachableError, UsageError
from twinlake.config.login import PLAINTEXT
from twinlake.config.sections import SECRET_FILE, names_secret

if TYPE_CHECKING:
    from twinlake.base.location import Location
    from twinlake.config.sections import Spark
    from twinlake.config.values import Values

LOOPBACK = "127.0.0.1"
STANDALONE = "spark://"
ANSWER_S = 5.0
REST_PORT = 6066
"""Where a standalone master shows its version by default."""
AUTHENTICATE = "spark.authenticate"
SECRET = "spark.authenticate.secret"
ON_WORKERS = "spark.executor.extraClassPath"
BIND = "spark.driver.bindAddress"
PAGES = "spark.ui.enabled"
ENCRYPTED = "spark.network.crypto.enabled"

GROUP_BYTES = "spark.twinlake.groupBytes"
_SIZE = re.compile(r"\d+(b|[kmg]b?)?", re.IGNORECASE)

FREE = (
    "spark.sql.shuffle.partitions", "spark.sql.adaptive.", "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout", "spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum", "spark.sql.files.maxPartitionNum", "spark.sql.objectHashAggregate.",
    "spark.sql.leafNodeDefaultParallelism", "spark.sql.sources.parallelPartitionDiscovery.",
    GROUP_BYTES,
)  # fmt: skip
"""Of Spark's SQL, and ours beside it, those that decide how fast an answer is, and never what it is."""
REFUSED = {
    "spark.master": "it is `master` of [spark]",
    "spark.submit.deployMode": "the lake server itself is the driver",
    "spark.driver.memory": "it is `driver_memory` of [spark]",
    "spark.driver.host": "it is `advertised_host` of [spark]",
    "spark.driver.extraClassPath": "the driver runs with the jars of `make jars`",
    "spark.driver.extraJavaOptions": "the driver runs with options that its work needs",
    "spark.driver.userClassPathFirst": "the driver runs with the jars of `make jars`",
    "spark.executor.userClassPathFirst": "executors must run the driver's Spark",
    "spark.local.dir": "the driver's is in $TWINLAKE_HOME; that of executors is set where they run, "
    "by SPARK_LOCAL_DIRS",
    "spark.twinlake.": "it is `uri` of [lake]",
    "spark.scheduler.": "the stream's tasks go before those of jobs by it",
    "spark.sql.": "it may change what an answer is, and a table would not equal the one of another day",
    "spark.delta.": "commits would not be made once, or could overwrite each other",
    "spark.databricks.": "commits would not be made once, or could overwrite each other",
    "spark.hadoop.fs.defaultFS": "a path without a scheme is one of this machine",
    "spark.hadoop.fs.file.impl": "commits on a disk are made by a file system of the project's own",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "commits on a disk are made by a file system of the "
    "project's own",
    "spark.hadoop.mapreduce.fileoutputcommitter.": "what a lost executor has half written could be taken "
    "for whole",
    SECRET: f'a secret stands in a file of its own: "{SECRET_FILE}"',
}
"""Settings, or beginnings of their names, that nobody may give, and why."""


def refuse(conf: Mapping[str, str]) -> None:
    """UsageError for settings of Spark's that Twinlake's answers depend on."""
    if not _SIZE.fullmatch(conf.get(GROUP_BYTES, "0")):
        raise UsageError(
            f"[spark] conf may not set {GROUP_BYTES}", f"{conf[GROUP_BYTES]!r} is no size",
            "give one like 64m, or 0 for Spark's own plans",
        )  # fmt: skip
    for name in conf:
        if name.startswith(FREE):
            continue
        why = next((why for known, why in REFUSED.items() if _is_of(name, known)), None)
        if why:
            raise UsageError(
                f"[spark] conf may not set {name}", why,
                "remove it from twinlake.toml (or from TWINLAKE_SPARK_CONF)",
            )  # fmt: skip


def _is_of(name: str, known: str) -> bool:
    return name.startswith(known) if known.endswith(".") else name == known


def refuse_open(given: Spark) -> None:
    """UsageError where others reach the driver's ports, and nothing asks who they are."""
    if not given.is_external and given.conf.get(AUTHENTICATE, "true") != "true":
        raise UsageError(
            f"[spark] conf may not set {AUTHENTICATE} to {given.conf[AUTHENTICATE]} without a cluster",
            "every user of this machine could run programs as the lake server", "remove it",
        )  # fmt: skip
    advertised = given.advertised_host if given.is_external else LOOPBACK
    far = [host for host in {advertised, given.conf.get(BIND, advertised)} if not is_loopback(host)]
    if far and AUTHENTICATE not in given.conf:
        raise UsageError(
            f"the driver's ports are to be reached by {' and '.join(far)}, and nothing asks who comes",
            "whoever reaches them could run programs as the lake server",
            f'in [spark] conf set "{AUTHENTICATE}" = "true", with a standalone master also '
            f'"{SECRET_FILE}"; in a network of your own "false"',
        )  # fmt: skip
    if far and given.conf.get(PAGES, "false") != "false" and "spark.ui.filters" not in given.conf:
        raise UsageError(
            f"Spark's own pages are to be reached by {' and '.join(far)}, and ask nobody who comes",
            "they show values of records, and a button there ends the work of ingest",
            f'remove "{PAGES}" from [spark] conf, or name by "spark.ui.filters" what asks there',
        )


def cluster_conf(given: Spark, jars: Sequence[Path], limits: str, lake: Location) -> dict[str, str]:
    """Settings of a driver whose executors are elsewhere; `limits` are Java options that these need as well.

    The driver hands its jars to them, unless they have the same ones on their own class path.
    """
    host = given.advertised_host
    # as the driver does: times in UTC whatever the host says, and lengths in records limited
    options = f"{limits} -Duser.timezone=UTC -Dfile.encoding=UTF-8"
    made = {
        "spark.driver.host": host,
        BIND: given.conf.get(BIND, host),
        "spark.executor.extraJavaOptions": options,
        "spark.plugins": "twinlake.lake.Admission",
        "spark.twinlake.lake": str(lake),
    }
    if ON_WORKERS not in given.conf:
        made["spark.jars"] = ",".join(map(str, jars))
    return made


def merged(ours: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """Ours and the operator's, whose word counts; of two lists both count."""
    found = {**ours, **{name: value for name, value in conf.items() if name != SECRET_FILE}}
    for name, separator in (
        ("spark.jars", ","),
        ("spark.plugins", ","),
        ("spark.executor.extraJavaOptions", " "),
    ):
        if name in ours and name in conf:
            found[name] = f"{ours[name]}{separator}{conf[name]}"
    return found


def secrets(given: Spark) -> dict[str, str]:
    """The settings that must not stand on a command line, which everybody can read; with what driver and
    executors of a standalone cluster show each other, read from its file."""
    found = {name: value for name, value in given.conf.items() if names_secret(name) and name != SECRET_FILE}
    named = given.conf.get(SECRET_FILE, "")
    if not named:
        return found
    try:
        shown = Path(named).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{SECRET_FILE}, {named}, cannot be read", str(error), "name a file that the lake server may read"
        ) from error
    if not shown:
        raise UsageError(f"{SECRET_FILE}, {named}, is empty", "", "write the cluster's secret into it")
    return {**found, SECRET: shown}


def check_master(values: Values, wait_s: float = ANSWER_S) -> str:
    """That the master can be used, as far as it tells without a driver; in words.

    UsageError for settings that cannot be, or another version of Spark; UnreachableError where no master
    listens. What executors run is asked of them when the lake server has some.
    """
    given = values.spark
    refuse(given.conf)
    refuse_open(given)
    if not given.is_external:
        return f"{given.master}: inside the lake server"
    if not is_loopback(given.advertised_host) and not values.kafka.is_external:
        raise UsageError(
            "executors on other machines cannot read this machine's own Kafka",
            f"it listens on its loopback interface, they reach the lake server by {given.advertised_host}",
            "name a Kafka that they reach too, by `bootstrap_servers` of [kafka] in twinlake.toml",
        )
    is_said = any(name in given.conf for name in (ENCRYPTED, "spark.ssl.rpc.enabled"))
    if not is_loopback(given.advertised_host) and values.kafka.security != PLAINTEXT and not is_said:
        raise UsageError(
            "Kafka's passwords and keys would be readable on the way to the executors",
            f"they are part of what executors are sent, and [spark] conf has no {ENCRYPTED}",
            f'set "{ENCRYPTED}" = "true" there; in a network of your own "false"',
        )
    if not given.master.startswith(STANDALONE):
        return f"{given.master}: asked when the lake server starts"
    masters = given.master.removeprefix(STANDALONE).split(",")
    refused = [f"{one}: {why}" for one in masters if (why := connection_error(one, wait_s))]
    if len(refused) == len(masters):
        raise UnreachableError(
            f"no Spark master answers at {given.master}", "; ".join(refused),
            "start it, or fix `master` of [spark] in twinlake.toml; without it Spark runs on this machine",
        )  # fmt: skip
    mine = _version()
    hosts = (host_and_port(one)[0] for one in masters)
    theirs = next((found for host in hosts if (found := _master_version(host, wait_s))), "")
    if theirs and theirs != mine:
        raise UsageError(
            f"the Spark master at {given.master} is {theirs}",
            f"the lake server is {mine}, and they speak no common language",
            f"run master and workers of Spark {mine}",
        )
    return f"{given.master}: answers" + (f", Spark {theirs}" if theirs else "")


def not_taken(given: Spark, error: Exception) -> UnreachableError:
    """The error of a driver that the master did not take."""
    said = re.sub(r"\s+", " ", str(error))
    return UnreachableError(
        f"the Spark master {given.master} did not take the lake server", said[:600],
        f"it must run Spark {_version()}, with the same `spark.authenticate` and secret, and reach "
        f"this host by {given.advertised_host} (`advertised_host` of [spark]); its log tells more",
    )  # fmt: skip


def _version() -> str:
    from importlib.metadata import version  # here: every command imports this module, few ask

    return version("pyspark")


def _master_version(host: str, wait_s: float) -> str:
    """The version by the master's other endpoint, '' where that is closed."""
    from http.client import HTTPException
    from urllib.request import ProxyHandler, build_opener

    place = f"[{host}]" if ":" in host else host
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://{place}:{REST_PORT}/v1/submissions/status/none", timeout=wait_s) as answer:
            found = json.load(answer).get("serverSparkVersion")
    except (OSError, ValueError, AttributeError, HTTPException):
        return ""
    return found if isinstance(found, str) else ""
