"""The edge to Spark: one session per process, with the settings that were measured for it."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from twinlake.base.errors import UnreachableError
from twinlake.base.interrupt import restored
from twinlake.config.library import FETCH_JARS
from twinlake.spark import cluster as spark_cluster

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from twinlake.config.sections import Spark
from twinlake.config.settings import Settings

HOST = "127.0.0.1"

# Avro trusts the lengths it reads; without a limit five foreign bytes can ask for gigabytes.
LARGEST_FIELD_BYTES = 64 * 1024 * 1024

MEASURED: dict[str, str] = {
    # a filter on windows that overlap reaches the tiles that they are stored as, and rows are grouped before
    # they are sorted: see the classes
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,twinlake.lake.Ranges,"
    "twinlake.lake.EarlyGroups",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    # Hadoop starts a program for every file, Delta's own store may overwrite a commit: see the classes
    "spark.hadoop.fs.file.impl": "twinlake.lake.LocalFiles",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "twinlake.lake.LocalFiles$Context",
    "spark.delta.logStore.file.impl": "twinlake.lake.LinkedCommits",
    # a path without a scheme is one of this machine, whatever Hadoop's own files say
    "spark.hadoop.fs.defaultFS": "file:///",
    # the same results whatever the machine's zone is
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # small cycles: re-planning and many partitions cost more than they bring
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "100",
    "spark.scheduler.mode": "FAIR",
    # records hold every bit already: level 1 is twice as fast as 3 and 4 % larger
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
    # a byte that has changed on the disk is an error, not another value
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # pages alone have checksums: by a changed bound, index or dictionary, which are asked before any page, a
    # filter would leave out rows without a word; Delta's statistics prune whole files all the same
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.codegen.cache.maxEntries": "1000",
    # verdicts travel inside plans as binary literals; nobody wants to read them
    "spark.sql.maxPlanStringLength": "4000",
    # where in our code an expression was made: eight calls for each, for a line that no user is shown
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.minBatchesToRetain": "5",
    # a stream that does not end is an error, not a wait without end
    "spark.sql.streaming.stopTimeout": "120s",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.cleaner.periodicGC.interval": "10min",
}


_QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1"
"""Java's thorough compiler takes more time than it saves in a process of seconds; in one of minutes it saves
a third of all, however few the rows."""


_LIMITS = " ".join(
    (
        *(
            f"-Dorg.apache.avro.limits.{kind}={LARGEST_FIELD_BYTES}"
            for kind in ("bytes.maxLength", "string.maxLength", "collectionItems.maxLength")
        ),
        # JSON nested as deeply as Spark's parser admits (1,000) is looked at by calls inside calls; where
        # they find no room, one record ends the JVM, again and again
        "-Xss4m",
    )
)


PAGE = "4m"
"""In which sorts and aggregates keep rows; Spark itself takes up to 64 MB. The iterator of a sort keeps its
last page alive for as long as its thread lives, which was 200 to 600 MB after a rebuild."""
_MOST_PAGES = 8_192
"""Of one task; where it needs more it fails."""


def java_options(settings: Settings) -> str:
    """JVM options every Twinlake Spark driver starts with."""
    archive = settings.class_archive
    # an archive of another Java or of other jars is passed over, without a word on stdout
    shared = f"-XX:SharedArchiveFile={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"
    mapped = archive.exists() and " " not in str(archive)  # where Spark parts the options
    # its policy counts for collections that are requested, too: spark/unused_memory.py gives back by one
    collector = "-XX:+UseParallelGC -XX:+UseAdaptiveSizePolicyWithSystemGC"
    # small work is done outside of Spark's tasks, which would end a JVM that has run out of memory
    always = f"{collector} -XX:+ExitOnOutOfMemoryError -Djava.net.preferIPv4Stack=true"
    return f"{_LIMITS} {always}" + (f" {shared}" if mapped else "")


def _is_small(heap: str) -> bool:
    """Whether a task that had all of it would need less than its number of pages."""
    return int(heap[:-1]) * {"m": 1, "g": 1024}[heap[-1]] < _MOST_PAGES * int(PAGE[:-1])


def class_path(settings: Settings) -> list[Path]:
    """What the driver needs besides what PySpark brings: jars, and the project's own classes."""
    found = sorted((settings.jars / "spark").glob("*.jar"))
    if not found:
        raise UnreachableError(
            what=f"there are no Spark jars in {settings.jars / 'spark'}",
            why="they have not been downloaded yet",
            remedy=FETCH_JARS,
        )
    if not settings.classes.exists():
        raise UnreachableError(
            f"there is no {settings.classes}",
            "the project's Java classes were not compiled",
            FETCH_JARS,
        )
    return [*found, settings.classes]


@contextmanager
def stderr_to(file: Path) -> Iterator[None]:
    """For this process and for those it starts meanwhile, which keep it: Spark's own words."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with file.open("wb") as out:
            os.dup2(out.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def scratch_folder(spark: SparkSession) -> Path:
    """Where its driver keeps what is under way; whoever cannot write may lack room there."""
    return Path(spark.sparkContext._conf.get("spark.local.dir") or tempfile.gettempdir())


def drop_scratch(settings: Settings, name: str) -> None:
    """Deletes what a process that was killed has left of its session's temporary files."""
    shutil.rmtree(_scratch_folder(settings, name), ignore_errors=True)


def session(
    settings: Settings,
    name: str = "twinlake",
    memory: str = "4g",
    cores: int | None = None,
    more: dict[str, str] | None = None,
    plans_only: bool = False,
    given: Spark | None = None,
) -> SparkSession:
    """The Spark session of this process; the first call starts the JVM (4 to 10 s).

    With `plans_only` its JVM is made for a few plans, and would be slow in a process of minutes. `given` is
    what twinlake.toml says, for the driver that may have executors elsewhere; UnreachableError where their
    master does not take it.
    """
    scratch = _scratch_folder(settings, name)
    temporary = scratch / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    options = java_options(settings)
    if plans_only:
        options += f" {_QUICKLY_COMPILED}"
    if " " not in str(temporary):  # where Spark parts the options
        options += f" -Djava.io.tmpdir={temporary}"
    jars = class_path(settings)
    conf = {
        "spark.app.name": name,
        "spark.master": given.master if given else f"local[{cores or '*'}]",
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": options,
        "spark.driver.memory": given.driver_memory if given else memory,
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **MEASURED,
        **(more or {}),
    }
    secrets: dict[str, str] = {}
    if given:
        spark_cluster.refuse(given.conf)
        spark_cluster.refuse_open(given)
        if given.is_external:
            conf |= spark_cluster.cluster_conf(given, jars, _LIMITS, settings.lake)
        secrets = spark_cluster.secrets(given)
        conf = spark_cluster.merged(conf, given.conf)
    if not (given and given.is_external):
        # whoever reaches its ports could run programs as this user; each driver makes its secret, in memory
        conf[spark_cluster.AUTHENTICATE] = "true"
        # a stack that overflows in a task (a regular expression over a long value) ends its statement or job,
        # not the process; where the heap is full the JVM ends itself
        conf["spark.executor.killOnFatalError.depth"] = "0"
        if _is_small(conf["spark.driver.memory"]):
            conf.setdefault("spark.buffer.pageSize", PAGE)
    spark = _started({name: conf[name] for name in conf if name not in secrets}, secrets, given)
    spark.sparkContext.setLogLevel("ERROR")
    _ask_callers(spark)
    _say_errors_once()
    return spark


def _started(conf: dict[str, str], secrets: dict[str, str], given: Spark | None) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = conf["spark.driver.bindAddress"]
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    before = set(psutil.Process().children())
    try:
        with restored():  # PySpark's own handler asks the JVM in the middle of another question
            if secrets:
                # the JVM's command line, which everybody can read, has all that is known before it starts
                SparkContext._ensure_initialized(conf=SparkConf().setAll([*conf.items()]))
            SparkContext.getOrCreate(SparkConf().setAll([*(secrets or conf).items()]))
        return SparkSession.builder.config(map=conf).getOrCreate()
    except (Py4JError, PySparkException) as error:
        if given and given.is_external:
            raise spark_cluster.not_taken(given, error) from error
        raise
    except BaseException:
        if SparkContext._gateway is None:  # nobody knows the JVM yet, and it would wait for ever to be asked
            for one in set(psutil.Process().children()) - before:
                with suppress(psutil.Error):  # it has just ended
                    if "pyspark-shell" in one.cmdline():
                        one.kill()
        raise


def _scratch_folder(settings: Settings, name: str) -> Path:
    return settings.run_dir / "spark" / name


def is_jvm_lost(error: BaseException) -> bool:
    """Whether py4j raised it because the JVM has ended; what Java throws or lacks is something else."""
    from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

    if isinstance(error, ConnectionError | Py4JNetworkError):
        return True
    # of a call whose connection was reset, py4j says only that it failed
    is_plain = isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    text = str(error)
    return is_plain and text.startswith("An error occurred while calling") and "Trace:" not in text


def cancel(context: SparkContext, tag: str) -> None:
    """Ends what threads with this job tag have asked Spark for, in its tasks and in threads of their own."""
    java: Any = context._jvm
    context.cancelJobsWithTag(tag)
    java.twinlake.lake.InlineTask.cancel(tag)


def _ask_callers(spark: SparkSession) -> None:
    """Python's functions ask who calls them for the token that Java asks for.

    PySpark opens their port without: every user of this machine could hand a batch to ingest.
    """
    from py4j.java_gateway import JavaObject, JavaPackage

    java: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    token = gateway.java_parameters.auth_token
    if gateway.python_parameters.auth_token:
        return
    callbacks = java.twinlake.lake.AskedCallbacks
    if isinstance(callbacks, JavaPackage):  # what py4j makes of a name that is not a class
        raise UnreachableError(
            "the project's Java classes lack one that its Python uses",
            "they were compiled before it was made",
            FETCH_JARS,
        )  # fmt: skip
    callbacks.use(JavaObject("GATEWAY_SERVER", gateway._gateway_client), token)
    gateway.python_parameters.auth_token = token


def _say_errors_once() -> None:
    """PySpark logs at length what it raises, too.

    It gives its loggers words that only those of its own class know: one made by `logging` raises a TypeError
    in place of Spark's error.
    """
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
