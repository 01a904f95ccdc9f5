"""The disk of everything: from its alarm over a full one to all well, by nothing but room."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from confluent_kafka import Message, Producer
from deltalake import DeltaTable

from tests.alarms.platform import Platform, copy_of_ours, running
from tests.alarms.test_receivers import Hook, listening
from tests.faults.disk import Disk, small_disk
from tests.ingest.stage import frame, order
from twinlake.services.supervise import record
from twinlake.topics.registry import Registry
from twinlake.topics.topic import load_topic

pytestmark = [pytest.mark.faults, pytest.mark.services]
TOPIC = "orders"
DISK_MB = 2_000
FREE_AT_ALARM = 700_000_000
"""Less than the gibibyte below which every disk is an alarm, and enough to work on."""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Hook]:
    yield from listening()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    """That of a whole data directory."""
    with small_disk(tmp_path_factory.mktemp("full") / "home", DISK_MB) as made:
        yield made


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, receiver: Hook, disk: Disk) -> Iterator[Platform]:
    project = copy_of_ours(tmp_path_factory.mktemp("of_full") / "project")
    settings = f'[alarms]\nwebhook_url = "{receiver.url}"\n[limits]\nstart_seconds = 400\n'
    with running(Platform(disk.folder, project, receiver), settings) as made:
        yield made


def test_from_the_alarm_over_a_full_disk_to_all_well_without_a_restart_by_hand(
    platform: Platform, disk: Disk
) -> None:
    schema_id = max(Registry(platform.settings.services().registry()).schemas(f"{TOPIC}-value"))
    acknowledged = send(platform, schema_id, range(500))
    platform.until("all to be read", lambda: read(platform) >= acknowledged)
    supervisor = process(platform, "supervisor")

    disk.fill(leave=FREE_AT_ALARM)
    raised = platform.until_heard("raised", "disk")
    acknowledged |= send(platform, schema_id, range(500, 1000))
    platform.until("what came with little room to be read", lambda: read(platform) >= acknowledged)
    well_until_full = platform.run("status")

    disk.fill()
    meanwhile = send(platform, schema_id, range(1000, 6000))
    platform.until("status to say it", lambda: "disk: the disk of" in platform.run("status").stdout)
    full = platform.run("status")
    shown = platform.run("status", "--disk")

    disk.give_room()
    platform.until("all to be well", lambda: platform.run("status").returncode == 0)
    acknowledged |= meanwhile | send(platform, schema_id, range(6000, 6100))
    platform.until("all to be read", lambda: read(platform) >= acknowledged)
    platform.until_heard("over", "disk")
    platform.until("every alarm to be over", lambda: unended(platform) == set())

    assert "`twinlake retire`" in raised["remedy"] and "bytes are free" in raised["why"]
    assert well_until_full.returncode == 0, well_until_full.stdout
    assert full.returncode != 0 and "make room there; what runs by itself goes on then" in full.stdout
    assert shown.returncode == 0, "a full disk can be looked at"
    assert len(acknowledged - meanwhile) == 1100
    assert process(platform, "supervisor") == supervisor, "nobody has started anything"
    assert len(keys(platform)) == len(read(platform)), "no record is there twice"
    for table in ("orders", "latest_order", "sales_per_region"):
        platform("verify", table)


def process(platform: Platform, service: str) -> psutil.Process:
    identity = record.load(platform.folders, service).identity
    assert identity is not None
    return psutil.Process(identity.pid)


def keys(platform: Platform) -> list[bytes]:
    """Of all records in the log; each has its own."""
    log = DeltaTable(str(platform.settings.lake / "logs" / TOPIC))  # type: ignore[operator]
    return [bytes(one) for one in log.to_pyarrow_table(columns=["key"])["key"].to_pylist()]


def read(platform: Platform) -> set[bytes]:
    return set(keys(platform))


def unended(platform: Platform) -> set[str]:
    """What was raised and is not over; that the broker was started often stays true for ten minutes."""
    by_event = {event: set[str]() for event in ("raised", "over")}
    for _, body in platform.receiver.sent:
        if body["event"] in by_event and body["kind"] != "restarts":
            by_event[body["event"]].add(f"{body['kind']} {body['title']}")
    return by_event["raised"] - by_event["over"]


def send(platform: Platform, schema_id: int, numbers: range) -> set[bytes]:
    """Valid orders; the keys of those that the broker has acknowledged."""
    schema = dict(load_topic(TOPIC, *platform.settings.sources).newest.avro)
    acknowledged: set[bytes] = set()
    servers = platform.settings.services().kafka("ingest").bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "message.timeout.ms": 8_000, "log_level": 0})

    def answered(error: object, message: Message) -> None:
        if error is None:
            acknowledged.add(bytes(message.key() or b""))

    for number in numbers:
        key = f"c{number}"
        made = frame(schema_id, schema, order(f"e{number}", customer=key))
        producer.produce(TOPIC, made, key.encode(), on_delivery=answered)
        producer.poll(0)
    producer.flush(20)
    return acknowledged
