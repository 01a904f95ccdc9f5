"""Ingest of one topic: Kafka -> judged -> one commit of the log per micro-batch, for as long as it runs."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

import structlog

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, StoppedTopicError, TwinlakeError
from twinlake.base.job import Run
from twinlake.base.times import Clock
from twinlake.base.waiting import holding, wait_for
from twinlake.config.settings import Settings
from twinlake.ingest import decode_avro, first_pass, source
from twinlake.ingest.compact import Compaction
from twinlake.ingest.decide import Decision, decide
from twinlake.ingest.duplicates import Seen
from twinlake.ingest.known_ids import KnownIds
from twinlake.ingest.log_end import LogEnd, missing, producer_time
from twinlake.ingest.log_rows import log_rows
from twinlake.ingest.log_table import log_table
from twinlake.ingest.pace import BATCH_SECONDS, RECORDS_PER_BATCH, Pace
from twinlake.ingest.replay import Replayed, replay
from twinlake.ingest.scan import Scan
from twinlake.ingest.source import explained
from twinlake.ingest.unreadable import Unreadable, schemas_met, stops_at, waiting
from twinlake.ingest.writer_schema import Writer
from twinlake.ingest.writers import Writers
from twinlake.lake.delta import delta
from twinlake.lake.delta.in_commit import in_commit
from twinlake.lake.log.fresh_rows import FreshFiles, FreshRows, NewRows
from twinlake.lake.log.log import BATCH, Log
from twinlake.lake.log.log_fields import kept_as
from twinlake.spark.prepared_plan import TooLargeError
from twinlake.topics.kafka import Kafka
from twinlake.topics.registry import Registry
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import UNREADABLE_BY_SCHEMA

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

journal = structlog.get_logger(__name__)

STARTING, VALIDATING, RUNNING, RETRYING, STOPPED = "starting", "validating", "running", "retrying", "stopped"
IN_MEMORY_BYTES = 256 << 20
"""Batches of about so many bytes are taken in memory by a prepared plan: one pass over Kafka, where Spark
makes two."""
UNKNOWN_BYTES = IN_MEMORY_BYTES / 40_000
"""What a record is taken for before one was seen."""
LARGE_RECORDS = 40_000
"""Threads share the look at a batch with so many; not at the first after a start, which has to plan it."""
CYCLE_FLOOR_S = 0.25
"""Micro-batches begin at most so often: a slow topic does not burn cores."""
LOG_APPEND_TIME = 1  # Kafka's number for it
LONGEST_WAIT_S = 30.0
STOP_WAIT_S = 120.0
"""A batch under way may take so long when somebody wants the ingest to stop."""


class Ingest:
    """The one writer of a topic's log.

    `on_batch(n, rows)` is called after the log's commit n, with the batch's rows as definitions read them;
    with None where the log is at n without new rows (at start, after a batch without records). The next
    batch waits for it to return.
    A StoppedTopicError ends it (state `stopped`, `error`); anything else is tried again from the log's end.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        topic: Topic,
        log: Log,
        on_batch: Callable[[int, NewRows | None], None],
        clock: Clock,
        records_per_batch: int = RECORDS_PER_BATCH,
        batch_seconds: float = BATCH_SECONDS,
        first_wait_s: float = 1.0,
        floor_s: float = CYCLE_FLOOR_S,
    ) -> None:
        self.spark = spark
        self.settings = settings
        self.topic = topic
        self.log = log
        self.clock = clock
        self.first_wait_s = first_wait_s
        self.floor_s = floor_s
        self.state = STOPPED
        self.error: TwinlakeError | None = None
        self.log_end = LogEnd.of(topic.name, {})
        self._ids = KnownIds(log, settings.kept_ids / topic.name)
        self._record_bytes = UNKNOWN_BYTES  # in memory, by the newest batch
        self._event: dict[str, str] = {}  # the fields of the log's `event`
        self._pace = Pace(records_per_batch, batch_seconds, log.on_batch)
        self.on_batch = self._pace.outside(on_batch)
        self._limit = source.Limit(spark, self._pace.next_records)
        self._compaction = Compaction(log)
        self._look = Scan(spark, topic, end_marker=secrets.token_bytes(8))
        self._turn = threading.Lock()
        self.replaying = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._query: StreamingQuery | None = None
        self._failure: BaseException | None = None
        self._topic_id = ""
        self._unreadable: Callable[[], list[Unreadable]] = list  # before the registry was asked

    # -- life

    def start(self) -> None:
        """Starts reading in a thread of its own; returns at once. A stopped ingest can be started again."""
        if self._thread and self._thread.is_alive():
            return
        self._ending.clear()
        self.error, self.state = None, STARTING
        self._thread = threading.Thread(target=self._run, name=f"ingest-{self.topic.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Lets the batch under way finish, then ends; what was not committed is read again next time.
        TimedOutError for one that cannot be stopped in time, and goes on."""
        self._ending.set()
        try:
            with holding(self._turn, f"the batch of topic {self.topic.name} to end", STOP_WAIT_S):
                pass  # from here on no batch does anything
            wait_for(f"the ingest of topic {self.topic.name} to end", self._has_ended, STOP_WAIT_S)
        except BaseException:
            self._ending.clear()
            raise

    def _has_ended(self) -> bool | None:
        """Stops the stream, which may have begun only after somebody wanted it to end."""
        if query := self._query:
            query.stop()
        return None if self._thread and self._thread.is_alive() else True

    def _run(self) -> None:
        wait = self.first_wait_s
        while not self._ending.is_set():
            before = self.log_end.batch
            try:
                self._failure = None
                with self._turn:  # nobody appends while it is read where the log ends
                    self._open()
                self.on_batch(self.log_end.batch, None)
                self._validate_waiting()
                self._query = self._stream()
                if self.error is None or not self.behind(self.broker_ends()):
                    self.state, self.error = RUNNING, None  # else once a batch is done: it may fail again
                journal.info("ingest runs", topic=self.topic.name, batch=self.log_end.batch)
                self._query.awaitTermination()
            except Exception as error:
                if self._failure is not None or not self._ending.is_set():
                    name, batch = self.topic.name, self.log_end.batch
                    why, said = self._failure or error, journal.bind(topic=name, batch=batch)
                    self.error = explained(why, self.spark, self.settings, name, batch).alone()
                    said.warning("ingest fails", why=self.error.to_json())
            finally:
                self._query = None
            if isinstance(self.error, StoppedTopicError):
                break
            if not self._ending.is_set():
                self.state = RETRYING
                wait = self.first_wait_s if self.log_end.batch > before else min(wait * 2, LONGEST_WAIT_S)
                self._ending.wait(wait)
        self._ids.close()
        self.state = STOPPED

    # -- starting

    def _open(self) -> None:
        """Reads the log's own end and refuses to go on where that would mean guessing."""
        self._kafka = Kafka(self.settings.services().kafka("ingest"))
        self._app_id = "log:" + self.log.open()
        self._event = self.log.event()
        self.log_end = LogEnd.of(self.topic.name, self.log.metadata())
        found = self._kafka.topic(self.topic.name)
        if found is None:
            raise missing(self.topic.name, self.log_end)
        begins = self._kafka.begins(self.topic.name, found.partitions)
        ends = self._kafka.ends(self.topic.name, found.partitions)
        refused = self.log_end.refuse(found.id, begins, ends, self._kafka.timestamp_type(self.topic.name))
        if refused:
            raise refused
        self._topic_id = found.id
        self._starts = self.log_end.starts(begins)
        self._writers = self.writers()
        self._unreadable = self._writers.unreadable
        self._ids.open(self.log_end)

    def _validate_waiting(self) -> None:
        """Records that no schema could read, and one can now: before any new one, as they came first."""
        if self.log_end.unreadable.keys() & {writer.id for writer in self._writers.all()}:
            self.state = VALIDATING
            self.replay((UNREADABLE_BY_SCHEMA,), Run(id=f"start-{self.topic.name}", cancelled=self._ending))

    def _stream(self) -> StreamingQuery:
        """A stream from the log's end. Its checkpoint is new each time, so no old one can mislead it."""
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        records = source.stream(self.spark, self._kafka.login, self.topic.name, self._starts, self._limit)
        writer = records.writeStream.queryName(f"ingest-{self.topic.name}")
        return (
            writer.option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{self.floor_s} seconds")
            .foreachBatch(source.calling(WeakMethod(self._batch)))
            .start()
        )

    @property
    def _checkpoint(self) -> Path:
        return self.settings.checkpoints / self.topic.name

    # -- one micro-batch

    def _batch(self, records: DataFrame, number: int) -> None:
        """Called by Spark for every micro-batch, maybe again for one that the log has already."""
        with self._turn:
            if self._ending.is_set():
                raise InterruptedError("the ingest ends")  # to return would tell Spark that it was done
            try:
                reached = source.ends(self._checkpoint, number, self.topic.name)
                with self._pace.timed(self._unread(reached)):
                    self._commit(records, reached)
                self.state, self.error = RUNNING, None
                self._limit.set(self._pace.next_records)
            except BaseException as error:
                self._failure = error
                raise

    def _commit(self, records: DataFrame, reached: dict[int, int]) -> None:
        self.log_end.check(self._kafka.topic(self.topic.name), self._topic_id)
        unread = self._unread(reached)
        in_memory, is_large = unread * self._record_bytes < IN_MEMORY_BYTES, unread >= LARGE_RECORDS
        try:
            found = self._looked(records, in_memory, is_large)
        except TooLargeError:
            in_memory = False
            found = self._looked(records, in_memory, is_large)
        decision = decide(found, self.log_end.offsets, self._ids.index, reached) if found.num_rows else None
        if decision is None:
            self._commit_nothing(reached)
            return
        writers = self._writers.all()
        met = [writer for writer in writers if writer.id in decision.schema_ids]
        self._writers.check(met, self.log_end)
        if self.keep(met) and in_memory:
            found = self._look.whole(records, self._writers, self._event, is_large)
        end = self.log_end.at(self.clock()).after(decision, self._topic_id, met, self._event)
        self.log_end.check(self._kafka.topic(self.topic.name), self._topic_id)
        metadata = end.metadata(BATCH, decision.records)
        fresh: NewRows
        if in_memory:
            table = log_table(found, self.topic, decision, end)
            self._record_bytes = table.nbytes / table.num_rows
            fresh = self._append(table, end, metadata)
        else:
            self._record_bytes = first_pass.bytes_in_memory(found)
            rows = log_rows(records, self.topic, writers, self._event, decision, end)
            self.log_end.refuse_broken(end, BATCH, decision.records)
            breakpoints.at(Point.BEFORE_LOG_FILES)
            with in_commit(self.spark, Point.AFTER_LOG_FILES, Point.BEFORE_LOG_COMMIT):
                commit = delta.append(rows, self.log.path, self._app_id, end.batch, metadata)
            fresh = FreshFiles(commit.added)
        self._committed(end, decision, fresh)

    def _append(self, table: pa.Table, end: LogEnd, metadata: dict[str, Any]) -> FreshRows:
        """Commits a batch that is in memory."""
        self.log_end.refuse_broken(end, metadata["kind"], table.num_rows)
        breakpoints.at(Point.BEFORE_LOG_FILES)
        added = self.log.appender.write(table)
        breakpoints.at(Point.AFTER_LOG_FILES)
        breakpoints.at(Point.BEFORE_LOG_COMMIT)
        self.log.appender.commit(added, self._app_id, end.batch, metadata)
        return FreshRows(self.log, table)

    def _committed(self, end: LogEnd, decision: Decision, fresh: NewRows) -> None:
        """The log is at `end`: who asks for its ids, and who follows it, learns of the new batch."""
        breakpoints.at(Point.AFTER_LOG_COMMIT)
        self._compaction.after_batch()
        seen = Seen(high=decision.high, low=decision.low, times=decision.times)
        self._ids.add(self.log_end, end, seen, min(decision.seen.values()))
        if end.schemas.keys() != self.log_end.schemas.keys():
            self.log.publish(end.schemas)
        self.log_end = end  # only now: who sees these records in the log asks next who lacks them
        self.on_batch(end.batch, fresh)

    def _commit_nothing(self, reached: dict[int, int]) -> None:
        """An empty batch where offsets without records were read; nothing where the log has been there."""
        if all(end <= self.log_end.offsets.get(partition, 0) for partition, end in reached.items()):
            return
        self.log_end.check(self._kafka.topic(self.topic.name), self._topic_id)
        end = self.log_end.at(self.clock()).past(reached, self._topic_id)
        self.log_end.refuse_broken(end, BATCH, 0)
        self.log.appender.commit([], self._app_id, end.batch, end.metadata(BATCH, 0))
        self._ids.add(self.log_end, end, Seen.nobody())
        self.log_end = end
        self.on_batch(end.batch, None)

    def _unread(self, reached: Mapping[int, int]) -> int:
        """How many offsets there are from the log's end to there."""
        begins = {**self._starts, **self.log_end.offsets}
        return sum(max(0, end - begins.get(partition, 0)) for partition, end in reached.items())

    def keep(self, met: Iterable[Writer]) -> bool:
        """Gives the log the fields of a batch's writers, before the batch; whether it gained some."""
        before = self._event
        for writer in met:
            if not all(kept_as(self._event, *field) for field in writer.stored.items()):
                self._event = self.log.keep(writer.stored, f"schema {writer.id}", "try again")
        return self._event != before

    def _looked(self, records: DataFrame, in_memory: bool, is_large: bool) -> pa.Table:
        """The look at a batch; asks the registry when a record names a schema that is not known yet."""
        import pyarrow.compute as pc

        while True:
            look, writers = self._look, self._writers
            if in_memory:
                table = look.whole(records, writers, self._event, is_large)
            else:
                table = look.bare(records, writers)
            if table.num_rows and pc.min(table.column("type")).as_py() != LOG_APPEND_TIME:
                raise producer_time(self.topic.name)
            unknown = table.filter(pc.equal(table.column("reasons"), decode_avro.NO_SCHEMA_YET))
            met = schemas_met(table)
            learned = unknown.num_rows and writers.learn(self.log_end, self._event)
            if learned or writers.leave_out_unkept(met, self._event):
                continue
            refused = self.log_end.refuse_missing(pc.unique(unknown.column("schema_id")).to_pylist())
            if refused := refused or stops_at(self.topic, met, writers.unreadable()):
                raise refused
            return table

    # -- validating again

    def replay(self, reasons: Sequence[str], run: Run) -> Replayed:
        """Validates what is in quarantine (for these reasons, for any without them) again."""
        return replay(self, reasons, run)

    def writers(self) -> Writers:
        """The schemas of the topic's producers as the registry tells them now."""
        registry = Registry(self.settings.services().registry())
        found = Writers(self.topic, registry, partial(decode_avro.decoded_type, self.spark))
        found.learn(self.log_end, self._event)
        return found

    @contextmanager
    def paused(self, run: Run) -> Iterator[LogEnd]:
        """Where the log ends; nobody else appends to it inside. BusyError unless the topic is being read."""
        name = self.topic.name
        with holding(self._turn, f"the batch of topic {name} to end", STOP_WAIT_S, run):
            if self.state not in (RUNNING, VALIDATING) or self._ending.is_set():
                why = self.error.what if self.error else f"its ingest is {self.state}"
                raise BusyError(f"topic {name} is not read now", why, "see `twinlake status`, then try again")
            yield self.log_end.at(self.clock())

    def take(self, table: pa.Table, end: LogEnd, metadata: dict[str, Any], decision: Decision) -> None:
        """Appends one batch that did not come from Kafka, in the same way; call it while paused."""
        self._committed(end, decision, self._append(table, end, metadata))

    # -- for `twinlake status`

    def unreadable(self) -> list[dict[str, Any]]:
        """By schema, the records in quarantine that the newest schema cannot read, and what to do."""
        return waiting(self.topic, self.log_end.unreadable, self._unreadable())

    def broker_ends(self) -> dict[int, int]:
        """The offset after the last committed record of each partition, asked of the broker."""
        found = (kafka := Kafka(self.settings.services().kafka("ingest"))).topic(self.topic.name)
        return kafka.ends(self.topic.name, found.partitions) if found else {}

    def topic_settings(self) -> dict[str, str]:
        """The topic's configuration as it is now, asked of the broker."""
        return Kafka(self.settings.services().kafka("ingest")).settings(self.topic.name)

    def offsets_since(self, micros: int) -> dict[int, int]:
        kafka = Kafka(self.settings.services().kafka("ingest"))
        return kafka.since(self.topic.name, self.log_end.offsets, micros)

    def behind(self, ends: Mapping[int, int]) -> int:
        """How many offsets below these ends the log has not reached yet."""
        return sum(max(0, end - self.log_end.offsets.get(number, 0)) for number, end in ends.items())
