"""A whole lake server over a log that the test writes itself: no broker, no process of its own."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.ingest.stage import frame
from tests.project import OURS, PROJECT, project_in
from tests.registry import FakeRegistry
from twinlake.base.job import Failed, Run
from twinlake.base.times import Clock, utc_now
from twinlake.config.settings import Services, Settings
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.catalog.stalled import Report, published
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.server.lake_server import LakeServer, OnBatch
from twinlake.topics.topic import load_topic
from twinlake.topics.verdict import LATE, VALID, VERDICTS, records_in

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
EVENT = ("event_id", "order_id", "customer", "region", "status", "amount", "ordered_at")


def order(number: int, **changed: Any) -> dict[str, Any]:
    """Order `number`: five regions, ten customers, every tenth one cancelled, one second apart."""
    return {
        "event_id": f"e{number}", "order_id": number, "customer": f"c{number % 10}",
        "region": f"r{number % 5}",
        "status": "cancelled" if number % 10 == 0 else "paid", "amount": Decimal(number % 1000).scaleb(-2),
        "ordered_at": START + timedelta(seconds=number), **changed,
    }  # fmt: skip


class WrittenIngest:
    """Stands where ingest stands: `append` commits one batch to the real log and tells the versions."""

    def __init__(self, settings: Settings, log: Log, on_batch: OnBatch, clock: Clock) -> None:
        self.state, self.error, self.log_end = "running", None, LogEnd.of(log.topic.name, {})
        self._log, self._on_batch, self._clock = log, on_batch, clock
        self._counts = Counter(log.metadata().get("counts", {}))
        self._records = records_in(self._counts)
        self.replaying = threading.Lock()
        self._avro = dict(log.topic.newest.avro)
        self.unread = 0

    def start(self) -> None:
        """Nothing runs by itself."""

    def stop(self) -> None:
        """Nothing runs by itself."""

    def broker_ends(self) -> dict[int, int]:
        return {0: self._records + self.unread}

    def behind(self, ends: Mapping[int, int]) -> int:
        return max(0, ends[0] - self._records)

    def topic_settings(self) -> dict[str, str]:
        """Nothing is set: there is no Kafka."""
        return {}

    def offsets_since(self, micros: int) -> dict[int, int]:
        """Nothing is old."""
        return {0: 0}

    def unreadable(self) -> list[dict[str, Any]]:
        """What is written is read."""
        return []

    def append(self, records: list[dict[str, Any]], verdict: str = VALID, late: bool = False) -> int:
        batch, reasons = self._log.end() + 1, [] if verdict == VALID else ["missing:customer"]
        rows = [
            (0, 0, self._records + index, one["ordered_at"], 1, b"k", frame(1, self._avro, one), None, 1,
             tuple(one[name] for name in EVENT), verdict, reasons, late, "1.0.0", False, batch, self._clock())
            for index, one in enumerate(records)
        ]  # fmt: skip
        self._records += len(rows)
        self._counts[verdict] += len(rows)
        newest = int(max(one["ordered_at"] for one in records).timestamp() * 1_000_000)
        watermark = max(newest, self._log.metadata().get("watermark") or newest)
        metadata = {
            "kind": "batch", "batch": batch, "epoch": 0, "records": len(rows), "schemas": {"1": list(EVENT)},
            "schema_hashes": {},
            "topic_id": "", "topics": {}, "ends": {"0": {"0": self._records}}, "seen": {},
            "event_times": {},
            "watermark": watermark,
            "counts": {name: self._counts[name] for name in (*VERDICTS, LATE)},
        }  # fmt: skip
        # one file per batch: a task for each record would leave the order of doubles to the files' sizes
        written = self._log.spark.createDataFrame(rows, self._log.ddl).coalesce(1)
        delta.append(written, self._log.path, "test-log", batch, metadata)
        self._on_batch(batch, None)
        return batch


def append_orders(lake: Lake, count: int) -> None:
    """Orders into the log, each another one, and into every table."""
    begin = lake.ingest.broker_ends()[0]
    batch = lake.append([order(begin + number) for number in range(count)])
    for version in lake.server.lake.versions.living():
        lake.server.lake.versions.advance_to(version, {"orders": batch}, Run(id="append"))


class Lake:
    """The lake server and what tests ask of it."""

    def __init__(
        self, spark: SparkSession, home: Path, sql_url: str = "", project: Path = PROJECT, **services: str
    ) -> None:
        settings = Settings(home=home, in_project=project_in(project))
        settings.lake.mkdir(parents=True, exist_ok=True)
        Services(sql_url=sql_url, lake=str(settings.lake), **services).save(settings.services_file)
        self.path = settings.lake
        self.server = LakeServer(settings, utc_now, lambda settings: spark, WrittenIngest)
        self.server.start()
        self._runs = 0

    def stop(self) -> None:
        """Ends the server's threads and leaves the session to the other tests."""
        self.server.stop()

    def append(self, records: list[dict[str, Any]], verdict: str = VALID, late: bool = False) -> int:
        return self.ingest.append(records, verdict, late)

    @property
    def ingest(self) -> WrittenIngest:
        found = self.server.ingests["orders"]
        assert isinstance(found, WrittenIngest)
        return found

    def told_of_some(self) -> Report | None:
        """What readers are told, once some are stalled: a backup may hold an older report, of none."""
        report = published(self.path)
        return report if report and report.stalled else None

    def do(self, kind: str, /, job: str | None = None, **params: Any) -> dict[str, Any]:
        """One job, done here and now; one that fails raises its error."""
        self._runs += 1
        known = self.server.jobs._kinds[kind]
        run = Run(id=job or f"job{self._runs}")
        done = self.server._do(known, known.params.model_validate(params), run)
        if isinstance(done, Failed):
            raise done.error
        return done.to_json()

    def plan(
        self,
        tables: Mapping[str, Kind],
        named: Sequence[str] | None = None,
        remove: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """`named` are taken, with what reads them, whatever was rolled back; all that changed without it.
        Live tables that are not among them go, or those that `remove` names."""
        live = release_log.live(self.path)
        gone = [name for name in (live.tables if live else ()) if name not in tables]
        return self.do(
            "plan", definitions={name: table.to_json() for name, table in tables.items()}, git_commit="abc",
            remove=(gone if remove is None else list(remove)) or None,
            **({"tables": list(named)} if named else {}),
        )  # fmt: skip

    def build(self, tables: Mapping[str, Kind], named: Sequence[str] | None = None) -> str:
        """Plan and build; the plan's id."""
        plan: str = self.plan(tables, named)["id"]
        self.do("build", plan=plan)
        return plan

    def promote(self, plan: str, job: str | None = None) -> dict[str, Any]:
        return self.do("promote", job=job, plan=plan, approved_by="tester")


@contextmanager
def registry_of_orders() -> Iterator[FakeRegistry]:
    """One that has the schema that `append` writes orders with."""
    found = FakeRegistry()
    found.add("orders-value", 1, dict(load_topic("orders", OURS).newest.avro))
    try:
        yield found
    finally:
        found.close()


@contextmanager
def following_sql_server(lake: Path) -> Iterator[str]:
    """The address of a SQL server that follows the release log at once, and tells what plans change."""

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            live = release_log.live(lake)
            told = json.dumps({"release": live.number if live else None, "ready": True, "error": None})
            if self.path.startswith("/comparisons/"):
                told = Plans(lake).compared(self.path.rpartition("/")[2]) or told
            body = told.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    door = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{door.server_port}"
    finally:
        door.shutdown()
        door.server_close()
