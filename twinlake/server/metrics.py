"""The lake server's metrics: what it knows of topics, versions and live tables, asked at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from twinlake.base.errors import TwinlakeError
from twinlake.base.times import Clock, from_micros, parse_moment
from twinlake.ingest.ingest import RETRYING, RUNNING, STARTING, STOPPED, VALIDATING
from twinlake.ingest.log_end import LogEnd
from twinlake.lake.catalog.certificates import Certificate, Certificates
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Health
from twinlake.lake.catalog.witnessed import ANSWERS
from twinlake.lake.log.log import Log
from twinlake.lake.log.log_start import LogStart
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import LAKE, Metric
from twinlake.metrics.events import Counts, Durations
from twinlake.metrics.scrape import Collector, Group, Scrape
from twinlake.server.backups import BackupState
from twinlake.server.status import PAUSED
from twinlake.speed import owner
from twinlake.speed.lags import End
from twinlake.speed.owner import Owner
from twinlake.topics.verdict import LATE, VERDICTS

STATES = (STARTING, VALIDATING, RUNNING, RETRYING, STOPPED, PAUSED)
EQUAL, DIFFERS, RAISES, NONE = "equal", "differs", "raises", "none"
CERTIFIED = (EQUAL, DIFFERS, RAISES, NONE)
WITNESSED = (*ANSWERS, NONE)
CHANGELOG, PUBLISHED, WEBHOOK = "changelog", "published", "webhook"
WRITTEN = {CHANGELOG: "sent_at", PUBLISHED: "published_at", WEBHOOK: "sent_at"}
"""By output, what its status calls the time of what was written last."""


@dataclass(frozen=True, kw_only=True)
class TopicNow:
    """A topic at this moment; of one that could not be opened nothing but the error is known."""

    state: str
    error: TwinlakeError | None
    end: LogEnd | None = None
    lag_records: int | None = None
    start: LogStart | None = None
    """Where its log starts; None as long as retention has deleted nothing."""


@dataclass(frozen=True, kw_only=True)
class LakeNow:
    """What the lake server knows at this moment, all of it from memory."""

    ready: bool
    topics: Mapping[str, TopicNow]
    health: Sequence[Health]
    live: Release | None
    damaged: int
    outputs: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """The status of each, by CHANGELOG, PUBLISHED and WEBHOOK."""
    backup: BackupState | None = None
    """None where no folder is set."""


class LakeMetrics:
    """`now` asks the running server; what happens in it is counted and timed here."""

    def __init__(self, now: Callable[[], LakeNow], certificates: Certificates, clock: Clock) -> None:
        self._now, self._certificates, self._clock = now, certificates, clock
        self._batches, self._commits = Durations(catalogue.BATCH_TIME), Durations(catalogue.COMMIT_TIME)
        self._steps, self._freshness = Durations(catalogue.STEP_TIME), Durations(catalogue.FRESHNESS)
        self._failures = Counts(catalogue.VERSION_FAILURES)

    def collector(self, more: Mapping[str, Group]) -> Collector:
        """With the groups of what is not the lake's."""
        events = (self._batches, self._commits, self._steps, self._freshness, self._failures)
        return Collector(LAKE, {**more, "lake": self._lake, "witness of topics": self._witnessed}, events)

    def listen_to(self, log: Log) -> None:
        """Before anybody writes to it."""
        log.on_batch = lambda seconds: self._batches.observe(seconds, log.topic.name)
        log.on_commit = lambda seconds: self._commits.observe(seconds, "log")

    def of_owners(self, end: Callable[[str], End]) -> owner.Events:
        """What owners of versions call; `end` is where a topic's log ends."""

        def step(of: Owner, seconds: float) -> None:
            series = of.version.table, of.version.name
            self._steps.observe(seconds, *series)
            log = end(of.log.topic.name)
            if log.batch == of.standing.position and log.appended_at is not None:
                shown_after = self._clock() - from_micros(log.appended_at)
                self._freshness.observe(shown_after.total_seconds(), *series)

        def failure(of: Owner) -> None:
            self._failures.add(of.version.table, of.version.name)

        return owner.Events(
            step=step, commit=lambda seconds: self._commits.observe(seconds, "table"), failure=failure
        )

    def _lake(self, scrape: Scrape) -> None:
        now = self._now()
        scrape.add(catalogue.READY, now.ready)
        scrape.add(catalogue.RELEASE, now.live.number if now.live else 0)
        scrape.add(catalogue.DAMAGED, now.damaged)
        if now.backup:
            scrape.add(catalogue.BACKUP, _at(now.backup.counted_from or ""))
            scrape.add(catalogue.BACKUP_FAILED, now.backup.failed is not None)
        for name, topic in now.topics.items():
            _topic(scrape, name, topic)
        live = dict(now.live.tables) if now.live else {}
        for one in now.health:
            _version(scrape, one, is_live=live.get(one.table) == one.version)
        for table, version in live.items():
            _certified(scrape, table, self._certificates.newest(table, version))
        for output, those in now.outputs.items():
            for each in those:
                _output(scrape, output, each)
        living = [(one.table, one.version) for one in now.health]
        for events in (self._steps, self._freshness, self._failures):
            events.keep(living)

    def _witnessed(self, scrape: Scrape) -> None:
        for one in self._certificates.topics.all():
            verdict = one.answer.verdict
            scrape.one_of(catalogue.TOPIC_WITNESS, WITNESSED, verdict, topic=one.topic)
            scrape.add(catalogue.TOPIC_WITNESSED, _at(one.created_at), topic=one.topic)


def _topic(scrape: Scrape, name: str, topic: TopicNow) -> None:
    scrape.one_of(catalogue.TOPIC_STATE, STATES, topic.state, topic=name)
    scrape.add(catalogue.TOPIC_ERROR, topic.error is not None, topic=name)
    scrape.add(catalogue.TOPIC_LAG, topic.lag_records, topic=name)
    if (end := topic.end) is None:
        return
    for verdict in VERDICTS:
        scrape.add(catalogue.TOPIC_RECORDS, end.counts.get(verdict, 0), topic=name, verdict=verdict)
    scrape.add(catalogue.TOPIC_LATE, end.counts.get(LATE, 0), topic=name)
    scrape.add(catalogue.TOPIC_UNREADABLE, sum(end.unreadable.values()), topic=name)
    scrape.add(catalogue.TOPIC_LOST, _lost(end), topic=name)
    scrape.add(catalogue.TOPIC_DELETED, topic.start.rows if topic.start else 0, topic=name)
    scrape.add(catalogue.TOPIC_EXPIRED, _at(topic.start.made_at if topic.start else ""), topic=name)
    scrape.add(catalogue.TOPIC_BATCH, end.batch, topic=name)
    scrape.add(catalogue.TOPIC_WATERMARK, _seconds(end.watermark), topic=name)
    scrape.add(catalogue.TOPIC_INGESTED, _seconds(end.ingested_at), topic=name)


def _version(scrape: Scrape, one: Health, is_live: bool) -> None:
    of = {"table": one.table, "version": one.version}
    scrape.add(catalogue.VERSION_LAG, one.lag_records, **of)
    scrape.add(catalogue.VERSION_BEHIND, one.lag_seconds, **of)
    for topic, batch in one.position.items():
        scrape.add(catalogue.VERSION_POSITION, batch, **of, topic=topic)
    flags: dict[Metric, Any] = {
        catalogue.VERSION_LIVE: is_live, catalogue.VERSION_STALLED: one.stalled,
        catalogue.VERSION_LOST: one.lost, catalogue.VERSION_PAUSED: one.paused is not None,
    }  # fmt: skip
    for metric, is_so in flags.items():
        scrape.add(metric, is_so, **of)
    if is_live:
        scrape.add(catalogue.TABLE_FRESHNESS, one.lag_seconds, table=one.table)
        scrape.add(catalogue.TABLE_WATERMARK, _seconds(one.watermark), table=one.table)


def _output(scrape: Scrape, output: str, one: Mapping[str, Any]) -> None:
    of = {"output": output, "table": one["table"]}
    scrape.add(catalogue.OUTPUT_ERROR, one["error"] is not None, **of)
    scrape.add(catalogue.OUTPUT_AT, _at(one[WRITTEN[output]]), **of)
    for topic, batch in one["position"].items():
        scrape.add(catalogue.OUTPUT_POSITION, batch, **of, topic=topic)


def _certified(scrape: Scrape, table: str, newest: Certificate | None) -> None:
    """Of the live version of a table."""
    verdict = NONE
    if newest:
        verdict = EQUAL if newest.equal else RAISES if newest.raises else DIFFERS
        scrape.add(catalogue.CERTIFIED, _at(newest.created_at), table=table)
        whole_at = newest.as_base.whole_at if newest.covers_all else ""
        scrape.add(catalogue.CERTIFIED_WHOLE, _at(whole_at), table=table)
    scrape.one_of(catalogue.CERTIFICATE, CERTIFIED, verdict, table=table)
    witness = newest and newest.witness
    scrape.one_of(catalogue.WITNESS, WITNESSED, witness.answer.verdict if witness else NONE, table=table)
    if witness:
        scrape.add(catalogue.WITNESSED, _at(witness.at), table=table)


def _lost(end: LogEnd) -> int:
    spans = [span for gaps in end.gaps.values() for found in gaps.values() for span in found]
    return sum(to - first for first, to in spans)


def _at(text: str) -> float | None:
    """Seconds since 1970 of a time as the lake writes it; None for none."""
    if not text:
        return None
    found: datetime = parse_moment(text)
    return found.timestamp()


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1_000_000
