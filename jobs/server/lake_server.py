"""LakeServer: the only writer of the lake. One Spark driver, the owners of all versions, and the job API.

Started as `python -m jobs.server.lake_server --home HOME --port PORT`; the token comes from
HOME/services.json (mode 600).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from jobs.batch import maintain
from jobs.batch.certificate import Certificate, Certificates
from jobs.errors import NotFoundError, TwinlakeError
from jobs.kinds.table import Table
from jobs.lake import release_log
from jobs.lake.log import Log
from jobs.lake.version import Version
from jobs.run import Run
from jobs.server import batch_jobs, lock, promote_jobs, release_jobs
from jobs.server.job_kinds import Kind
from jobs.server.jobs import Jobs
from jobs.settings import Settings
from jobs.speed.advance import is_stored
from jobs.speed.versions import Versions
from jobs.times import format_moment, from_micros
from jobs.topics.topic import Topic, load_topic, topic_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.ingest.ingest import Ingest

logger = logging.getLogger(__name__)

LAG_EVERY_S = 5.0
MAINTAIN_EVERY_S = 3600.0
# The stream's small tasks go first when a rebuild or a build fills the cores.
POOLS = """<?xml version="1.0"?>
<allocations>
  <pool name="default"><schedulingMode>FIFO</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="speed"><schedulingMode>FAIR</schedulingMode><weight>4</weight><minShare>1</minShare></pool>
  <pool name="batch"><schedulingMode>FAIR</schedulingMode><weight>1</weight><minShare>0</minShare></pool>
</allocations>
"""


class LakeServer:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lake = settings.lake
        self.ready = False
        self.lake_id = _lake_id(self.lake)
        self.spark: SparkSession
        self.topics: dict[str, Topic] = {}
        self.logs: dict[str, Log] = {}
        self.ingests: dict[str, Ingest] = {}
        self.versions: Versions
        self.certificates = Certificates(self.lake)
        self.jobs = Jobs(
            self.lake,
            {**batch_jobs.KINDS, **release_jobs.KINDS, **promote_jobs.KINDS},
            self._do,
            self._cancel_tag,
        )
        self._lags: dict[str, int | None] = {}
        self._ending = threading.Event()
        self._maintaining = threading.Lock()
        self._housekeeping = threading.Thread(target=self._keep_house, name="housekeeping", daemon=True)

    # -- life
    # -----------------------------------------------------------------------------------------------------

    def start(self, make_ingest: Callable[[LakeServer, Topic, Log], Ingest] | None = None) -> None:
        """Open Spark and the logs, then the versions (which close their open segments), then read the
        topics."""
        self.spark = self._session()
        for name in topic_names(self.settings.project):
            topic = load_topic(name, self.settings.project)
            self.topics[name], self.logs[name] = topic, Log(self.spark, self.lake, topic)
            self.logs[name].open()
        self.versions = Versions(self.lake, self.logs)
        self.versions.load()
        maintain.drop_staging(self.lake / "staging", self.jobs.alive())
        for name, topic in self.topics.items():
            self.ingests[name] = (make_ingest or _ingest)(self, topic, self.logs[name])
            self.ingests[name].start()
        self.jobs.start()
        self._housekeeping.start()
        self.ready = True

    def stop(self) -> None:
        """Let batches and steps under way finish; jobs are cancelled between their parts."""
        self.ready = False
        self._ending.set()
        self.jobs.stop()
        for ingest in self.ingests.values():
            ingest.stop()
        if hasattr(self, "versions"):
            self.versions.stop()
        if hasattr(self, "spark"):
            self.spark.stop()

    def on_batch(self, topic: str, batch: int, rows: DataFrame | None) -> None:
        """Called by ingest after the log's commit, in its thread."""
        self.versions.offer(topic, self.logs[topic].metadata(), rows)

    # -- what handlers ask
    # ------------------------------------------------------------------------------------------

    def stored(self, version: Version) -> bool:
        """Whether the version has rows of its own (an Events table is a view over its log)."""
        return is_stored(Table.from_json(version.definition))

    def live_version(self, table: str) -> str | None:
        """The name of the version that readers of the table see."""
        found = release_log.live(self.lake)
        return found.tables.get(table) if found else None

    def incident(self, certificate: Certificate) -> None:
        """A difference between speed and batch, for whoever reads the server's log."""
        logger.error("speed and batch differ: %s", json.dumps(certificate.to_json()))

    def accept(self, topic: str) -> dict[str, Any]:
        """Admit a recreated topic as the next epoch of its log, and read on."""
        from jobs.ingest.accept import accept

        if topic not in self.ingests:
            raise NotFoundError(
                f"there is no topic {topic!r}", f"known: {', '.join(self.ingests)}", "check the name"
            )
        ingest = self.ingests[topic]
        ingest.stop()
        try:
            return accept(self.settings, self.logs[topic])
        finally:
            ingest.start()

    def maintain(self, table: str | None = None) -> dict[str, Any]:
        """One clean-up at a time, of everything or of one table; a stalled version is left as it is."""
        owners = [self.versions.owner(version) for version in self.versions.living()]
        feeds = [
            owner.feed()
            for owner in owners
            if owner.error is None and table in (None, owner.version.table) and self.stored(owner.version)
        ]
        logs = list(self.logs.values()) if table is None else []
        with self._maintaining:
            return maintain.maintain(self.spark, feeds, logs, time.time())

    # -- status, from memory
    # ----------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Everything `twinlake status` shows; answered without Spark and without the broker."""
        found = release_log.live(self.lake)
        last = self.certificates.last()
        return {
            "lake_id": self.lake_id,
            "topics": [self._topic_status(name) for name in self.ingests],
            "versions": [
                {**asdict(health), "watermark": _moment(health.watermark)}
                for health in self.versions.health()
            ] if self.ready else [],
            "release": found.to_json() if found else None,
            "certificate": last.summary() if last else None,
        }  # fmt: skip

    def _topic_status(self, name: str) -> dict[str, Any]:
        ingest = self.ingests[name]
        place = ingest.place
        return {
            "name": name,
            "state": ingest.state,
            "error": ingest.error.to_json() if ingest.error else None,
            "batch": place.batch,
            "epoch": place.epoch,
            "ends": {str(partition): offset for partition, offset in place.offsets.items()},
            "records": self.versions.feeds.records(name),
            "counts": dict(place.counts),
            "watermark": _moment(place.watermark),
            "lag_records": self._lags.get(name),
        }

    # -- below: the server's own threads
    # ----------------------------------------------------------------------------

    def _session(self) -> SparkSession:
        from jobs.spark import session

        self.settings.run_dir.mkdir(parents=True, exist_ok=True)
        pools = self.settings.run_dir / "pools.xml"
        pools.write_text(POOLS)
        return session(
            self.settings, "twinlake-lake", more={"spark.scheduler.allocation.file": pools.as_uri()}
        )

    def _do(self, kind: Kind, params: Any, run: Run) -> dict[str, Any]:
        """One job in its worker's thread: its Spark jobs carry its tag, so that cancel reaches them."""
        context = self.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", "batch")
        context.addJobTag(run.tag)
        try:
            return kind.handler(self, params, run)
        finally:
            context.removeJobTag(run.tag)

    def _cancel_tag(self, tag: str) -> None:
        if hasattr(self, "spark"):
            self.spark.sparkContext.cancelJobsWithTag(tag)

    def _keep_house(self) -> None:
        """Ask the broker for lags every 5 s, clean up every hour; a failure is logged and tried again."""
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "batch")
        maintained_at = time.monotonic()
        while not self._ending.wait(LAG_EVERY_S):
            for name, ingest in self.ingests.items():
                try:
                    self._lags[name] = ingest.lag()["records"]
                except Exception as error:
                    self._lags[name] = None
                    logger.warning("the lag of topic %s is unknown: %s", name, error)
            if time.monotonic() - maintained_at >= MAINTAIN_EVERY_S:
                maintained_at = time.monotonic()
                try:
                    logger.info("maintained: %s", self.maintain())
                    maintain.drop_staging(self.lake / "staging", self.jobs.alive())
                    self.jobs.compact()
                    self.certificates.compact()
                except Exception:
                    logger.exception("the clean-up failed; the next one is in an hour")


def _ingest(server: LakeServer, topic: Topic, log: Log) -> Ingest:
    from jobs.ingest.ingest import Ingest
    from jobs.ingest.log_end import Place

    made = Ingest(
        server.spark,
        server.settings,
        topic,
        log,
        lambda batch, rows: server.on_batch(topic.name, batch, rows),
    )
    made.place = Place.of(topic.name, log.metadata())  # shown before the broker has answered
    return made


def _moment(micros: int | None) -> str | None:
    return None if micros is None else format_moment(from_micros(micros))


def _lake_id(lake: Path) -> str:
    """The lake's own name for life, by which its server is recognised."""
    file = lake / "lake.json"
    if not file.exists():
        file.write_text(json.dumps({"id": uuid4().hex}))
    found: str = json.loads(file.read_text())["id"]
    return found


def serve(settings: Settings, port: int) -> int:
    """Run until SIGTERM. /health answers at once and says when the server is ready."""
    import uvicorn

    from jobs.server.api import build_app

    held = lock.take(settings.lake)
    server = LakeServer(settings)
    app = build_app(server, settings.services().api_token)
    web = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
    )
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            server.start()
        except BaseException as error:
            failed.append(error)
            web.should_exit = True

    def ending(number: int, frame: FrameType | None) -> None:
        """uvicorn raises the signal again when it has ended; without this the process would die before
        `stop`."""
        web.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ending)
    threading.Thread(target=begin, name="start", daemon=True).start()
    web.run()
    server.stop()
    held.close()
    if failed:
        raise failed[0]
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m jobs.server.lake_server", description="Twinlake's lake server"
    )
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("py4j", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    os.environ["TZ"] = "UTC"  # PySpark collects timestamps in the process's zone
    time.tzset()
    try:
        return serve(Settings(home=given.home), given.port)
    except TwinlakeError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
