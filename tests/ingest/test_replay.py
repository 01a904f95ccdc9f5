"""Records in quarantine judged again after their contract was mended, on a real broker."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyspark.sql import Row, SparkSession

from tests.apicurio import Apicurio
from tests.broker import Broker
from tests.ingest.stage import Stage, frame, order
from tests.ingest.test_verdicts import KAFKA
from twinlake.base.errors import BusyError, NotFoundError, UsageError
from twinlake.base.job import CancelledError, Progress, Run
from twinlake.ingest import replay as replaying
from twinlake.ingest.ingest import LOG_APPEND_TIME, Ingest
from twinlake.ingest.replay import parts
from twinlake.lake.catalog.paused import Pauses
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log import log_start
from twinlake.lake.log.clock_fold import Fold
from twinlake.lake.log.log import Log
from twinlake.lake.log.log_start import LogStart
from twinlake.lake.log.quarantine import quarantine_sql, replayed_sql
from twinlake.server.batch_jobs import PublishedReplayParams, do_replay
from twinlake.topics.verdict import BELOW_MINIMUM, NOT_ALLOWED, records_in, rows_in

JOB = Run(id="job")
HOUR = timedelta(hours=1)
Latest = dict[tuple[int, int, int], tuple[str, ...]]


def mend(stage: Stage, *statuses: str, **changes: Any) -> None:
    """From the next ingest on the contract allows these statuses, too."""
    contract = stage.topic.contract
    rules = tuple(
        replace(rule, value=(*rule.value, *statuses)) if rule.code == NOT_ALLOWED else rule  # type: ignore[misc]
        for rule in contract.rules
    )
    stage.topic = replace(
        stage.topic, contract=replace(contract, rules=rules, version="1.1.0", **changes)
    )  # fmt: skip


def reading(stage: Stage, **options: Any) -> Ingest:
    """An ingest with the contract as it is now, at the topic's end."""
    return stage.caught_up(stage.ingest(**options))


def latest(log: Log) -> Latest:
    """By record id, the latest verdict with its reasons."""
    rows = log.all(0, log.end()).orderBy("batch").collect()
    return {(row.epoch, row.partition, row.offset): (row.verdict, *row.reasons) for row in rows}


def quarantine(log: Log) -> set[tuple[int, int]]:
    rows = log.spark.sql(quarantine_sql(relation_sql(log.path))).collect()
    return {(row.partition, row.offset) for row in rows}


def copies(log: Log) -> list[Row]:
    return log.all(0, log.end()).where("replay").orderBy("partition", "offset").collect()


def test_what_a_mended_contract_admits_enters_once_and_a_second_replay_changes_nothing(stage: Stage) -> None:
    stage.create(partitions=2)
    stage.orders("a", "b", status="lost")
    stage.orders("c", status="lost", amount=Decimal("-1"))
    stage.produce(b"\0junk", None)
    stage.orders("d", "d")
    stage.orders("e", ordered_at=datetime.now(UTC) - timedelta(days=22))
    stage.orders("f", status="lost", partition=1)
    before = stage.run().metadata()
    mend(stage, "lost")
    ingest = reading(stage)
    log = ingest.log

    done = ingest.replay((), JOB)
    again = ingest.replay((), JOB)

    assert done.to_json() == {
        "topic": stage.topic.name, "contract": "1.1.0", "judged": 7, "replayed": 4, "batches": [2],
        "verdicts": {"valid": 3, "invalid": 1, "duplicate": 0, "too_late": 0, "ignored": 0},
    }  # fmt: skip
    assert (again.judged, again.replayed, again.batches, log.end()) == (4, 0, (), 2)
    assert latest(log) == {
        (0, 0, 0): ("valid",), (0, 0, 1): ("valid",), (0, 0, 2): ("invalid", "below_minimum:amount"),
        (0, 0, 3): ("invalid", "unknown_schema"), (0, 0, 4): ("invalid", "null_value"), (0, 0, 5): ("valid",),
        (0, 0, 6): ("duplicate", "already_seen"), (0, 0, 7): ("too_late", "too_late"), (0, 1, 0): ("valid",),
    }  # fmt: skip
    assert quarantine(log) == {(0, 2), (0, 3), (0, 4), (0, 6), (0, 7)}
    same = ("epoch", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
    originals = {(row.partition, row.offset): row for row in log.all(0, 1).collect()}
    for copy in copies(log):
        original = originals[copy.partition, copy.offset]
        assert [copy[name] for name in same] == [original[name] for name in same]
        assert (copy.contract, copy.batch, original.contract, original.replay) == ("1.1.0", 2, "1.0.0", False)
    assert {row.event_id for row in log.rows(1, 2).collect()} == {"a", "b", "f"}
    told = log.metadata()
    assert told["ends"] == before["ends"] and told["seen"] == before["seen"]
    assert told["counts"] == {
        "valid": 4, "invalid": 3, "duplicate": 1, "too_late": 1, "late": 0, "replayed": 4
    }  # fmt: skip
    assert records_in(told["counts"]) == records_in(before["counts"]) == 9
    assert log.records(log.end()) == rows_in(told["counts"]) == 13
    assert told["replay"]["job"] == "job" and told["replay"]["contract"] == "1.1.0"
    shown = log.spark.sql(replayed_sql(relation_sql(log.path))).collect()
    assert {(row.offset, *sorted(row.first_reasons), row.first_contract, row.verdict) for row in shown} == {
        (0, "not_allowed:status", "1.0.0", "valid"), (1, "not_allowed:status", "1.0.0", "valid"),
        (2, "below_minimum:amount", "not_allowed:status", "1.0.0", "invalid"),
    }  # fmt: skip


def test_the_stream_goes_on_after_a_replay_and_knows_the_ids_that_became_valid(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a", "b", status="lost")
    stage.run()
    mend(stage, "lost")
    ingest = reading(stage)
    stage.orders("c")
    stage.caught_up(ingest)
    ingest.replay((), JOB)
    stage.orders("a", "d")
    stage.caught_up(ingest)
    ingest.stop()
    stage.orders("b", "e")

    log = stage.run()

    assert [verdict[0] for _, verdict in sorted(latest(log).items())] == [
        "valid", "valid", "valid", "duplicate", "valid", "duplicate", "valid"
    ]  # fmt: skip
    assert sorted(row.event_id for row in log.rows(0, log.end()).collect()) == ["a", "b", "c", "d", "e"]
    assert stage.batches == sorted(stage.batches)
    counts = log.metadata()["counts"]
    assert (counts["replayed"], log.records(log.end())) == (2, rows_in(counts))


def test_a_topic_is_replayed_beside_the_replay_of_another_and_not_beside_its_own(
    stage: Stage, spark: SparkSession, broker: Broker, apicurio: Apicurio, tmp_path: Path
) -> None:
    other = Stage(spark, broker, apicurio, tmp_path / "other", f"{stage.topic.name}_beside")
    ingests = []
    for one in (stage, other):
        one.create(partitions=1)
        one.orders("a", status="lost")
        one.run()
        mend(one, "lost")
        ingests.append(reading(one))
    begun, go_on, patient = threading.Event(), threading.Event(), Run(id="other")
    stopper = threading.Timer(60, patient.cancelled.set)

    def stand(progress: Progress) -> None:
        begun.set()
        go_on.wait(300)

    try:
        with ThreadPoolExecutor(max_workers=2) as jobs:
            first = jobs.submit(ingests[0].replay, (), Run(id="first", report=stand))
            assert begun.wait(120)
            second = jobs.submit(ingests[0].replay, (), JOB)
            stopper.start()
            try:
                beside = ingests[1].replay((), patient)
                assert not first.done() and not second.done()
            finally:
                go_on.set()

            assert (beside.replayed, first.result().replayed) == (1, 1)
            assert (second.result().judged, second.result().replayed) == (0, 0)
    finally:
        stopper.cancel()
        other.close()


def test_an_id_that_is_valid_by_now_makes_a_duplicate_by_its_distance_in_time(stage: Stage) -> None:
    stage.create(partitions=1)
    ingest = reading(stage)
    ingest.stop()
    now = datetime.now(UTC)
    history = [
        ("x", "lost", 0.0), ("x", "paid", 0.5),
        ("y", "lost", 0.7), ("y", "paid", 3.0),
        ("z", "lost", 3.1), ("z", "lost", 3.2),
        ("w", "paid", 3.3), ("w", "lost", 3.5), ("w", "paid", 9.0),
    ]  # fmt: skip
    for offset, (event_id, status, hours) in enumerate(history):
        value = stage.framed(order(event_id, status=status))
        row = (b"k", value, stage.topic.name, 0, offset, now + hours * HOUR, LOG_APPEND_TIME, None)
        ingest._commit(stage.spark.createDataFrame([row], KAFKA), {})
    stage.produce(*[b"what the broker had at these offsets"] * len(history))
    mend(stage, "lost")
    ingest = reading(stage)

    ingest.replay((), JOB)

    duplicate = ("duplicate", "already_seen")
    assert [verdict for _, verdict in sorted(latest(ingest.log).items())] == [
        duplicate, ("valid",), ("valid",), ("valid",), ("valid",), duplicate,
        ("valid",), duplicate, ("valid",),
    ]  # fmt: skip
    assert ingest.replay((), JOB).judged == 0


def test_only_records_with_the_reasons_that_are_named_are_judged(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a", status="lost")
    stage.orders("b", ordered_at=datetime.now(UTC) - timedelta(days=22))
    stage.orders("c", status="found")
    stage.run()
    mend(stage, "lost", "found", discard_after=timedelta(days=30))
    ingest = reading(stage)

    late = ingest.replay(["too_late"], JOB)
    (only_late,) = copies(ingest.log)
    rest = ingest.replay(["not_allowed:status", "bad_header"], JOB)

    assert (late.judged, late.verdicts["valid"], only_late.offset, only_late.late) == (1, 1, 1, True)
    assert (rest.judged, rest.replayed) == (2, 2)
    assert ingest.log.metadata()["counts"]["late"] == 1
    for wrong in ("no_such_reason", "not_allowed:", "already_seen"):
        with pytest.raises(UsageError):
            ingest.replay([wrong], JOB)


def test_a_schema_that_is_registered_late_makes_its_records_valid_with_all_their_fields(faked: Stage) -> None:
    faked.create(partitions=1)
    note = {"name": "note", "type": "string", "default": "-"}
    newer = {**faked.schema, "fields": [*faked.schema["fields"], note]}
    faked.produce(frame(99, newer, order("a", note="hi")), frame(98, newer, order("b", note="ho")))
    log = faked.run()
    assert {verdict for verdict in latest(log).values()} == {("invalid", "unknown_schema")}
    faked.registry.add(faked.subject, 99, newer)  # type: ignore[union-attr]
    ingest = reading(faked)

    done = ingest.replay(["unknown_schema"], JOB)

    assert (done.judged, done.replayed) == (2, 1)
    (copy,) = copies(ingest.log)
    assert (copy.verdict, copy.schema_id, copy.event.event_id, copy.event.note) == ("valid", 99, "a", "hi")
    assert set(ingest.log.metadata()["schemas"]) == {"99"}


@pytest.mark.faults
def test_verdicts_do_not_depend_on_how_a_replay_is_cut_or_on_being_cancelled_in_between(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create(partitions=2)
    for partition in (0, 1):
        stage.orders(*(f"{partition}-{n % 7}" for n in range(10)), status="lost", partition=partition)
        stage.produce(b"\0junk", None, partition=partition)
        stage.orders(f"{partition}-1", f"{partition}-9", partition=partition)
    lakes = [stage.lake_of(tmp_path / name) for name in ("whole", "cut")]
    for lake in lakes:
        stage.run(lake)
    mend(stage, "lost")
    stopping = Run(id="stopped")

    def stop_after_two(progress: Progress) -> None:
        if progress.done >= 4:
            stopping.cancelled.set()

    stopping.report = stop_after_two

    whole = reading(stage, settings=lakes[0])
    at_once = whole.replay((), JOB)
    whole.stop()
    cut = reading(stage, settings=lakes[1])
    monkeypatch.setattr(replaying, "CHUNK_RECORDS", 4)
    with pytest.raises(CancelledError):
        cut.replay((), stopping)
    begun = len(copies(cut.log))
    rest = cut.replay((), JOB)

    assert 0 < begun < at_once.replayed == begun + rest.replayed == 20
    assert len(at_once.batches) == 1 and len(rest.batches) > 1
    assert latest(cut.log) == latest(whole.log)
    assert cut.log.metadata()["counts"] == whole.log.metadata()["counts"]
    counted = [verdict[0] for verdict in latest(whole.log).values()]
    assert (counted.count("valid"), counted.count("duplicate")) == (16, 8)


def test_copies_of_an_earlier_epoch_stay_in_it_and_say_nothing_of_this_one_s_time(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a", status="lost")
    stage.run()
    stage.recreate(partitions=1)
    stage.stopped()
    stage.accept()
    stage.orders("b", ordered_at=datetime.now(UTC) - HOUR)
    before = stage.run().metadata()
    mend(stage, "lost")
    ingest = reading(stage)

    ingest.replay((), JOB)

    told = ingest.log.metadata()
    assert [(row.epoch, row.offset, row.verdict) for row in copies(ingest.log)] == [(0, 0, "valid")]
    assert latest(ingest.log) == {(0, 0, 0): ("valid",), (1, 0, 0): ("valid",)}
    names = ("epoch", "ends", "topics", "seen", "event_times", "counted", "watermark")
    assert [told[name] for name in names] == [before[name] for name in names]


def test_a_replay_moves_the_watermark_on_and_never_back(stage: Stage) -> None:
    stage.create(partitions=1)
    now = datetime.now(UTC).replace(microsecond=0)
    for event_id, status, hours in (("a", "paid", 5), ("b", "lost", 1), ("c", "found", 9)):
        stage.orders(event_id, status=status, ordered_at=now - hours * HOUR)
    watermarks = [stage.run().metadata()["watermark"]]
    for status in ("lost", "found"):
        mend(stage, status)
        ingest = reading(stage)
        assert ingest.replay((), JOB).verdicts["valid"] == 1
        watermarks.append(ingest.log.metadata()["watermark"])
        ingest.stop()

    assert watermarks == [int((now - hours * HOUR).timestamp()) * 1_000_000 for hours in (5, 1, 1)]


def test_a_topic_that_is_not_read_is_not_replayed_either(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a", status="lost")
    stage.run()
    mend(stage, "lost")
    ingest = reading(stage)
    ingest.stop()

    with pytest.raises(BusyError, match="is not read now"):
        ingest.replay((), JOB)

    assert (ingest.log.end(), copies(ingest.log)) == (1, [])


def test_the_job_asks_the_topic_s_ingest_and_refuses_a_topic_that_is_none(tmp_path: Path) -> None:
    class Asked:
        def replay(self, reasons: Any, run: Run) -> Any:
            return reasons, run.id

    lake: Any = SimpleNamespace(ingests={"orders": Asked()}, pauses=Pauses(tmp_path))

    asked = PublishedReplayParams(topic="orders", reasons=("empty",))
    assert do_replay(lake, asked, JOB) == (("empty",), "job")
    with pytest.raises(NotFoundError, match="known: orders"):
        do_replay(lake, PublishedReplayParams(topic="order"), JOB)
    with pytest.raises(ValidationError, match="there is no reason 'lost'"):
        PublishedReplayParams(topic="orders", reasons=("lost",))


def test_parts_are_in_log_order_and_cut_by_epoch_count_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "CHUNK_RECORDS", 3)
    monkeypatch.setattr(replaying, "CHUNK_BYTES", 100)
    rows = [(1, 0, 0, 9, 10), (0, 1, 5, 2, 10), (0, 0, 7, 1, 10), (0, 0, 3, 1, 10), (0, 1, 6, 2, 10),
            (1, 0, 1, 9, 500), (1, 0, 2, 9, 60), (1, 0, 3, 9, 60)]  # fmt: skip
    names = ("epoch", "partition", "offset", "batch", "bytes")
    listed = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})

    found = [(part.epoch, part.rows.column("offset").to_pylist(), part.spans_sql) for part in parts(listed)]

    at = "(partition = {} AND offset BETWEEN {} AND {})".format
    assert found == [
        (0, [3, 7, 5], f"{at(0, 3, 7)} OR {at(1, 5, 5)}"), (0, [6], at(1, 6, 6)), (1, [0], at(0, 0, 0)),
        (1, [1], at(0, 1, 1)), (1, [2], at(0, 2, 2)), (1, [3], at(0, 3, 3)),
    ]  # fmt: skip


@pytest.mark.faults
def test_a_contract_that_is_changed_to_and_fro_admits_each_record_once_and_takes_none_back(
    stage: Stage, seed: int
) -> None:
    """Stricter, looser, and the first again under its old number, with a replay each time."""
    stage.create(partitions=2)
    draw, first = random.Random(seed), stage.topic.contract
    amounts: dict[str, int] = {}
    valid: set[str] = set()
    for least, version in ((0, "1.0.0"), (9, "1.1.0"), (-5, "1.2.0"), (0, "1.0.0"), (9, "1.1.0")):
        rules = tuple(
            replace(one, value=Decimal(least)) if one.code == BELOW_MINIMUM else one for one in first.rules
        )
        stage.topic = replace(stage.topic, contract=replace(first, rules=rules, version=version))
        ingest = reading(stage)
        for number in range(12):
            event_id, amount = f"{version} {len(amounts)}", draw.randint(-9, 12)
            amounts[event_id] = amount
            stage.orders(event_id, partition=number % 2, amount=Decimal(amount))
            valid |= {event_id} if amount >= least else set()
        stage.caught_up(ingest)
        before = ingest.log_end.counts["valid"]
        assert before == len(valid)

        admitted = {event_id for event_id, amount in amounts.items() if amount >= least} - valid
        assert ingest.replay((), JOB).verdicts["valid"] == len(admitted)
        assert ingest.replay((), JOB).replayed == 0
        ingest.stop()

        valid |= admitted
        rows = ingest.log.rows(0, ingest.log.end()).select("event_id").collect()
        assert sorted(row.event_id for row in rows) == sorted(valid)


def start_after_first_batch(log: Log) -> None:
    """As retention leaves a log whose first batch it has deleted."""
    first = log.all(0, 1).selectExpr("count(*) AS rows", "unix_micros(max(timestamp)) AS until").first()
    assert first is not None
    until, rows, app = first["until"], first["rows"], log_start.app_id(log.appender.table_id)
    LogStart(number=1, batch=1, until=until, rows=rows, made_at="", clock=Fold()).save(log.path)
    files = [path for path, file in log.appender.files().items() if file.least("batch") == 1]
    log.appender.commit([], app, 1, {"kind": "retention"}, files, same=False)


@pytest.mark.parametrize("window", [timedelta(days=1), timedelta(microseconds=1)])
def test_what_may_repeat_a_deleted_record_stays_in_quarantine(stage: Stage, window: timedelta) -> None:
    stage.create(partitions=1)
    stage.orders("a", "b")
    stage.run()
    stage.orders("a", "c", status="lost")
    stage.run()
    mend(stage, "lost", unique_within=window)
    ingest = reading(stage)
    assert ingest.log.end() == 2
    start_after_first_batch(ingest.log)

    done = ingest.replay((), JOB)

    is_long = window == timedelta(days=1)
    assert (done.judged, done.replayed) == ((0, 0) if is_long else (2, 2))
    assert quarantine(ingest.log) == ({(0, 2), (0, 3)} if is_long else set())
    stage.orders("b", "d")  # what comes now is asked of the ids that are left
    stage.caught_up(ingest)
    assert ingest.log.records(ingest.log.end()) == rows_in(ingest.log.metadata()["counts"])
