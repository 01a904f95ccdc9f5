"""The log's own clocks: when Kafka appended a record, when its batch was added; once, whatever happens."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.ingest.stage import Stage
from tests.ingest.test_log_end import END, decision
from tests.ingest.test_replay import mend, reading
from tests.project import OURS
from tests.written_log import write_batch
from twinlake.base.errors import UsageError
from twinlake.base.job import Run
from twinlake.base.times import EPOCH
from twinlake.ingest.compact import compact
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.clock import IDLE, LOG_APPEND_TIME, PROCESSING_TIME
from twinlake.kinds.grid import micros
from twinlake.lake.log.clock_fold import LogClock
from twinlake.lake.log.log import COLUMNS, PROPERTIES, Log
from twinlake.lake.log.log_clock import fold_at, position_at
from twinlake.topics.topic import load_topic

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def ingested(log: Log) -> dict[int, set[datetime]]:
    """By batch, the processing times of its records, as definitions read them."""
    found: dict[int, set[datetime]] = {}
    for batch in range(1, log.end() + 1):
        rows = log.rows(batch - 1, batch).select("_ingested_at").collect()
        found[batch] = {row["_ingested_at"].astimezone(UTC) for row in rows}
    return found


@pytest.mark.usefixtures("way")
def test_a_batch_has_the_time_at_which_it_was_added_for_ever_and_time_never_goes_back(stage: Stage) -> None:
    stage.create()
    for number, now in enumerate((NOON, NOON + HOUR, NOON - HOUR)):
        stage.clock = lambda now=now: now  # type: ignore[misc]
        stage.orders(f"a{number}", f"b{number}", partition=number % 2)
        log = stage.run()
    before, told = ingested(log), log.metadata()["clocks"]

    # nothing of what makes ingest read again changes what is in the log
    shutil.rmtree(stage.settings.lake / "checkpoints")
    stage.clock = lambda: NOON + 9 * HOUR
    log = stage.run()
    compact(log.appender)

    assert before == {1: {NOON}, 2: {NOON + HOUR}, 3: {NOON + HOUR}}
    assert ingested(log) == before
    assert told[PROCESSING_TIME] == micros(NOON + HOUR - EPOCH)
    newest = log.all(0, 3).selectExpr("unix_micros(max(timestamp)) AS at").first()
    assert newest is not None and told[LOG_APPEND_TIME] <= newest["at"]


@pytest.mark.faults
def test_a_moment_is_not_told_by_batches_that_a_clock_ahead_has_added(stage: Stage) -> None:
    stage.create()
    for now in (NOON, NOON + 9000 * HOUR, NOON + HOUR):  # the clock is a year ahead, and right again
        stage.clock = lambda now=now: now  # type: ignore[misc]
        stage.orders(str(now))
        log = stage.run()
    now = NOON + 2 * HOUR

    with pytest.raises(UsageError, match="batches from 2 on were added by a clock that is ahead") as refused:
        position_at(log, now, now)

    assert refused.value.remedy == f"name a position, like position:{stage.topic.name}=3"
    assert position_at(log, NOON, now) == 1
    assert position_at(log, NOON + 9001 * HOUR, NOON + 9002 * HOUR) == 3
    assert position_at(log, NOON + 9000 * HOUR, NOON + 9000 * HOUR - timedelta(minutes=1)) == 3


def test_log_append_time_has_come_as_far_as_the_active_partition_that_is_most_behind() -> None:
    idle = micros(IDLE)
    both = END.after(decision(seen={0: 100, 1: 40}, event_times={}), "a", [])
    back = both.after(decision(seen={1: 30}, event_times={}), "a", [])
    alone = back.after(decision(seen={0: 31 + idle}, event_times={}), "a", [])

    assert [end.appended_at for end in (END, both, back, alone)] == [None, 40, 40, 31 + idle]


def test_the_clocks_survive_the_commit_and_are_unknown_of_one_that_did_not_tell_them() -> None:
    end = END.at(NOON).past({}, "a")
    told: dict[str, Any] = end.metadata("batch", 0)
    del told["clocks"]

    assert LogEnd.of("orders", end.metadata("batch", 0)) == end
    assert (LogEnd.of("orders", told).ingested_at, LogEnd.of("orders", told).appended_at) == (None, None)


def test_a_log_of_before_gains_the_column_and_goes_on(spark: Any, tmp_path: Any) -> None:
    from twinlake.lake.delta import delta

    log = Log(spark, tmp_path, load_topic("orders", OURS))
    first = Log(spark, tmp_path / "first", load_topic("orders", OURS))
    write_batch(first, 3)
    older = first.all(0, 1).drop("ingested_at")
    assert older.columns == [name for name in COLUMNS if name != "ingested_at"]
    delta.create(spark, log.path, older.schema, PROPERTIES)
    delta.append(older, log.path, "log:test", 1, first.metadata())

    log.open()
    write_batch(log, 2)

    found = log.rows(0, 2).selectExpr("_ingested_at IS NULL AS unknown").groupBy("unknown").count().collect()
    assert {(row["unknown"], row["count"]) for row in found} == {(True, 3), (False, 2)}
    assert log.appender.schema().names == list(COLUMNS)


@pytest.mark.faults
def test_what_the_commits_have_told_can_be_folded_from_the_rows_when_they_are_gone(
    stage: Stage, seed: int
) -> None:
    """Over partitions, verdicts, a replay, and a topic that was made anew; the seed draws the times."""
    draw = random.Random(seed)
    now = datetime.now(UTC).replace(microsecond=0)

    def batch(number: int) -> Log:
        for partition in draw.sample((0, 1), draw.randint(1, 2)):
            at = now + timedelta(minutes=draw.randint(-600, 5))  # some lie in the future
            status = draw.choice(("paid", "lost"))
            stage.orders(f"{number}-{partition}", ordered_at=at, status=status, partition=partition)
        return stage.run()

    stage.create(partitions=2)
    stage.orders("first", ordered_at=now - timedelta(minutes=660))  # the watermark rises, whatever is drawn
    stage.run()
    stage.orders("lost", ordered_at=now - timedelta(minutes=1), status="lost")
    for number in range(3):
        batch(number)
    mend(stage, "lost")
    ingest = reading(stage)
    assert ingest.replay((), Run(id="job")).batches
    ingest.stop()
    batch(4)
    stage.recreate()
    stage.accept()
    log = batch(5)

    told, found = {}, {}
    for number in range(1, log.end() + 1):
        metadata = log.metadata(number)
        told[number] = LogClock(watermark=metadata["watermark"], clocks=metadata["clocks"])
        found[number] = fold_at(log, number).clock
    assert found == told and len({clock.watermark for clock in told.values()}) > 1
