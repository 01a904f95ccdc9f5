"""Every record once, whatever happens to checkpoints, brokers and topics; and no guessing."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.ingest.stage import Stage, order
from twinlake.base.errors import UsageError
from twinlake.base.job import Run
from twinlake.lake.catalog.paused import Pauses
from twinlake.server.batch_jobs import do_accept
from twinlake.server.job_models import AcceptParams

pytestmark = pytest.mark.usefixtures("way")


def damage(checkpoint: Path) -> None:
    for file in checkpoint.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\0broken\n{")


def test_a_deleted_restored_or_damaged_checkpoint_changes_nothing(stage: Stage, tmp_path: Path) -> None:
    stage.create()
    checkpoint = stage.settings.lake / "checkpoints" / stage.topic.name
    stage.orders(*map(str, range(10)))
    stage.run()
    shutil.copytree(checkpoint, tmp_path / "old")
    stage.orders(*map(str, range(10, 20)), partition=1)
    stage.run()
    shutil.rmtree(checkpoint)
    stage.orders("20")
    stage.run()
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "old", checkpoint)
    stage.orders("21")
    stage.run()
    damage(checkpoint)
    stage.orders("22")

    log = stage.run()

    expected = [(0, 0, n, "valid", ()) for n in range(13)] + [(0, 1, n, "valid", ()) for n in range(10)]
    assert stage.verdicts(log) == expected
    assert {row.batch for row in log.all(0, 99).select("batch").collect()} == {1, 2, 3, 4, 5}


def test_a_micro_batch_that_spark_plays_again_adds_only_what_is_new(stage: Stage) -> None:
    stage.create()
    stage.orders("a", "b")
    ingest = stage.caught_up(stage.ingest())
    ingest.stop()
    stage.orders("c")
    reader = stage.spark.read.format("kafka").option("kafka.bootstrap.servers", stage.broker.bootstrap)
    again = reader.option("subscribe", stage.topic.name).option("includeHeaders", "true").load()

    ingest._commit(again, {})
    ingest._commit(again, {})

    assert [row[2:4] for row in stage.verdicts(ingest.log)] == [(0, "valid"), (1, "valid"), (2, "valid")]
    assert ingest.log.end() == 2


def test_a_recreated_topic_stops_until_it_is_accepted_as_the_next_epoch(stage: Stage) -> None:
    stage.create()
    stage.orders("a", "b")
    stage.run()
    for event_ids in (["c"], ["d", "e", "f", "g"]):  # fewer records than the log has read, then more
        stage.recreate()
        stage.orders(*event_ids)

        refused = stage.stopped()

        remedy = f"twinlake topic accept {stage.topic.name}"
        assert refused.error is not None and remedy in refused.error.remedy
        stage.accept()
        stage.run()

    log = stage.run()
    assert [row[:3] for row in stage.verdicts(log)] == [
        (0, 0, 0), (0, 0, 1), (1, 0, 0), (2, 0, 0), (2, 0, 1), (2, 0, 2), (2, 0, 3),
    ]  # fmt: skip
    assert sorted(log.metadata()["topics"]) == ["0", "1", "2"]


def test_a_healthy_topic_goes_on_while_an_acceptance_is_refused(stage: Stage) -> None:
    stage.create()
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    lake: Any = SimpleNamespace(
        settings=stage.settings, ingests={stage.topic.name: ingest}, logs={stage.topic.name: ingest.log},
        ingest_lock=threading.Lock(), pauses=Pauses(stage.settings.lake),
    )  # fmt: skip
    ran = ingest._thread

    with pytest.raises(UsageError, match="nothing to accept"):
        do_accept(lake, AcceptParams(topic=stage.topic.name), Run(id="job"))

    assert (ingest.state, ingest._thread) == ("running", ran)
    stage.recreate()
    stage.until(lambda: ingest.state == "stopped", ingest)
    assert do_accept(lake, AcceptParams(topic=stage.topic.name), Run(id="job")).epoch == 1
    stage.orders("b")
    stage.caught_up(ingest)
    assert [row[:3] for row in stage.verdicts(ingest.log)] == [(0, 0, 0), (1, 0, 0)]


def test_a_topic_recreated_while_it_is_read_stops(stage: Stage) -> None:
    stage.create()
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    stage.recreate()
    stage.orders("b", "c", "d")

    stage.until(lambda: ingest.state == "stopped", ingest)

    assert ingest.log.metadata()["records"] == 1


def test_records_that_retention_took_before_they_were_read_stop_the_topic(stage: Stage) -> None:
    stage.create()
    stage.orders("a")
    stage.run()
    stage.orders("b", "c", "d")
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap})
    for future in admin.delete_records([TopicPartition(stage.topic.name, 0, 3)]).values():
        future.result()

    refused = stage.stopped()

    assert refused.error is not None and "partition 0 offsets 1 to 2" in refused.error.what
    assert stage.accept().lost == {0: (1, 3)}
    assert [row[2] for row in stage.verdicts(stage.run())] == [0, 3]


@pytest.mark.faults
def test_a_partition_that_was_restored_to_before_costs_the_others_no_record(
    stage: Stage, tmp_path: Path
) -> None:
    stage.create()
    stage.orders("a", "b")
    stage.orders("c", partition=1)
    stage.run()
    files = stage.broker.folder / "data" / f"{stage.topic.name}-0"
    stage.broker.kill()
    shutil.copytree(files, tmp_path / "older")
    stage.broker.start()
    stage.orders("d")
    stage.run()
    stage.orders("e", partition=1)
    stage.broker.kill()
    shutil.rmtree(files)
    shutil.copytree(tmp_path / "older", files)
    stage.broker.start()

    refused = stage.stopped()
    accepted = stage.accept()
    stage.orders("f")
    log = stage.run()

    assert refused.error is not None and "partition 0: log 3, broker 2" in refused.error.what
    assert (accepted.change, accepted.lost) == ("behind", {})
    ids = log.rows(0, log.end()).select("_epoch", "_partition", "_offset", "event_id").collect()
    assert sorted(map(tuple, ids)) == [
        (0, 0, 0, "a"), (0, 0, 1, "b"), (0, 0, 2, "d"), (0, 1, 0, "c"), (1, 0, 2, "f"), (1, 1, 1, "e"),
    ]  # fmt: skip


def test_a_topic_with_producer_time_is_refused(stage: Stage) -> None:
    stage.create(config={"message.timestamp.type": "CreateTime"})

    refused = stage.stopped()

    assert refused.error is not None and "LogAppendTime" in refused.error.remedy


def test_only_committed_records_are_read_and_a_new_partition_from_its_start(stage: Stage) -> None:
    stage.create(partitions=1)
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap, "transactional.id": stage.topic.name})
    producer.init_transactions(30)
    for event_id, ends in (("no", producer.abort_transaction), ("yes", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(stage.topic.name, stage.framed(order(event_id)), b"k", partition=0)
        producer.flush()
        ends(30)
    ingest = stage.ingest()
    stage.until(lambda: ingest.log_end.counts["valid"] == 1, ingest)
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap})
    for future in admin.create_partitions([NewPartitions(stage.topic.name, 2)]).values():
        future.result()
    stage.until(lambda: len(stage.kafka.topic(stage.topic.name).partitions) == 2, ingest)  # type: ignore[union-attr]
    stage.orders("more", partition=1)

    stage.until(lambda: ingest.log_end.counts["valid"] == 2, ingest)

    ingest.stop()
    assert sorted(row.event_id for row in ingest.log.rows(0, 9).collect()) == ["more", "yes"]


@pytest.mark.faults
def test_a_killed_broker_costs_time_and_no_record(stage: Stage) -> None:
    stage.create()
    stage.orders("a")
    ingest = stage.caught_up(stage.ingest())
    stage.broker.kill()
    stage.broker.start()
    stage.orders("b")

    stage.until(lambda: ingest.log_end.counts["valid"] == 2, ingest)

    ingest.stop()
    assert [row[2:4] for row in stage.verdicts(ingest.log)] == [(0, "valid"), (1, "valid")]
