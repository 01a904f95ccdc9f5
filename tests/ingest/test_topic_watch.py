"""What goes wrong around a topic while it is read is said in the status, with what to do, and goes once it is
right: a real topic on a real broker, watched as the lake server does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.ingest.stage import Stage
from tests.unopened import unopened
from twinlake.base.times import EPOCH
from twinlake.ingest.ingest import RUNNING, Ingest
from twinlake.kinds.grid import micros
from twinlake.server import topic_watch
from twinlake.server.lake_server import LakeServer
from twinlake.services.problems import problems

HOUR = timedelta(hours=1)


@pytest.fixture
def server(stage: Stage) -> LakeServer:
    """Of the clock of this machine, until a test sets another."""
    return unopened(stage.settings.home)


def watched(server: LakeServer, ingest: Ingest) -> list[dict[str, Any]]:
    """The warnings in the status after one more look, which `twinlake status` names as problems."""
    name = ingest.topic.name
    server.ingests[name] = ingest
    server._look_at_topic(name)
    (topic,) = server.status()["topics"]
    warnings: list[dict[str, Any]] = topic["warnings"]
    shown = {"topics": [topic], "versions": [], "certificates": [], "changelogs": [], "damaged": []}
    assert problems([], shown) == [("warning", name, f"topic {name}", one) for one in warnings]
    assert topic["lag_records"] == 0 and ingest.state == RUNNING
    return warnings


def at(server: LakeServer, ingest: Ingest, apart: timedelta) -> None:
    """This machine's clock is so far from the broker's, as the watch sees it."""
    server._watches[ingest.topic.name]._clock = lambda: datetime.now(UTC) + apart


def configure(stage: Stage, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, stage.topic.name, incremental_configs=[entry])
    (done,) = stage.kafka._admin.incremental_alter_configs([resource]).values()
    done.result(20)


def test_a_topic_that_is_compacted_while_it_is_read_is_named_within_a_minute(
    stage: Stage, server: LakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create(partitions=1)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    first = watched(server, ingest)
    configure(stage, "cleanup.policy", "compact,delete")
    not_asked_yet = watched(server, ingest)
    monkeypatch.setattr(topic_watch, "SETTINGS_S", 0.0)
    (found,) = watched(server, ingest)
    configure(stage, "message.timestamp.type", "CreateTime")
    both = [one["what"] for one in watched(server, ingest)]
    configure(stage, "cleanup.policy", "delete")
    configure(stage, "message.timestamp.type", "LogAppendTime")

    name = stage.topic.name
    assert (first, not_asked_yet, watched(server, ingest)) == ([], [], [])
    assert found["what"] == f"topic {name} is compacted (cleanup.policy=compact,delete)"
    assert f"--entity-name {name} --add-config cleanup.policy=delete" in found["remedy"]
    assert both == [
        found["what"],
        f"topic {name} has timestamps that producers set (message.timestamp.type=CreateTime)",
    ]


def test_a_clock_that_has_jumped_is_named_whichever_it_is_until_it_is_right(
    stage: Stage, server: LakeServer
) -> None:
    stage.create(partitions=2)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    name = stage.topic.name
    found: dict[str, list[str]] = {"at first": [one["what"] for one in watched(server, ingest)]}

    def look(when: str, apart: timedelta, *ids: str) -> None:
        at(server, ingest, apart)
        watched(server, ingest)  # what the broker has before the next record
        if ids:
            stage.orders(*ids, partition=1)
            stage.caught_up(ingest)
        found[when] = [one["what"] for one in watched(server, ingest)]

    look("put back", -HOUR)
    look("right", timedelta())
    look("put on, nothing has come since", HOUR)
    look("put on", HOUR, "b")
    look("right, nothing has come since", timedelta())
    look("right again", timedelta(), "c")
    stage.clock = ingest.clock = lambda: datetime.now(UTC) + HOUR
    stage.orders("d")
    stage.caught_up(ingest)
    ingest.clock = lambda: datetime.now(UTC)
    look("a batch was added by a clock that was ahead", timedelta())
    until = datetime.now(UTC) + HOUR
    look("its time has come", 2 * HOUR)

    ahead = f"Kafka's clock is ahead of this machine's, by the records of topic {name}"
    behind = f"Kafka's clock is behind this machine's, by the records of topic {name}"
    added = f"the log of topic {name} was written by a clock that was ahead of this machine's"
    assert found == {
        "at first": [], "put back": [ahead, added], "right": [], "put on, nothing has come since": [],
        "put on": [behind], "right, nothing has come since": [behind], "right again": [],
        "a batch was added by a clock that was ahead": [added],
        "its time has come": [],
    }  # fmt: skip
    assert ingest.log_end.ingested_at is not None and ingest.log_end.ingested_at <= micros(until - EPOCH)


def test_a_topic_that_was_made_again_says_nothing_of_clocks(stage: Stage, server: LakeServer) -> None:
    """The log's newest record is of the topic of before."""
    stage.create(partitions=1)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    watched(server, ingest)
    watch = server._watches[stage.topic.name]
    watch._clock = lambda: datetime.now(UTC) + HOUR

    for _ in range(2):
        watch.look(ingest.log_end, {0: 0}, dict, ingest.offsets_since)

    assert watch.warnings == ()


def test_a_slow_answer_and_a_backlog_are_no_jump(stage: Stage, server: LakeServer) -> None:
    """Records may be read long after they came."""
    stage.create(partitions=1)
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    watched(server, ingest)
    ingest.stop()
    stage.orders("b", "c")
    broker = ingest.broker_ends()
    watch = server._watches[stage.topic.name]
    watch._clock = lambda: datetime.now(UTC) + HOUR  # an hour later
    watch.look(ingest.log_end, broker, dict, ingest.offsets_since)
    later = stage.caught_up(stage.ingest())
    watch.look(later.log_end, later.broker_ends(), dict, later.offsets_since)

    assert watch.warnings == () and later.log_end.batch == 2
