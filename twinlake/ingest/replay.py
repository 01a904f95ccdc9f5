"""Replay: records in quarantine are validated again by the active contract.

Those that get a different verdict enter the log as copies, in a batch like any other. One whose verdict and
reasons stay the same leaves no trace: a second replay changes nothing, and a killed one starts again. Offsets
stay where they are; the watermark may go on, never back.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinlake.base.job import Run
from twinlake.base.waiting import holding
from twinlake.ingest import decode_avro, first_pass, ids, source
from twinlake.ingest.decide import Decision, decide, is_unreadable
from twinlake.ingest.duplicates import Seen
from twinlake.ingest.log_end import LogEnd
from twinlake.ingest.log_table import log_table
from twinlake.ingest.replay_dedup import Nearby
from twinlake.ingest.scan import Scan
from twinlake.ingest.unreadable import schemas_met
from twinlake.ingest.writer_schema import Writer
from twinlake.ingest.writers import Writers
from twinlake.kinds.grid import micros
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.log import REPLAY, Log
from twinlake.lake.log.log_clock import moment_sql
from twinlake.lake.log.quarantine import listed_sql, refuse_unknown
from twinlake.spark.prepared_plan import ArrowFile, computed
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import VALID, VERDICTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK_RECORDS = 20_000
CHUNK_BYTES = 64 << 20
"""So much is judged at once: the stream waits while the copies of one chunk are committed."""
OTHER_WAIT_S = 3600.0
_KAFKA = [*source.COLUMNS]
_DECIDED = ("batch", "schema_id", "verdict", "reasons")


class TopicIngest(Protocol):
    """The one way into a log: the topic's ingest."""

    spark: SparkSession
    topic: Topic
    log: Log
    replaying: threading.Lock
    """Held by the topic's one replay."""

    def writers(self) -> Writers:
        """The schemas of the topic's producers as the registry tells them now."""

    def paused(self, run: Run) -> AbstractContextManager[LogEnd]:
        """Where the log ends; nobody else appends to it inside. BusyError unless the topic is being read."""

    def keep(self, met: Iterable[Writer]) -> bool:
        """Gives the log the fields of these writers; whether it gained some."""

    def take(self, table: pa.Table, end: LogEnd, metadata: dict[str, Any], decision: Decision) -> None:
        """Appends one batch that did not come from Kafka; call it while paused."""


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """How many records were validated again, and of how many, by the new verdict, the log has copies now."""

    topic: str
    contract: str
    judged: int
    replayed: int
    verdicts: dict[str, int]
    batches: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "batches": list(self.batches)}


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some records of one epoch, in log order: partition, offset, and the batch of the latest verdict."""

    epoch: int
    rows: pa.Table

    @property
    def spans_sql(self) -> str:
        """The condition that a record id lies between the first and the last of each partition."""
        spans = self.rows.group_by("partition").aggregate([("offset", "min"), ("offset", "max")]).to_pylist()
        return " OR ".join(
            f"(partition = {one['partition']} AND offset BETWEEN {one['offset_min']} AND {one['offset_max']})"
            for one in spans
        )


def replay(ingest: TopicIngest, reasons: Sequence[str], run: Run) -> Replayed:
    """One replay of a topic at a time; cancelled between two chunks, what it has committed stays.

    UsageError for reasons that are none, BusyError unless the topic is being read, StoppedTopicError where
    the registry has forgotten schemas of records that are to be judged.
    """
    refuse_unknown(reasons, replays=True)
    with holding(ingest.replaying, "another replay of the topic to end", OTHER_WAIT_S, run):
        return _Replay(ingest, reasons, run).done()


def parts(listed: pa.Table) -> Iterator[Part]:
    """What `listed_sql` has found, in log order, cut where an epoch ends or a part is large enough."""
    columns = [listed.column(name).to_numpy() for name in ("offset", "partition", "epoch")]
    rows = listed.take(np.lexsort(columns))
    epochs, held = rows.column("epoch").to_numpy(), np.cumsum(rows.column("bytes").to_numpy())
    start = 0
    while start < len(epochs):
        before = int(held[start - 1]) if start else 0
        fits = int(np.searchsorted(held, before + CHUNK_BYTES, side="right"))
        same = int(np.searchsorted(epochs, epochs[start], side="right"))
        end = max(start + 1, min(start + CHUNK_RECORDS, fits, same))
        chosen = rows.slice(start, end - start).select(["partition", "offset", "batch"])
        yield Part(epoch=int(epochs[start]), rows=chosen)
        start = end


class _Replay:
    def __init__(self, ingest: TopicIngest, reasons: Sequence[str], run: Run) -> None:
        self._ingest, self._reasons, self._run = ingest, reasons, run
        self._log, self._topic = ingest.log, ingest.topic
        within = ingest.topic.contract.unique_within
        self._window = micros(within) if within else 0
        self._look = Scan(ingest.spark, ingest.topic, end_marker=secrets.token_bytes(8))

    def done(self) -> Replayed:
        with self._ingest.paused(self._run) as end:
            self._writers = self._ingest.writers()
        listed = computed(self._ingest.spark.sql(self._listed_sql()))
        verdicts: Counter[str] = Counter()
        batches: list[int] = []
        judged = 0
        for part in parts(listed):
            self._run.check_cancelled()
            self._run.progress(judged, listed.num_rows, "records", span=part.rows.num_rows)
            if taken := self._judge(part, end):
                batches.append(taken[0])
                verdicts.update(taken[1])
            judged += part.rows.num_rows
        return Replayed(
            topic=self._topic.name, contract=self._topic.contract.version, judged=judged,
            replayed=verdicts.total(), verdicts={name: verdicts[name] for name in VERDICTS},
            batches=tuple(batches),
        )  # fmt: skip

    def _listed_sql(self) -> str:
        """Without records of which nobody can tell any more whether they are duplicates: retention has
        deleted records that may have had their ids. They stay in quarantine."""
        start = self._log.start
        since = moment_sql(start.until + self._window) if start and self._window else ""
        return listed_sql(relation_sql(self._log.path), self._reasons, since)

    def _judge(self, part: Part, listed_at: LogEnd) -> tuple[int, Counter[str]] | None:
        """The batch of the part's copies and their verdicts; None where every verdict stays."""
        before = self._read(part)
        event = self._log.event()
        found = self._looked(before, listed_at, event)
        asked = _asked(found)
        nearby = Nearby(self._window)
        known_to = self._log.end()
        if len(asked):
            nearby.add(ids.among(self._log, asked, self._window, 0, known_to))
        decision = _decided(found, nearby)
        if not _changed(before, decision).any():
            return None
        met = [writer for writer in self._writers.all() if writer.id in decision.schema_ids]
        self._writers.check(met, listed_at)
        with self._ingest.paused(self._run) as end:
            if len(asked) and end.batch > known_to:
                nearby.add(ids.among(self._log, asked, self._window, known_to, end.batch))
                decision = _decided(found, nearby)
            if self._ingest.keep(met) or self._log.event() != event:
                found = self._looked(before, listed_at, self._log.event())
            changed = _changed(before, decision)
            moved = Counter(before.column("verdict").to_pylist())
            new = end.judged_again(
                decision, part.epoch, moved, _unreadable(before), int(np.count_nonzero(changed)), met,
                self._log.event(),
            )  # fmt: skip
            table = log_table(found, self._topic, decision, new, copies_of=part.epoch).filter(changed)
            self._ingest.take(table, new, self._metadata(new, table.num_rows), decision)
        return new.batch, Counter(table.column("verdict").to_pylist())

    def _read(self, part: Part) -> pa.Table:
        """The rows of the latest verdicts of these record ids, in log order: as Kafka's reader has brought
        them, with verdict and reasons."""
        last = int(pc.max(part.rows.column("batch")).as_py())
        wanted = f"epoch = {part.epoch} AND ({part.spans_sql}) AND verdict <> '{VALID}'"
        names = ("timestamp_type AS timestampType" if name == "timestampType" else name for name in _KAFKA)
        rows = computed(self._log.all(0, last).where(wanted).selectExpr(*names, *_DECIDED))
        chosen = set(_places(part.rows))
        rows = rows.filter(pa.array([place in chosen for place in _places(rows)], pa.bool_()))
        return rows.take(_in_order(rows)).combine_chunks()

    def _looked(self, before: pa.Table, end: LogEnd, event: dict[str, str]) -> pa.Table:
        """What these records say of themselves by the active contract and schemas, in the same order."""
        records = ArrowFile(self._ingest.spark, before.select(_KAFKA))
        while True:
            found = self._look.again(records, self._writers, event)
            if not self._writers.leave_out_unkept(schemas_met(found), event):
                break
        unknown = found.filter(pc.equal(found.column("reasons"), decode_avro.NO_SCHEMA_YET))
        if refused := end.refuse_missing(pc.unique(unknown.column("schema_id")).to_pylist()):
            raise refused
        return found.take(_in_order(found)).combine_chunks()

    def _metadata(self, end: LogEnd, copies: int) -> dict[str, Any]:
        contract = self._topic.contract
        why = {"job": self._run.id, "contract": contract.version, "fingerprint": contract.fingerprint}
        return {**end.metadata(REPLAY, copies), "replay": {**why, "reasons": list(self._reasons)}}


def _places(rows: pa.Table) -> Iterator[tuple[int, int, int]]:
    columns = (rows.column(name).to_pylist() for name in ("partition", "offset", "batch"))
    return zip(*columns, strict=True)


def _in_order(rows: pa.Table) -> np.ndarray:
    return np.lexsort([rows.column(name).to_numpy() for name in ("offset", "partition")])


def _asked(found: pa.Table) -> Seen:
    """The ids of the records that would be valid if nobody had theirs."""
    flags = found.column("flags").to_numpy()
    sound = found.column("reasons").is_null().to_numpy() & ((flags & first_pass.NO_ID) == 0)
    high, low, times = (found.column(name).to_numpy()[sound] for name in ("high", "low", "micros"))
    return Seen(high=high, low=low, times=times)


def _decided(found: pa.Table, nearby: Nearby) -> Decision:
    """As of a micro-batch. A decision has a code for every offset between two records: those of a quarantine
    lie far apart, so that their places here stand for their offsets."""
    places = pa.array(np.arange(found.num_rows, dtype=np.int64))
    decision = decide(found.set_column(found.column_names.index("offset"), "offset", places), {}, nearby, {})
    assert decision is not None  # no record is in the log already by offsets that begin with none
    return decision


def _unreadable(before: pa.Table) -> Counter[int]:
    """By schema, how many of these records no schema could read so far."""
    rows = zip(before.column("schema_id").to_pylist(), before.column("reasons").to_pylist(), strict=True)
    return Counter(schema_id for schema_id, reasons in rows if is_unreadable(reasons))


def _changed(before: pa.Table, decision: Decision) -> np.ndarray:
    """Which records have another verdict, or other reasons, than before."""
    rows = zip(before.column("verdict").to_pylist(), before.column("reasons").to_pylist(), strict=True)
    new = [(code.verdict, sorted(code.reasons)) for code in decision.codes]
    return np.array(
        [(verdict, sorted(reasons or ())) != new[code - 1]
         for (verdict, reasons), code in zip(rows, decision.row_codes.tolist(), strict=True)],
        dtype=bool,
    )  # fmt: skip
