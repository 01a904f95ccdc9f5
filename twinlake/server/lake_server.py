"""LakeServer: the only writer of the lake. It opens the lake, starts ingest, does jobs, and keeps house."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import structlog

from twinlake.base.errors import BusyError, DamagedError, TwinlakeError
from twinlake.base.job import Failed, Job, Result, Run
from twinlake.base.times import Clock
from twinlake.batch.maintain import drop_staging, maintain
from twinlake.batch.merge import merge_small
from twinlake.config.settings import Settings
from twinlake.ingest.ingest import STOPPED, Ingest
from twinlake.ingest.log_end import LogEnd
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.audit_log import AuditLog
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.made_with import store_schemas
from twinlake.lake.catalog.new_fingerprints import store_fingerprints
from twinlake.lake.catalog.paused import Pauses
from twinlake.lake.catalog.plans import Plans
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.catalog.stalled import Publisher, table_states
from twinlake.lake.delta import delta
from twinlake.lake.delta.damages import Damages
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.log.fresh_rows import NewRows
from twinlake.lake.log.log import Log, log_path
from twinlake.lake.log.log_start import LogStart
from twinlake.lake.open_lake import OpenLake, staging_folder
from twinlake.lake.storage import store
from twinlake.lineage.lineage import of_lake
from twinlake.metrics.scrape import Collector, Group
from twinlake.releases.decide import CHANGES_WHAT_WAITS, Approval
from twinlake.releases.stranded import load_active
from twinlake.server.all_jobs import KINDS
from twinlake.server.backups import BackupWatch
from twinlake.server.contract_facts import ContractFacts
from twinlake.server.executors import Executors
from twinlake.server.job_kind import JobKind
from twinlake.server.jobs import Jobs
from twinlake.server.metrics import LakeMetrics, LakeNow, TopicNow
from twinlake.server.open_topics import OpenTopics
from twinlake.server.release_jobs import restructure_live
from twinlake.server.spark_progress import watched
from twinlake.server.status import (
    TopicIngest,
    broken_status,
    certificates_status,
    moment,
    state_of,
    tables_status,
    topic_error,
    topic_status,
)  # fmt: skip
from twinlake.server.table_outputs import TableOutputs
from twinlake.server.topic_watch import TopicWatch, aging_error
from twinlake.spark.session import cancel, scratch_folder
from twinlake.spark.watch import SparkWatch
from twinlake.speed.versions import Versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

journal = structlog.get_logger(__name__)

LAG_EVERY_S = 1.0
"""A look costs 5 ms of CPU here and about as much in the broker, by topic."""
MAINTAIN_EVERY_S = 3600.0
FILES_EVERY_S = 300.0
"""So often it is looked whether all data files are there and as long as they were."""

OnBatch = Callable[[int, NewRows | None], None]


def kafka_ingest(settings: Settings, log: Log, on_batch: OnBatch, clock: Clock) -> TopicIngest:
    """The ingest that reads the topic of this log from Kafka."""
    limits = settings.values.limits
    return Ingest(
        log.spark, settings, log.topic, log, on_batch, clock,
        records_per_batch=limits.records_per_batch, floor_s=limits.cycle_milliseconds / 1000,
    )  # fmt: skip


class LakeServer:
    """`session` opens the one Spark driver, `ingest` makes what fills a log; the caller ends the session."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        session: Callable[[Settings], SparkSession],
        ingest: Callable[[Settings, Log, OnBatch, Clock], TopicIngest] = kafka_ingest,
    ) -> None:
        self.settings = settings
        self.ready = False
        self.lake_id = formats.acquire(settings.lake)
        self.ingests: dict[str, TopicIngest] = {}
        self._clock = clock
        self._session = session
        self._make_ingest = ingest
        self._certificates = Certificates(settings.lake)
        self._runs = Runs(settings.lake)
        self.audit = AuditLog(settings.lake)
        self._outputs = TableOutputs(settings, self.lake_id)
        self.pauses = Pauses(settings.lake)
        patience_s = settings.values.limits.job_minutes_without_progress * 60
        self._lineage = of_lake(settings, self.lake_id, lambda: self.lake.topics.active())
        self.jobs = Jobs(
            self._runs, self.audit, KINDS, self._do, clock, self._cancel_tag, patience_s, self._note
        )  # fmt: skip
        self._lake: OpenLake | None = None
        self._versions: Versions | None = None
        self._broken: dict[str, TwinlakeError] = {}
        """Topics whose contract or schema is wrong: stopped until the next start, the others run."""
        self._damages = Damages()
        self._lags: dict[str, int | None] = {}
        self._watches: dict[str, TopicWatch] = {}
        self._approval = Approval()
        self._backups = BackupWatch(settings, self.lake_id, self._runs.all())
        self._executors: Executors | None = None
        self._live: Release | None = None
        """The live release as of the start, or of the last job's end: nothing else changes it."""
        self._finding_live = threading.Lock()
        self._contract_facts = ContractFacts()
        self._metrics = LakeMetrics(self._now, self._certificates, clock)
        self._publisher = Publisher(
            settings.lake, lambda: self.lake.versions.health(), clock,
            lambda: table_states(self._live, self.lake.versions.health(), self._certificates),
        )  # fmt: skip
        self._watch: SparkWatch | None = None
        self._ending = threading.Event()
        self._housekeeping = threading.Thread(target=self._keep_house, name="housekeeping", daemon=True)

    @property
    def lake(self) -> OpenLake:
        """The lake, once `start` has opened it; BusyError before."""
        if self._lake is None:
            raise BusyError(
                "the lake is not open yet", "the lake server is starting", "try again in a moment"
            )
        return self._lake

    @property
    def error(self) -> TwinlakeError | None:
        """Why the server is about to end; there is none while it does its work."""
        return self._watch.error if self._watch else None

    def watch(self, spark: SparkSession) -> None:
        """End the process when its Spark, which is local, runs nothing any more."""
        self._watch = SparkWatch(spark)
        self._watch.begin()

    def start(self) -> None:
        """Open Spark and the logs, then the versions (which close their segments), then read the topics."""
        spark = self._session(self.settings)
        delta.refuse_overwriting_store(spark, self.settings.lake)
        if (given := self.settings.values.spark).is_external:
            self._executors = Executors(spark, given)
            self._executors.begin()
        logs, found = dict[str, Log](), load_active(self.settings.lake, self.settings.sources, lambda: spark)
        self._broken.update(found.refused)
        for name, topic in found.topics.items():
            try:
                log = Log(spark, self.settings.lake, topic)
                self._metrics.listen_to(log)
                log.open()
                log.end()
            except TwinlakeError as error:
                self._broken[name] = error
                journal.error("the topic's files cannot be read", topic=name, why=str(error))
                continue
            logs[name] = log
        store_schemas(self.settings.lake, logs)
        store_fingerprints(self.settings.lake, logs)
        versions = self._versions = Versions(
            self.settings.lake, logs, merge_small, self._damages, self._broken, self.pauses,
            self._metrics.of_owners(lambda topic: versions.lags.end(topic)),
        )  # fmt: skip
        versions.load()
        drop_staging(staging_folder(self.settings.lake), self.jobs.alive)
        for name, log in logs.items():
            self.ingests[name] = self._ingest(log, versions)
        self._lake = OpenLake(
            settings=self.settings, spark=spark, logs=logs, ingests=self.ingests, versions=versions,
            topics=OpenTopics(
                spark, self.settings.lake, logs, self.ingests, self._broken,
                lambda log: self._ingest(log, versions), versions, self.pauses,
            ),
            certificates=self._certificates, plans=Plans(self.settings.lake), runs=self._runs,
            changelogs=self._outputs.changelogs, publications=self._outputs.publications,
            webhooks=self._outputs.webhooks, damages=self._damages, clock=self._clock, pauses=self.pauses,
            aging_error=lambda: aging_error(map(self._watches.get, list(self.ingests))),
        )  # fmt: skip
        for name, ingest in self.ingests.items():
            if not self.pauses.of("topic", name):
                ingest.start()
        self._live = self._live_release()
        self._contract_facts.look(self._lake, self._live)
        self.jobs.start()
        restructure_live(self._lake, self._live, self.jobs)
        self._approval.look(self._lake)
        self._outputs.begin(self._lake)
        self._backups.start()
        self._publisher.start()
        self._housekeeping.start()
        self.ready = True

    def stop(self) -> None:
        """Let batches and steps under way finish; jobs are cancelled between their parts."""
        self.ready = False
        self._ending.set()
        self._backups.stop()
        self._publisher.stop()
        if self._watch:
            self._watch.stop()
        self.jobs.stop()
        self._outputs.end()
        for name, ingest in self.ingests.copy().items():
            try:
                ingest.stop()
            except Exception:
                journal.exception(
                    "the ingest did not end; what it had not committed is read again", topic=name
                )
        if self._versions:
            self._versions.stop()
        self._lineage.stop()

    def status(self) -> dict[str, Any]:
        """Everything `twinlake status` shows; answered from memory, without Spark and without the broker."""
        found = self._live_release()
        topics = [
            *(self._topic_status(name, ingest) for name, ingest in self.ingests.copy().items()),
            *(
                broken_status(name, error, self.pauses.of("topic", name))
                for name, error in self._broken.copy().items()
            ),
        ]
        # after the topics: records that are shown in a log are lacking where a version has not taken them
        health = self._versions.health() if self._versions and self.ready else []
        return {
            "lake_id": self.lake_id,
            "ready": self.ready,
            "topics": topics,
            "versions": [{**asdict(one), "watermark": moment(one.watermark)} for one in health],
            "release": found.to_json() if found else None,
            "tables": tables_status(self.settings.lake, found) if found else [],
            "certificates": certificates_status(self._certificates, found) if found else [],
            "topic_certificates": [one.summary() for one in self._certificates.topics.all()],
            **self._outputs.status(),
            "paused": [one.to_json() for one in self.pauses.all()],
            "spark": self._executors.status() if self._executors else None,
            "damaged": [error.to_json() for error in self._damages.all()],
            "waiting": self._approval.waiting,
            "backup": backup.to_json() if (backup := self._backups.state()) else None,
        }

    def metrics(self, more: Mapping[str, Group]) -> Collector:
        """What a scrape asks: the lake's metrics, and these groups. It may be asked before `start`."""
        return self._metrics.collector(more)

    def _now(self) -> LakeNow:
        topics = {
            name: TopicNow(
                state=state_of(ingest, self.pauses.of("topic", name)), end=ingest.log_end,
                error=topic_error(ingest, self._damage_of(name), self.pauses.of("topic", name)),
                lag_records=self._lags.get(name), start=self._start_of(name),
            )
            for name, ingest in self.ingests.copy().items()
        }  # fmt: skip
        broken = {name: TopicNow(state=STOPPED, error=error) for name, error in self._broken.copy().items()}
        return LakeNow(
            ready=self.ready and not self.error, topics={**broken, **topics}, live=self._live,
            health=self._versions.health() if self._versions and self.ready else [],
            damaged=len(self._damages.all()), backup=self._backups.state(),
            outputs=self._outputs.measured(),
        )  # fmt: skip

    def _damage_of(self, topic: str) -> DamagedError | None:
        return self._damages.below(log_path(self.settings.lake, topic))

    def _note(self, job: Job) -> None:
        """A job has begun, or has ended."""
        self._lineage.job(job)
        self._backups.note(job)
        if job.ended and job.kind in CHANGES_WHAT_WAITS:
            self._approval.look(self.lake)
        if job.ended and job.kind in ("reload", "promote"):
            self._contract_facts.publish(self.lake)

    def _live_release(self) -> Release | None:
        """What readers see; None as well where the release log is damaged, which is noted."""
        try:
            return release_log.live(self.settings.lake)
        except DamagedError as error:
            self._damages.note(error)
            return None

    def _topic_status(self, name: str, ingest: TopicIngest) -> dict[str, Any]:
        damage = self._damage_of(name)
        watch, lag, paused = self._watches.get(name), self._lags.get(name), self.pauses.of("topic", name)
        return topic_status(name, ingest, damage, watch, lag, paused, self._start_of(name))

    def _start_of(self, name: str) -> LogStart | None:
        return self._lake.logs[name].known_start if self._lake else None

    def _ingest(self, log: Log, versions: Versions) -> TopicIngest:
        name = log.topic.name

        def on_batch(batch: int, rows: NewRows | None) -> None:
            """Called by ingest after the log's commit, in its thread."""
            versions.offer(name, log.metadata(), rows)

        self._metrics.listen_to(log)
        made = self._make_ingest(self.settings, log, on_batch, self._clock)
        made.log_end = LogEnd.of(name, log.metadata())  # shown before the broker has answered
        return made

    def _do(self, kind: JobKind, params: Any, run: Run) -> Result | Failed:
        """One job, in its worker's thread."""
        context, disk = self.lake.spark.sparkContext, scratch_folder(self.lake.spark)
        context.setLocalProperty("spark.scheduler.pool", "batch")
        with watched(context, run, self._executors), store.telling_of_no_room(self.settings.lake, disk):
            try:
                return kind.handler(self.lake, params, run)
            except Exception as error:
                damage = damage_in(error, self.settings.lake)
                if damage is None:
                    raise
                self._damages.note(damage)
                raise damage from (None if damage is error else error)
            finally:
                with self._finding_live:  # of two jobs that end together the later look is kept
                    self._live = self._live_release()

    def _cancel_tag(self, tag: str) -> None:
        if self._lake:
            cancel(self._lake.spark.sparkContext, tag)

    def _keep_house(self) -> None:
        """Ask for lags every second; clean up every hour. A failure is logged and tried again."""
        self.lake.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "batch")
        maintained_at = looked_at = time.monotonic()
        while not self._ending.is_set():
            if self._executors:
                try:
                    self._executors.look()
                except Exception:
                    journal.exception("the executors are not known")
            for name in list(self.ingests):
                with suppress(KeyError):  # it was dropped in this moment
                    self._look_at_topic(name)
            self._lineage.look(self.status, self.lake.versions.living)
            self._contract_facts.look(self.lake, self._live)
            if time.monotonic() - looked_at >= FILES_EVERY_S:
                looked_at = time.monotonic()
                _try(lambda: self.lake.damages.look(self.lake.tables()), "the files were not looked at")
            if time.monotonic() - maintained_at >= MAINTAIN_EVERY_S:
                maintained_at = time.monotonic()
                _try(self._maintain, "the clean-up failed; the next one is in an hour")
                _try(self.audit.compact, "the audit log stays in many files for another hour")
            self._ending.wait(LAG_EVERY_S)

    def _look_at_topic(self, name: str) -> None:
        ingest, watch = self.ingests[name], self._watches.setdefault(name, TopicWatch(name, self._clock))
        try:
            ends = ingest.broker_ends()
            self._lags[name] = ingest.behind(ends)
            watch.look(ingest.log_end, ends, ingest.topic_settings, ingest.offsets_since)
        except Exception as error:
            self._lags[name] = watch.lag_s = None
            journal.warning("the lag is unknown", topic=name, why=str(error))

    def _maintain(self) -> None:
        drop_staging(staging_folder(self.settings.lake), self.jobs.alive)
        journal.info("maintained", **maintain(self.lake).to_json())
        self._outputs.publications.clean_up(self.lake)


def _try(do: Callable[[], Any], failed: str) -> None:
    """Housekeeping goes on whatever fails of it."""
    try:
        do()
    except Exception:
        journal.exception(failed)
