"""Lets a Spark driver do a little of everything once, and keeps the classes that it has loaded in a file.

Later drivers map the file (Java's application class-data sharing) instead of reading, checking and linking
some 20,000 classes each: they start and do their first work in half the time. Java itself passes over a file
that was made by another Java or of other jars.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from twinlake.base.files import READABLE
from twinlake.config.library import jars_folder
from twinlake.config.settings import Settings
from twinlake.setup.java import NoJava, find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST_S = 900.0
TRIED = ".archived"
"""Beside the jars, once an archive of them was made or could not be."""
LOADED = (
    "twinlake/",
    "org/apache/spark/sql/kafka010/",
    "org/apache/kafka/clients/",
    "org/apache/kafka/common/",
)
"""Classes that are loaded by name: what uses them needs a broker, or a lake."""
NOT_LOADED = ("org/apache/kafka/common/message/",)
"""Thousands of forms of Kafka's protocol, of which few are met."""
AVRO = json.dumps({"type": "record", "name": "one", "fields": [{"name": "id", "type": "long"}]})


class ArchiveError(Exception):
    """The archive could not be made; nothing but speed is lost without it."""


def make_archive(settings: Settings) -> Path:
    """Makes `settings.class_archive` again; ArchiveError says why it could not be made."""
    archive = settings.class_archive
    part = archive.with_name(f"{archive.name}.{os.getpid()}.part")
    try:
        _train_into(part, archive)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ArchiveError(f"the class archive was not made: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return archive


def _train_into(part: Path, archive: Path) -> None:
    if re.search(r"\s", str(part)):
        raise ArchiveError(f"the class archive was not made: Spark splits options on the spaces of {part}")
    archive.unlink(missing_ok=True)
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={part}"}
    command = [sys.executable, "-m", "twinlake.setup.class_archive", "--train"]
    done = subprocess.run(
        command, cwd=archive.parent, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=LONGEST_S,
    )  # fmt: skip
    if done.returncode or not part.exists():
        raise ArchiveError(f"the class archive was not made:\n{done.stdout[-4000:]}")
    part.chmod(READABLE)
    part.rename(archive)


def train() -> None:
    """Starts a driver, has it work, and ends it: Java then writes the archive it was asked for."""
    from twinlake.spark.session import class_path, session

    with TemporaryDirectory(prefix="twinlake-archive-") as scratch:
        settings = Settings(home=Path(scratch), jars=jars_folder(os.environ))
        spark = session(settings, name="twinlake-archive", memory="1g")
        jvm: Any = spark.sparkContext._gateway
        _work(spark, Path(scratch))
        for jar in class_path(settings):
            _load(spark, jar)
        spark.stop()
        jvm.shutdown()
        jvm.proc.stdin.close()
        jvm.proc.wait()


def _work(spark: SparkSession, folder: Path) -> None:
    """A little of what the lake server and readers' statements do."""
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro, to_avro

    rows = spark.range(1_000, numPartitions=2).select(
        "id", F.expr("cast(id % 7 AS string) AS name"), F.expr("timestamp_seconds(id) AS time"),
        F.expr("cast(id AS decimal(20, 2)) AS amount"), F.expr("named_struct('x', id) AS event"),
    )  # fmt: skip
    for number in range(2):
        rows.coalesce(1).write.format("delta").mode("append").partitionBy("name").option(
            "txnAppId", "archive"
        ).option("txnVersion", number + 1).save(str(folder / "table"))
    table = f"delta.`{folder / 'table'}`"
    spark.sql(f"OPTIMIZE {table}").collect()
    spark.sql(f"CREATE OR REPLACE VIEW seen AS SELECT * FROM {table}")
    totals = spark.sql(f"""
        SELECT name, window(time, '1 minute').start AS begins, count(*) AS n, sum(amount) AS total,
               max(amount) AS most, max_by(id, struct(time, id)) AS newest, bit_xor(xxhash64(id)) AS hash,
               theta_sketch_estimate(theta_sketch_agg(id)) AS ids
        FROM {table} WHERE time > timestamp '1970-01-01 00:00:01' GROUP BY ALL ORDER BY name, begins LIMIT 100
    """)
    totals.toArrow()
    totals.collect()
    joined = spark.table(table).alias("a").join(rows.alias("b"), "id", "left").groupBy("a.name").count()
    joined.collect()
    avro = rows.select(to_avro(F.struct("id")).alias("bytes"))
    avro.select(from_avro("bytes", AVRO, {"mode": "PERMISSIVE"}).alias("found")).selectExpr(
        "found.id"
    ).toArrow()
    _stream(spark, folder)


def _stream(spark: SparkSession, folder: Path) -> None:
    def batch(records: DataFrame, number: int) -> None:
        records.toArrow()

    texts = folder / "texts"
    spark.range(10).selectExpr("cast(id AS string)").write.text(str(texts))
    source = spark.readStream.format("text").load(str(texts))
    stream = source.writeStream.option("checkpointLocation", str(folder / "stream")).foreachBatch(batch)
    stream.trigger(availableNow=True).start().awaitTermination()


def _load(spark: SparkSession, jar: Path) -> None:
    java: Any = spark._jvm
    for entry in ZipFile(jar).namelist():
        if entry.endswith(".class") and entry.startswith(LOADED) and not entry.startswith(NOT_LOADED):
            with suppress(Exception):  # one of those that need a jar which nobody here has
                java.org.apache.spark.util.Utils.classForName(entry[:-6].replace("/", "."), False, False)


def main() -> None:
    """Makes the archive; part of `make jars`."""
    if sys.argv[1:] == ["--train"]:
        train()
        return
    settings = Settings(home=jars_folder(os.environ), jars=jars_folder(os.environ))
    try:
        os.environ["JAVA_HOME"] = str(find_java(os.environ))
        print(">> class archive (about a minute; drivers start twice as fast with it)", flush=True)
        make_archive(settings)
    except (ArchiveError, NoJava) as error:
        print(f"{error}\nTwinlake works without it, and starts slower.", file=sys.stderr)
    settings.jars.joinpath(TRIED).touch()


if __name__ == "__main__":
    main()
