"""The SQL server of a checkout that somebody edits: readers see what the lake server works with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.tables import latest_order, orders, sales_per_region
from tests.history import version_of
from tests.project import OURS, PROJECT, project_in
from tests.reading.conftest import SqlServer
from tests.written_log import write_batch
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind, is_stored
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.topics.topic import Topic, load_topic

RECORDS = 100
NOTE = {"name": "note", "type": "string", "default": "none"}
FINAL = "SELECT count_if(final) AS final, count(*) AS windows FROM serve.sales_per_region"


@dataclass
class Edited:
    """A checkout beside a lake, and the SQL server that runs from it; the lake is written by the test."""

    spark: SparkSession
    checkout: Path
    lake: Path
    server: SqlServer

    def add_schema(self) -> Topic:
        """A second version of the topic's schema, with a field more; the topic as it is then."""
        first = self.checkout / "schemas" / "orders.v1.avsc"
        avro = json.loads(first.read_text())
        avro["fields"].append(NOTE)
        first.with_name("orders.v2.avsc").write_text(json.dumps(avro))
        contract = self.checkout / "contracts" / "orders.yaml"
        note = "\n      - name: note\n        logicalType: string\n        physicalType: string"
        contract.write_text(contract.read_text().rstrip() + note + "\n        required: true\n")
        return load_topic("orders", project_in(self.checkout))

    def feed(self, table: Kind, watermark: int = 0) -> None:
        """The version, and its next step where it has any."""
        version_of(table).save(self.lake)
        if is_stored(table):
            log = Log(self.spark, self.lake, load_topic("orders", OURS))
            rows = table.partial(log.rows(0, 1)).selectExpr("*", "0 AS _segment")
            told = {"kind": "step", "step": 1, "position": {"orders": 1}, "watermark": watermark}
            path = version_of(table).path(self.lake)
            step = delta.newest_version(path) + 2
            delta.append(rows if step == 1 else rows.limit(0), path, "test", step, told, ("_segment",))

    def promote(self, *tables: Kind) -> Release:
        live = release_log.live(self.lake)
        made = Release(
            number=live.number + 1 if live else 1, kind="promote", created_at="2026-01-31T12:00:00Z",
            approved_by="me", tables={table.name: version_of(table).name for table in tables},
        )  # fmt: skip
        return release_log.commit(self.lake, made)


@pytest.fixture
def edited(spark: SparkSession, tmp_path: Path) -> Iterator[Edited]:
    """The checkout is the process's working directory: `python -m` takes its modules from there."""
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    for folder in ("jobs", "twinlake", "schemas", "contracts"):
        shutil.copytree(PROJECT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", checkout)  # by it the library knows that it is in one
    (checkout / ".jars").symlink_to((PROJECT / ".jars").resolve())
    made = Edited(spark, checkout, home / "lake", SqlServer(home=home, scratch=checkout))
    formats.acquire(made.lake)
    write_batch(Log(spark, made.lake, load_topic("orders", OURS)), RECORDS)
    made.feed(orders.TABLE)
    made.feed(sales_per_region.TABLE)
    made.promote(orders.TABLE, sales_per_region.TABLE)
    yield made
    if made.server._process:
        made.server.kill()


@pytest.mark.faults
def test_readers_see_what_is_in_force_whatever_is_added_to_the_checkout(edited: Edited) -> None:
    topic, server = edited.add_schema(), edited.server
    server.start()
    shown = server.rows("SELECT count(*) AS n FROM serve.orders")
    before = server.rows(FINAL)

    # the lake server starts with the new files, and a release uses the new field
    late = replace(topic, contract=replace(topic.contract, late_after=timedelta(microseconds=1)))
    Log(edited.spark, edited.lake, late).open()
    edited.feed(sales_per_region.TABLE, watermark=1769861000_000_000)
    noted = Events(name="noted", inputs=("orders",), columns={"event_id": "event_id", "note": "note"})
    edited.feed(noted)
    edited.promote(noted, sales_per_region.TABLE)
    server.wait_until(lambda status: status["release"] == 2)

    assert shown == [{"n": RECORDS}] and before == [{"final": 0, "windows": 3}]
    assert server.rows("SELECT note, count(*) AS n FROM serve.noted GROUP BY note") == [
        {"note": "none", "n": RECORDS}
    ]
    # of the contract, too: its lateness was three hours, and 3 is what the views say of one microsecond
    server.wait_until(lambda status: server.rows(FINAL) == [{"final": 3, "windows": 3}])


@pytest.mark.faults
def test_watermarks_move_while_a_release_cannot_be_followed(edited: Edited) -> None:
    server = edited.server
    server.start()
    assert server.rows(FINAL) == [{"final": 0, "windows": 3}]

    # a release of a version that is not there
    edited.promote(latest_order.TABLE)
    server.wait_until(lambda status: status["error"] is not None)
    edited.feed(sales_per_region.TABLE, watermark=1769900000_000_000)

    server.wait_until(lambda status: server.rows(FINAL) == [{"final": 3, "windows": 3}])
    assert server.status()["error"] is not None
