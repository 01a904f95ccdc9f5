"""Rows that never change go to topics as events, each once and in the log's order: on real Spark, Delta and
Kafka."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from tests.broker import Broker
from tests.changelog.reader import Event, Reader
from tests.registry import FakeRegistry
from tests.releases.lake import order
from tests.releases.table_stage import DEFINED as SOME
from tests.releases.table_stage import SALES, TableStage
from twinlake.base.errors import (
    DifferenceError,
    LostHistoryError,
    TwinlakeError,
    UnreachableError,
    UsageError,
)
from twinlake.base.waiting import wait_for
from twinlake.changelog import new_rows
from twinlake.changelog.destination import Destination
from twinlake.changelog.event_form import EventOptions
from twinlake.changelog.new_rows import BY_BATCHES
from twinlake.changelog.position import Position
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.store import Store
from twinlake.lake.log.log import Log
from twinlake.topics.kafka import Kafka

PAID, KEPT = "paid", "kept"
COLUMNS = {
    "order_id": "order_id", "customer": "customer", "route": "nullif(region, 'none')",
    "amount": "amount", "ordered_at": "ordered_at", "other": "nullif(customer, 'c1')",
}  # fmt: skip
NOT_CANCELLED = Events(name=PAID, inputs=("orders",), where="status <> 'cancelled'", columns=COLUMNS)
STORED = replace(NOT_CANCELLED, name=KEPT, store=Store(keys=("customer",), on="ordered_at", cell="1 hour"))
DEFINED: dict[str, Kind] = {**SOME, PAID: NOT_CANCELLED, KEPT: STORED}
CHANGED: dict[str, Kind] = {**DEFINED, PAID: replace(NOT_CANCELLED, where="status = 'cancelled'")}
TYPES = {
    "order_id": "bigint", "customer": "string", "route": "string", "amount": "decimal(12,2)",
    "ordered_at": "timestamp", "other": "string",
}  # fmt: skip
TOPICS = (f"events_{number}" for number in itertools.count(1))


class Stage(TableStage):
    """A lake whose server sends events, and what has been appended to it."""

    def __init__(self, spark: SparkSession, home: Path, broker: Broker, registry: FakeRegistry) -> None:
        self.broker, self.registry = broker, registry
        self.orders: list[tuple[int, dict[str, Any]]] = []
        self.batch = 0
        super().__init__(
            spark, home, "changelogs", {PAID: TYPES, KEPT: TYPES},
            bootstrap_servers=broker.bootstrap, registry_url=registry.url,
        )  # fmt: skip
        self.lake.promote(self.lake.build(DEFINED))

    @property
    def log(self) -> Log:
        return self.lake.server.lake.logs["orders"]

    def append(self, *numbers: int, **changed: Any) -> list[int]:
        """A batch of these orders; the offsets of those that are not cancelled."""
        offset = len(self.orders)
        orders = [order(number, **changed) for number in numbers]
        self.orders += enumerate(orders, offset)
        self.batch = self.lake.append(orders)
        return [offset + n for n, one in enumerate(orders) if one["status"] != "cancelled"]

    def send(self, topic: str, **asked: Any) -> Reader:
        self.lake.do("changelog", table=PAID, topic=topic, **asked)
        return self.reader(topic)

    def reader(self, topic: str, positions: str = "") -> Reader:
        return Reader(self.broker.login, self.registry.url, topic)

    def until_sent(self) -> dict[str, Any]:
        """How the changelog is once it has sent all batches, in the live release."""
        return self.until_at(PAID, self.batch)

    def stop(self) -> None:
        self.lake.do("changelog", table=PAID, stop=True)

    def paid(self, after: int = 0) -> list[int]:
        """The offsets from this one on of all that are not cancelled."""
        return [at for at, one in self.orders[after:] if one["status"] != "cancelled"]


def offsets(events: list[Event]) -> list[int]:
    """Of a topic of one partition."""
    return [one.id[2] for one in events]


@pytest.fixture(scope="module")
def stage(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, broker: Broker, registry: FakeRegistry
) -> Iterator[Stage]:
    found = Stage(spark, tmp_path_factory.mktemp("events"), broker, registry)
    found.append(*range(20))
    found.append(*range(20, 40))
    yield found
    found.close()


@pytest.fixture
def topic() -> str:
    return next(TOPICS)


@pytest.fixture(autouse=True)
def _stopped(stage: Stage) -> Iterator[None]:
    """No changelog is on when the next test begins."""
    yield
    stage.end_all("changelog")


def test_from_the_beginning_every_row_goes_out_once_in_order_with_its_record_id(
    stage: Stage, topic: str
) -> None:
    reader = stage.send(topic, **{"from": "beginning"})
    sent = stage.until_sent()
    stage.append(*range(40, 60))
    stage.until_sent()

    events = reader.events()
    assert (sent["way"], sent["sends"], sent["topics"]) == (BY_BATCHES, "events", [topic])
    assert offsets(events) == stage.paid()
    assert {one.partition for one in events} == {0} and {one.key for one in events} == {None}
    first = events[0]
    assert first.headers == {
        "release": "1", "topic": "orders", "epoch": "0", "partition": "0", "offset": "1"
    }  # fmt: skip
    made = order(1)
    assert first.value == {
        "order_id": 1, "customer": "c1", "route": "r1", "amount": made["amount"],
        "ordered_at": made["ordered_at"], "other": None,
    }  # fmt: skip
    assert next(one["pin"]["position"]["orders"] for one in reader.positions()) == 0


@pytest.mark.faults
def test_from_now_on_nothing_of_before_goes_out_and_a_restart_goes_on(stage: Stage, topic: str) -> None:
    reader = stage.send(topic)
    before = len(stage.orders)
    stage.append(100, 101)
    stage.until_sent()
    stage.restart()
    stage.append(102, 103)
    stage.until_sent()

    assert offsets(reader.events()) == stage.paid(before)


@pytest.mark.faults
def test_rows_that_are_kept_for_joins_go_out_once_each_too(stage: Stage, topic: str) -> None:
    stage.lake.do("changelog", table=KEPT, topic=topic, **{"from": "beginning"})
    stage.append(104)
    stage.until_at(KEPT, stage.batch)

    assert offsets(stage.reader(topic).events()) == stage.paid()


@pytest.mark.faults
def test_what_came_while_it_was_off_goes_out_whatever_is_said_of_from(stage: Stage, topic: str) -> None:
    reader = stage.send(topic)
    before = len(stage.orders)
    stage.append(111)
    stage.until_sent()
    stage.stop()
    stage.append(112, 113)

    for begin in ("beginning", "now"):
        stage.send(topic, **{"from": begin})
    stage.until_sent()

    assert offsets(reader.events()) == stage.paid(before)


@pytest.mark.faults
def test_the_beginning_can_be_asked_for_as_long_as_nothing_was_sent(stage: Stage, topic: str) -> None:
    stage.send(topic)
    stage.until_sent()
    stage.stop()

    reader = stage.send(topic, **{"from": "beginning"})
    stage.until_sent()

    assert offsets(reader.events()) == stage.paid()


@pytest.mark.faults
def test_an_event_is_json_with_all_its_columns_and_a_key_has_one_partition(stage: Stage, topic: str) -> None:
    reader = stage.send(topic, format="json", key=["customer"], headers="none")
    before = len(stage.orders)
    stage.append(*range(121, 140), ordered_at=order(7)["ordered_at"])
    stage.append(141)
    stage.until_sent()

    events = reader.events(is_json=True)
    asked = [one for _, one in stage.orders[before:] if one["status"] != "cancelled"]
    assert {one.value["order_id"] for one in events} == {one["order_id"] for one in asked}
    assert len(events) == len(asked) and all(one.headers == {} for one in events)
    assert len(Kafka(stage.broker.login).topic(topic).partitions) == 4  # type: ignore[union-attr]
    by_key: dict[str, set[int]] = {}
    for one in events:
        by_key.setdefault(json.dumps(one.key), set()).add(one.partition)
    assert set(by_key) == {json.dumps({"customer": one["customer"]}) for one in asked}
    assert all(len(partitions) == 1 for partitions in by_key.values())
    mine = [one.value["order_id"] for one in events if one.key == {"customer": "c1"}]
    assert mine == [121, 131, 141]
    (last,) = (one.value for one in events if one.value["order_id"] == 141)
    assert last == {
        "order_id": 141, "customer": "c1", "route": "r1", "amount": 1.41,
        "ordered_at": order(141)["ordered_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "other": None,
    }  # fmt: skip


@pytest.mark.faults
def test_a_key_is_avro_and_may_leave_the_partition_to_the_source(stage: Stage, topic: str) -> None:
    reader = stage.send(topic, key=["customer", "order_id"], partition_by="source")
    stage.append(151)
    stage.until_sent()

    (event,) = reader.events()
    assert (event.key, event.partition) == ({"customer": "c1", "order_id": 151}, 0)


def test_events_go_where_a_column_says_in_one_transaction(stage: Stage, topic: str) -> None:
    topics = [f"{topic}.{name}" for name in ("a", "b", "other")]
    stage.lake.do(
        "changelog", table=PAID, topic_from="route", topics=topics[:2], other_topic=topics[2],
        position_topic=f"{topic}.at",
    )  # fmt: skip
    sent: dict[str, list[int]] = {name: [] for name in topics}
    for number, route in enumerate(
        [topics[0], topics[1], "nowhere", topics[0], "none", topics[2], topics[1]]
    ):
        sent[route if route in topics else topics[2]] += stage.append(1001 + number, region=route)
    shown = stage.until_sent()

    assert shown["topics"] == topics and shown["topic"] == ", ".join(topics)
    assert {name: offsets(stage.reader(name).events()) for name in topics} == sent


@pytest.mark.faults
def test_a_topic_that_is_not_allowed_stops_it_and_loses_nothing(stage: Stage, topic: str) -> None:
    asked = {"table": PAID, "topic_from": "route", "position_topic": f"{topic}.at"}
    stage.lake.do("changelog", **asked, topics=[topic])
    first = stage.append(1101, region=topic)
    stage.until_sent()
    second = stage.append(1102, region=topic)
    third = stage.append(1103, region="\x1b[31mworse")

    error = stage.until_error(PAID, UsageError)
    assert error["what"] == "route of paid is '\\x1b[31mworse', which is no topic that may be sent to" or (
        "\x1b" not in error["what"] and "worse" in error["what"]
    )
    assert f"offset {third[0]} of orders" in error["why"] and topic in error["why"]
    assert "--other-topic" in error["remedy"]
    stage.stop()
    stage.lake.do("changelog", **asked, topics=[topic], other_topic=f"{topic}.rest")
    stage.until_sent()

    assert offsets(stage.reader(topic).events()) == [*first, *second]
    assert offsets(stage.reader(f"{topic}.rest").events()) == third


def test_a_release_with_other_logic_goes_on_where_the_one_before_was_and_so_does_a_rollback(
    stage: Stage, topic: str
) -> None:
    reader = stage.send(topic)
    expected = stage.append(*range(1, 31))
    release = stage.until_sent()["release"]
    stage.lake.promote(stage.lake.build(CHANGED))
    stage.until_sent()
    before = len(stage.orders)
    stage.append(*range(1, 31))
    cancelled = [at for at, one in stage.orders[before:] if one["status"] == "cancelled"]
    swapped = stage.until_sent()
    stage.lake.do("rollback", approved_by="tester")
    stage.until_sent()
    last = stage.append(*range(1, 31))
    stage.until_sent()

    events = reader.events()
    assert offsets(events) == [*expected, *cancelled, *last] and len(cancelled) == 3
    assert {one.headers["release"] for one in events if one.id[2] in cancelled} == {str(swapped["release"])}
    assert swapped["release"] == release + 1


@pytest.mark.faults
def test_all_of_history_is_sent_again_when_that_is_asked_for(
    stage: Stage, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_rows, "MOST_RECORDS", 20)
    reader = stage.send(topic, **{"from": "beginning"})
    stage.until_sent()
    once = stage.paid()

    stage.lake.do("changelog", table=PAID, resend=True)
    wait_for("all again", lambda: len(reader.events()) >= 2 * len(once) or None, 60)
    stage.until_sent()
    stage.restart()
    more = stage.append(161)
    stage.until_sent()

    assert offsets(reader.events()) == [*once, *once, *more]
    positions = reader.positions()
    assert {one["events"]["resends"] for one in positions} == {0, 1}
    at = [(one["events"]["resends"], one["pin"]["position"]["orders"]) for one in positions]
    assert at == sorted(at) and len(at) > 4


@pytest.mark.faults
def test_a_topic_that_was_made_again_is_not_filled_again_unless_that_is_asked_for(
    stage: Stage, topic: str
) -> None:
    stage.send(topic)
    stage.append(171)
    stage.until_sent()
    kafka: Any = Kafka(stage.broker.login)
    (gone,) = kafka._admin.delete_topics([topic]).values()
    gone.result()
    wait_for("the topic to go", lambda: kafka.topic(topic) is None or None, 30)
    stage.append(172)

    assert stage.until_error(PAID, DifferenceError)["what"] == f"topic {topic!r} is another one now"
    assert "--resend" in stage.status(PAID)["error"]["remedy"]
    stage.lake.do("changelog", table=PAID, resend=True)
    stage.until_sent()

    assert offsets(stage.reader(topic).events()) == stage.paid()


@pytest.mark.faults
def test_a_position_that_was_lost_is_not_made_up(stage: Stage, topic: str) -> None:
    stage.send(topic)
    stage.append(181)
    stage.until_sent()
    stage.lake.do("pause", name=PAID, kind="changelog", by="anna")
    kafka: Any = Kafka(stage.broker.login)
    (gone,) = kafka._admin.delete_topics([f"{topic}.position"]).values()
    gone.result()
    wait_for("the topic to go", lambda: kafka.topic(f"{topic}.position") is None or None, 30)
    stage.append(182)
    stage.lake.do("resume", name=PAID, kind="changelog", by="anna")

    assert stage.until_error(PAID, UsageError)["what"] == "the position of the events of paid is gone"
    assert len(stage.reader(topic).events()) == 1


def altered(stage: Stage, topic: str, **changed: Any) -> None:
    """Somebody else's position, as the newest one; the changelog is stopped, and started again."""
    stage.stop()
    said = stage.reader(topic).positions()[-1]
    said["events"] |= changed.pop("events", {})
    position = Position.from_bytes(json.dumps({**said, **changed}).encode())
    target = EventOptions(topics=(topic,), positions=f"{topic}.position").target
    other = Destination(stage.broker.login, target, PAID, said["lake"])
    other.open()
    other.send([], {}, position)
    other.close()
    stage.send(topic)


@pytest.mark.faults
def test_a_log_that_was_restored_and_has_read_on_is_not_taken_for_the_one_of_before(
    stage: Stage, topic: str
) -> None:
    stage.send(topic)
    stage.append(191)
    stage.until_sent()

    altered(stage, topic, events={"newest": [stage.batch, 1]})

    error = stage.until_error(PAID, DifferenceError)
    assert "is not the one that the events of paid were sent from" in error["what"]
    assert "--resend" in error["remedy"]


@pytest.mark.faults
def test_what_retention_deleted_before_it_was_sent_is_named(
    stage: Stage, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.send(topic)
    stage.append(201)
    stage.until_sent()
    stage.stop()
    stage.append(202)
    at, _ = stage.log.started()
    start = type("Start", (), {"batch": stage.batch})()
    monkeypatch.setattr(Log, "started", lambda self: (at, start))

    stage.send(topic)

    error = stage.until_error(PAID, LostHistoryError)
    assert error["what"] == "events of paid are gone that were not sent"
    assert f"up to batch {stage.batch} of orders" in error["why"]


@pytest.mark.faults
def test_of_two_senders_only_the_later_can_commit(stage: Stage, topic: str) -> None:
    reader = stage.send(topic)
    stage.append(211)
    stage.until_sent()
    stage.stop()
    said = Position.from_bytes(json.dumps(reader.positions()[-1]).encode())
    target = EventOptions(topics=(topic,), positions=f"{topic}.position").target
    first, second = (Destination(stage.broker.login, target, PAID, said.lake) for _ in range(2))
    first.open()
    assert second.open() == said

    with pytest.raises(UnreachableError, match="was not sent"):
        first.send([], {}, replace(said, release=98))
    second.close()


@pytest.mark.faults
def test_partitions_may_be_added_where_events_keep_those_of_their_records_and_not_where_keys_choose(
    stage: Stage, topic: str
) -> None:
    keyed = f"{topic}-keyed"
    admin: Any = Kafka(stage.broker.login)._admin
    stage.send(topic)
    stage.append(221)
    stage.until_sent()
    for future in admin.create_partitions([NewPartitions(topic, 3)]).values():
        future.result()
    stage.append(222)
    stage.until_sent()
    stage.stop()
    stage.send(keyed, key=["customer"])
    stage.append(223)
    stage.until_sent()
    for future in admin.create_partitions([NewPartitions(keyed, 7)]).values():
        future.result()
    stage.append(224)

    assert stage.until_error(PAID, DifferenceError)["what"] == f"topic {keyed!r} has 7 partitions"
    assert len(stage.reader(topic).events()) == 2


@pytest.mark.parametrize(
    ("table", "asked", "why"),
    [
        (PAID, {"topic": "orders"}, "tables are made from it"),
        (PAID, {"topic": "a b"}, "not a name of a topic"),
        (PAID, {"topic": "x", "position_topic": "x"}, "is taken"),
        (PAID, {"topic": "packed"}, "has cleanup.policy=compact"),
        (PAID, {"topic": "x", "key": ["nothing"]}, "has no column 'nothing'"),
        ("paied", {"topic": "x"}, "live are: .*; did you mean paid"),
        (PAID, {"topic_from": "nothing", "topics": ["x"]}, "has no column 'nothing'"),
        (PAID, {"topic_from": "amount", "topics": ["x"]}, "column amount of paid is decimal"),
        (SALES, {"topic": "x", "format": "json"}, "has no format"),
        (SALES, {"topic": "x", "from": "beginning"}, "has no from"),
        (SALES, {"topic_from": "region", "topics": ["x"]}, "has no topic_from, topics"),
    ],
)
def test_what_cannot_be_sent_as_events_is_refused_before_anything_is_made(
    stage: Stage, table: str, asked: dict[str, Any], why: str
) -> None:
    kafka = Kafka(stage.broker.login)
    kafka.create("packed", config={"cleanup.policy": "compact"})

    with pytest.raises(TwinlakeError, match=why):
        stage.lake.do("changelog", table=table, **asked)
    assert stage.lake.server.status()["changelogs"] == []
    assert kafka.topic("x") is None


def test_asked_for_twice_it_is_one_and_in_another_way_it_is_refused(stage: Stage, topic: str) -> None:
    stage.send(topic)
    stage.send(topic, **{"from": "beginning"})

    with pytest.raises(UsageError, match="in another way than is asked for now"):
        stage.send(topic, format="json")
    with pytest.raises(UsageError, match="a table has one"):
        stage.send(f"{topic}x")


@pytest.mark.faults
def test_a_table_that_came_to_have_rows_that_change_is_sent_no_more(stage: Stage, topic: str) -> None:
    stage.send(topic)
    stage.append(231)
    stage.until_sent()
    counted = Aggregate(
        name=PAID, inputs=("orders",), keys=tuple(COLUMNS), columns=COLUMNS, measures={"n": Count()}
    )
    stage.lake.promote(stage.lake.build({**DEFINED, PAID: counted}))

    assert stage.until_error(PAID, UsageError)["what"] == "rows of paid change now"
    stage.lake.do("rollback", approved_by="tester")
    stage.append(232)
    stage.until_sent()
    assert len(stage.reader(topic).events()) == 2
