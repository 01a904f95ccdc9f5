"""Offsets without records (a marker, aborted records) that are gone were read, and are not lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.ingest.stage import Stage, order
from twinlake.base.waiting import wait_for


class Transactions:
    """A transactional producer of orders into partition 0, and what retention does to them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        servers = {"bootstrap.servers": stage.broker.bootstrap}
        self._producer = Producer({**servers, "transactional.id": stage.topic.name, "log_level": 0})
        self._producer.init_transactions(30)
        self._admin = AdminClient({**servers, "log_level": 0})

    def send(self, *event_ids: str, abort: bool = False) -> None:
        """One transaction: a record an id, and the marker at its end, which the broker writes on its own."""
        stage = self._stage
        after = self._end() + len(event_ids) + 1
        self._producer.begin_transaction()
        for event_id in event_ids:
            value = stage.framed(order(event_id))
            self._producer.produce(stage.topic.name, value, b"k", partition=0)
        self._producer.flush()
        (self._producer.abort_transaction if abort else self._producer.commit_transaction)(30)
        wait_for("the marker", lambda: True if self._end() == after else None, 30, every_s=0.01)

    def _end(self) -> int:
        return self._stage.kafka.ends(self._stage.topic.name, [0])[0]

    def retention_takes_everything(self) -> int:
        """Deletes all that is in partition 0; the offset that it begins with then."""
        name, end = self._stage.topic.name, self._end()
        for future in self._admin.delete_records([TopicPartition(name, 0, end)]).values():
            future.result()
        assert self._stage.kafka.begins(name, [0]) == {0: end}
        return end


@pytest.fixture
def transactions(stage: Stage) -> Iterator[Transactions]:
    stage.create(partitions=1)
    yield Transactions(stage)


def test_a_marker_at_the_end_that_retention_took_does_not_stop_the_topic(
    stage: Stage, transactions: Transactions
) -> None:
    transactions.send("a", "b")
    stage.run()
    assert transactions.retention_takes_everything() == 3
    transactions.send("c")

    log = stage.run()

    assert [row[2:4] for row in stage.verdicts(log)] == [(0, "valid"), (1, "valid"), (3, "valid")]
    assert log.metadata()["ends"] == {"0": {"0": 5}}


def test_aborted_records_that_were_read_and_that_retention_took_do_not_stop_the_topic(
    stage: Stage, transactions: Transactions
) -> None:
    transactions.send("a")
    stage.run()
    transactions.send("no", "nor this", abort=True)
    log = stage.run()
    assert (log.end(), log.metadata()["records"], log.all(1, 2).count()) == (2, 0, 0)
    assert transactions.retention_takes_everything() == 5
    stage.run()
    transactions.send("b")

    log = stage.run()

    assert [row[2:4] for row in stage.verdicts(log)] == [(0, "valid"), (5, "valid")]
    assert stage.batches[-1] == log.end() == 3


def test_committed_records_that_retention_took_unread_stop_the_topic(
    stage: Stage, transactions: Transactions
) -> None:
    transactions.send("a")
    stage.run()
    transactions.send("lost")
    transactions.retention_takes_everything()

    refused = stage.stopped()

    assert refused.error is not None and "partition 0 offsets 2 to 3" in refused.error.what


def test_a_partition_that_had_lost_its_first_records_before_the_first_start_does_not_stop_the_topic(
    stage: Stage, transactions: Transactions
) -> None:
    transactions.send("before")
    transactions.retention_takes_everything()
    first = stage.run()
    assert first.metadata().get("ends") == {"0": {"0": 2}}
    transactions.send("a")

    log = stage.run()

    assert [row[2:4] for row in stage.verdicts(log)] == [(2, "valid")]
