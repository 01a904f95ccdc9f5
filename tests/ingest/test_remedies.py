"""What an error of a topic says to do is done, on a real broker, and the topic goes on.

A new ingest over the same log is what a lake server that was started again has.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.ingest.stage import Stage
from tests.ingest.test_topic_watch import configure
from tests.unopened import unopened
from twinlake.base.errors import StoppedTopicError
from twinlake.base.waiting import wait_for
from twinlake.ingest.ingest import RETRYING, RUNNING
from twinlake.ingest.log_end import LogEnd
from twinlake.server import topic_watch


def remedy_of(stage: Stage, what: str) -> str:
    """What an ingest that is started now says to do about this error."""
    stopped = stage.stopped()
    assert isinstance(stopped.error, StoppedTopicError) and stopped.error.what.startswith(what)
    return stopped.error.remedy


def test_a_topic_that_was_deleted_is_made_again_and_accepted(stage: Stage) -> None:
    stage.create()
    stage.orders("a", "b")
    stage.run()
    (gone,) = stage.kafka._admin.delete_topics([stage.topic.name], request_timeout=10).values()
    gone.result()
    is_gone = lambda: stage.kafka.topic(stage.topic.name) is None or None  # noqa: E731
    wait_for("the topic to be gone", is_gone, 30, every_s=0)

    remedy = remedy_of(stage, f"topic {stage.topic.name} does not exist any more")
    stage.create()
    accepted = stage.accept()
    stage.orders("c")

    assert remedy == f"make it again and run `twinlake topic accept {stage.topic.name}`"
    assert (accepted.change, accepted.epoch) == ("recreated", 1)
    assert sorted(row[:2] for row in stage.verdicts(stage.run())) == [(0, 0), (0, 0), (1, 0)]


@pytest.mark.parametrize("was_read", [True, False])
def test_a_topic_with_the_producers_time_goes_on_once_it_has_the_brokers(
    stage: Stage, was_read: bool
) -> None:
    stage.create()
    if was_read:
        stage.orders("a")
        stage.run()
    configure(stage, "message.timestamp.type", "CreateTime")

    remedy = remedy_of(stage, f"topic {stage.topic.name} has timestamps that producers set (CreateTime)")
    configure(stage, "message.timestamp.type", "LogAppendTime")
    stage.orders("b")

    assert remedy.startswith("set message.timestamp.type=LogAppendTime and start the lake server again")
    assert {row[3] for row in stage.verdicts(stage.run())} == {"valid"}


@pytest.mark.parametrize("was_read", [True, False])
def test_a_topic_with_records_of_the_producers_time_is_made_again(stage: Stage, was_read: bool) -> None:
    stage.create()
    if was_read:
        stage.orders("a")
        stage.run()
    configure(stage, "message.timestamp.type", "CreateTime")
    stage.orders("b")

    remedy = remedy_of(stage, f"topic {stage.topic.name} has timestamps that producers set (CreateTime)")
    stage.recreate()
    if was_read:
        assert stage.accept().change == "recreated"
    stage.orders("c")

    assert "make the topic again before that, and where its log has records run" in remedy
    assert [row[:3] for row in stage.verdicts(stage.run())][-1] == (int(was_read), 0, 0)


def test_records_that_kafka_will_soon_delete_are_kept_longer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_watch, "SETTINGS_S", 0.0)
    server = unopened(stage.settings.home)
    stage.create(partitions=1)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    ingest.stop()
    server.ingests[stage.topic.name] = ingest
    stage.orders("b")
    configure(stage, "retention.ms", "3600000")

    def warnings(later: timedelta = timedelta()) -> list[dict[str, Any]]:
        server._look_at_topic(stage.topic.name)
        server._watches[stage.topic.name]._clock = lambda: datetime.now(UTC) + later
        server._look_at_topic(stage.topic.name)
        (topic,) = server.status()["topics"]
        found: list[dict[str, Any]] = topic["warnings"]
        return [one for one in found if one["what"].startswith("Kafka will soon delete records of topic")]

    first = warnings()
    (found,) = warnings(timedelta(minutes=50))
    configure(stage, "retention.ms", "604800000")

    assert first == [] and f"twinlake resume {stage.topic.name} --topic" in found["remedy"]
    assert "--add-config retention.ms=..." in found["remedy"]
    assert warnings(timedelta(minutes=50)) == []


def test_a_batch_that_would_break_a_promise_is_read_again_after_a_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that counts wrongly; the one after it does not."""
    counted = LogEnd.after

    def one_more(end: LogEnd, *given: Any, **named: Any) -> LogEnd:
        new = counted(end, *given, **named)
        return replace(new, counts={**new.counts, "valid": new.counts["valid"] + 1})

    stage.create(partitions=1)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    monkeypatch.setattr(LogEnd, "after", one_more)
    stage.orders("b")
    stage.until(lambda: ingest.state == "stopped", ingest)
    monkeypatch.undo()

    error = ingest.error
    assert error is not None and "was not committed: it would break nothing_lost" in error.what
    assert "Start the lake server again (`twinlake down`, `twinlake up`)" in error.remedy
    assert [row[3] for row in stage.verdicts(stage.run())] == ["valid", "valid"]


def test_an_ingest_that_fails_goes_on_by_itself_once_what_it_names_is_right(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a")
    checkpoints = stage.settings.checkpoints
    checkpoints.parent.mkdir(parents=True, exist_ok=True)
    checkpoints.write_text("no folder")
    ingest = stage.ingest()

    stage.until(lambda: ingest.state == RETRYING and ingest.error is not None, ingest)
    error = ingest.error
    checkpoints.unlink()
    stage.caught_up(ingest)

    assert error is not None and error.what == f"ingest of topic {stage.topic.name} failed after batch 0"
    assert error.remedy.startswith("it is tried again from the log's end")
    assert (ingest.state, ingest.error) == (RUNNING, None)
