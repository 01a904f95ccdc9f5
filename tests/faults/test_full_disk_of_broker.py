"""The broker's disk gets full: it ends, says why, and comes back with room and all it acknowledged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.faults.disk import Disk, small_disk
from tests.faults.twinlake import Twinlake
from twinlake.base.waiting import wait_for
from twinlake.services.supervise import record

TOPIC = "orders"


@pytest.fixture
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Twinlake:
    return Twinlake(tmp_path_factory.mktemp("twinlake"))


@pytest.fixture
def disk(twinlake: Twinlake) -> Iterator[Disk]:
    with small_disk(twinlake.folders.of("kafka"), 64) as made:
        try:
            twinlake("up", "--only", "broker,registry")
            yield made
        finally:
            twinlake("down")


def produce(bootstrap: str, first: int, count: int) -> set[tuple[int, int, bytes]]:
    """(partition, offset, value) of every record that the broker has acknowledged."""
    acknowledged = set()

    def told(error: object, message: object) -> None:
        if error is None:
            acknowledged.add((message.partition(), message.offset(), message.value()))

    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 8000, "log_level": 0}
    )
    for number in range(first, first + count):
        producer.produce(TOPIC, value=b"%d " % number + bytes(2000), on_delivery=told)
        producer.poll(0)
    producer.flush(20)
    return acknowledged


def held(bootstrap: str) -> set[tuple[int, int, bytes]]:
    """Every record that the broker gives."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "log_level": 0})
    parts = sorted(consumer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions)
    ends = {
        part: consumer.get_watermark_offsets(TopicPartition(TOPIC, part), timeout=10)[1] for part in parts
    }
    consumer.assign([TopicPartition(TOPIC, part, 0) for part in parts])
    found: set[tuple[int, int, bytes]] = set()

    def all_read() -> bool | None:
        found.update((m.partition(), m.offset(), m.value()) for m in consumer.consume(500, timeout=1))
        return True if len(found) == sum(ends.values()) else None

    wait_for("every record", all_read, 60, every_s=0)
    consumer.close()
    return found


def test_a_broker_without_room_says_so_and_comes_back_with_what_it_acknowledged(
    twinlake: Twinlake, disk: Disk
) -> None:
    bootstrap = twinlake.settings.services().bootstrap_servers
    before = produce(bootstrap, 0, 500)

    disk.fill(leave=200_000)
    meanwhile = produce(bootstrap, 500, 500)
    broken = wait_for("the broker to end", lambda: _broken(twinlake), 60)
    disk.give_room()
    wait_for("the broker again", lambda: _ready(twinlake), 120)
    after = produce(bootstrap, 1000, 500)

    assert broken["what"] == f"the disk of {disk.folder} is full"
    assert "bytes are free" in broken["why"]
    assert len(before) == 500 == len(after) and len(meanwhile) < 500
    assert before | meanwhile | after <= held(bootstrap)


def _broken(twinlake: Twinlake) -> dict[str, str] | None:
    return record.load(twinlake.folders, "broker").error


def _ready(twinlake: Twinlake) -> bool | None:
    return True if record.load(twinlake.folders, "broker").state == "ready" else None
