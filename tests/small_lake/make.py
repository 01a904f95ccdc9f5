"""Makes the small lake of the code's own format: `python -m tests.small_lake.make NUMBER`.

A real broker feeds a real lake server: every kind of table, two releases, a rebuild, quarantine, a replay
after a contract was changed, a changelog that is on, certificates; then it is killed with a segment open.
What is drawn comes from one seed; ids, Kafka's times and file names are new each time.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, StructType

from jobs.tables import sales_per_region
from records import FaultShares, Sample
from tests.broker import Broker
from tests.kill.server import SCHEMA_ID, LakeProcess
from tests.project import EXAMPLES, GALLERY, OURS, PROJECT, TABLES, example_of, sequence
from tests.registry import FakeRegistry
from tests.small_lake.small import HERE, shown
from twinlake.config.settings import Settings
from twinlake.ingest.ingest import RUNNING
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.kind import Kind, StoredKind, ViewClock
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.windows import Hopping
from twinlake.lake.log.log import Log
from twinlake.spark.session import session
from twinlake.topics.contract import JSON
from twinlake.topics.kafka import Kafka
from twinlake.topics.produce import produce
from twinlake.topics.topic import load_topic, topic_names

SEED = 27
SHOWN = ("clicks", "shop")
RECORDS = 120
FAULTS = FaultShares(duplicate=0.05, undecodable=0.03, rule_broken=0.1, late=0.05, too_late=0.02)
NOT_KEPT = {"checkpoints", "ids", "lake.lock", "staging"}
HABITS = Aggregate(
    name="habits", inputs=("orders",),
    columns={
        "region": "region", "ordered_at": "ordered_at", "amount": "amount", "status": "status",
        "weight": "cast(amount as double)",
    },
    keys=("region",), window=Hopping(on="ordered_at", size="2 hours", every="1 hour"),
    measures={
        "number": Count(), "least": Min("amount"), "greatest": Max("amount"), "first": First("status"),
        "last": Last("status", by="ordered_at"), "dearest": ArgMax("status", by="amount"),
        "cheapest": ArgMin("status", by="amount"), "statuses": CountDistinct("status"),
        "quantiles": Quantile("amount", q=(0.5, 0.9)), "top": TopK("status", most=2),
        "set": CollectSet("status"), "spread": Stddev("weight"), "variance": Variance("weight"),
        "mean": Avg("weight"), "sum": Sum("weight"),
    },
)  # fmt: skip
TOTALS = Aggregate(
    name="totals", inputs=("orders",), columns={"status": "status", "amount": "amount"}, keys=("status",),
    measures={"amount": Sum("amount"), "orders": Count()},
)  # fmt: skip
ALL: Mapping[str, Kind] = {
    table.name: table for table in (*TABLES, HABITS, TOTALS, *EXAMPLES["clicks"], *EXAMPLES["shop"])
}
CHANGED = {**ALL, "sales_per_region": replace(sales_per_region.TABLE, where="status <> 'cancelled'")}


def make(number: int, folder: Path) -> None:
    project = folder / "project"
    for source in (PROJECT, *(GALLERY / name for name in SHOWN)):
        for part in ("schemas", "contracts"):
            shutil.copytree(source / part, project / part, dirs_exist_ok=True)
    (project / "twinlake.toml").write_text("[project]\n")
    spark = session(Settings(home=folder / "reader"), name="small-lake", memory="1g", cores=2)
    for table in (HABITS, TOTALS):
        _promise(table, spark, folder, project)
    broker, registry = Broker(folder / "broker").start(), FakeRegistry()
    server = LakeProcess(folder / "home", broker, registry, SEED)
    try:
        server.command = ["-m", "twinlake.server", "--project", str(project)]
        ids = _open_topics(server, registry)
        server.start(600)
        _release(server, ALL)
        _produce(server, ids)
        server.do("changelog", table="sales_per_region", topic="sales_changes")
        _produce(server, ids)
        for table in ALL:
            server.do("verify", table=table)
        server.do("rebuild", table="sales_per_region")
        server.kill()
        for name in ("orders", "latest_order"):
            contract, allowed = project / "contracts" / f"{name}.yaml", "- value: cancelled\n"
            text = contract.read_text().replace("version: 1.0.0", "version: 1.1.0")
            contract.write_text(text.replace(allowed, f"{allowed}          - value: refunded\n"))
        server.start(600)
        server.until(lambda: {one["state"] for one in server.client.status()["topics"]} == {RUNNING}, 300)
        replayed = server.do("replay", topic="orders")
        assert replayed["replayed"], replayed
        _release(server, CHANGED)
        _produce(server, ids)
        for table in ALL:
            server.do("verify", table=table)
        _produce(server, ids)
        server.until(lambda: all(one["position"] for one in server.client.status()["changelogs"]))
    finally:
        if server.running:
            server.kill()
        broker.stop()
        registry.close()
    _pack(number, folder, Path(str(server.lake)), project, spark)
    spark.stop()


def _open_topics(server: LakeProcess, registry: FakeRegistry) -> dict[tuple[str, str], int]:
    """The gallery's topics with what the registry calls their schemas (0 for JSON)."""
    ids: dict[tuple[str, str], int] = {}
    for example in SHOWN:
        for topic in topic_names(example_of(example)):
            loaded = load_topic(topic, example_of(example))
            ids[example, topic] = 0
            if loaded.contract.format != JSON:
                ids[example, topic] = SCHEMA_ID + len(ids)
                registry.add(f"{topic}-value", ids[example, topic], dict(loaded.newest.avro))
            Kafka(server.broker.login).create(topic, 1)
    return ids


def _release(server: LakeProcess, tables: Mapping[str, Kind]) -> None:
    plan = server.do("plan", definitions={name: table.to_json() for name, table in tables.items()})["id"]
    server.do("build", plan=plan)
    server.do("promote", plan=plan, approved_by="maker")


def _produce(server: LakeProcess, ids: Mapping[tuple[str, str], int]) -> None:
    """The next records of every topic, waited for until every table has them."""
    run, seed = f"run{server.produced}", SEED + server.produced
    sources: dict[str, Any] = {
        topic: sequence(example, topic, seed=seed, run=run, schema_id=id_, span_ms=3_600_000)
        for (example, topic), id_ in ids.items()
    }
    sources["orders"] = Sample(seed=seed, run=run, schema_id=SCHEMA_ID, span_ms=3_600_000, faults=FAULTS)
    for topic, source in sources.items():
        server.produced += RECORDS
        produce(
            source, login=server.broker.login, topic=topic, count=RECORDS, rate=None,
            stop=threading.Event(), report=lambda sent: None,
        )  # fmt: skip
    server.until(server.caught_up, 300)


def _promise(table: StoredKind, spark: SparkSession, folder: Path, project: Path) -> None:
    """A contract that promises the table's columns as they are."""
    log = Log(spark, folder / "columns", load_topic("orders", OURS))
    log.open()
    table.partial(log.rows(0, 0)).createOrReplaceTempView("states")
    columns = spark.sql(table.view({table.name: "states"}, ViewClock())).schema
    told = {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": table.name, "name": table.name,
        "version": "1.0.0", "status": "active",
        "description": {"purpose": "To be kept in the tests."},
        "schema": [{
            "name": table.name, "physicalType": "view", "logicalType": "object",
            "properties": [{"name": one.name, **_promised(one.dataType)} for one in columns],
        }],
    }  # fmt: skip
    (project / "contracts" / f"{table.name}.yaml").write_text(json.dumps(told, indent=1))


def _promised(type_: DataType) -> dict[str, Any]:
    name = type_.simpleString()
    if isinstance(type_, ArrayType):
        return {"logicalType": "array", "physicalType": "array", "items": _promised(type_.elementType)}
    if isinstance(type_, StructType):
        fields = [{"name": one.name, **_promised(one.dataType)} for one in type_]
        return {"logicalType": "object", "physicalType": "struct", "properties": fields}
    logical = {"bigint": "integer", "int": "integer", "double": "number", "decimal": "number"}
    return {"logicalType": logical.get(name.partition("(")[0], name), "physicalType": name}


def _pack(number: int, folder: Path, lake: Path, project: Path, spark: SparkSession) -> None:
    """What readers see is written down from a copy, by whatever the code is now."""
    copy = folder / "copy"
    shutil.copytree(lake, copy)
    told = {"shown": shown(spark, copy)}
    (folder / "shown.json").write_text(json.dumps(told, indent=1, sort_keys=True))
    (project / ".jars").unlink()

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(entry.name).parts
        if (parts[0] == "lake" and set(parts[1:2]) & NOT_KEPT) or entry.name.endswith(".crc"):
            return None
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o755 if entry.isdir() else 0o644
        return entry

    with tarfile.open(HERE / f"format_{number}.tar.xz", "w:xz", preset=9) as packed:
        for name, place in (("lake", lake), ("project", project), ("shown.json", folder / "shown.json")):
            packed.add(place, name, filter=plain)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        make(int(sys.argv[1]), Path(made))
