"""A reader of committed records builds the table back, as it was at every position: on real Spark, Delta and
Kafka."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from tests.broker import Broker
from tests.changelog.reader import Reader, table_of
from tests.damages import OF_DATA
from tests.history import latest, sales
from tests.project import PROJECT
from tests.registry import FakeRegistry
from tests.releases.lake import order
from tests.releases.table_stage import DEFINED as SOME
from tests.releases.table_stage import LATEST, PAID, SALES, TableStage
from twinlake.base.errors import (
    BusyError,
    DamagedError,
    DifferenceError,
    NotFoundError,
    TwinlakeError,
    UnreachableError,
    UsageError,
)
from twinlake.base.waiting import wait_for
from twinlake.changelog import changes
from twinlake.changelog.changes import CONTENT
from twinlake.changelog.destination import Destination
from twinlake.changelog.position import Position
from twinlake.changelog.target import Record, changes_to
from twinlake.config.settings import Services, Settings
from twinlake.difference import changed
from twinlake.difference.changed import ALL_KEYS, TOUCHED
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.totals import Sum
from twinlake.lake.delta.table_state import TableState
from twinlake.topics.kafka import Kafka

DEFINED: dict[str, Kind] = {**SOME}
DOUBLES = "doubles"
DEFINED[DOUBLES] = Aggregate(
    name=DOUBLES, inputs=("orders",), keys=("region",), measures={"total": Sum("value")},
    columns={
        "region": "region",
        "value": "CASE order_id WHEN 6000 THEN 1e16D WHEN 6002 THEN -1e16D ELSE 0.1D * order_id END",
    },
)  # fmt: skip
CHANGED = {**DEFINED, SALES: replace(DEFINED[SALES], where="status <> 'cancelled'")}
TOPICS = (f"changes_{number}" for number in itertools.count(1))


@contextmanager
def read_at_once(spark: SparkSession) -> Iterator[None]:
    """All files of a log by one task, which adds up their doubles one after the other: the sizes of the files
    would decide which are added up apart."""
    one_task = {"spark.sql.files.minPartitionNum": "1", "spark.sql.files.openCostInBytes": "0"}
    before = {name: spark.conf.get(name, None) for name in one_task}
    for name, value in one_task.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


class Stage(TableStage):
    """A lake whose server sends changelogs, and what has been appended to it."""

    def __init__(self, spark: SparkSession, home: Path, broker: Broker, registry: FakeRegistry) -> None:
        self.broker, self.registry = broker, registry
        self.batches: list[list[dict[str, Any]]] = []
        super().__init__(
            spark, home, "changelogs", {DOUBLES: {"region": "string", "total": "double"}},
            bootstrap_servers=broker.bootstrap, registry_url=registry.url,
        )  # fmt: skip
        self.lake.promote(self.lake.build(DEFINED))

    def append(self, *numbers: int, **changed: Any) -> None:
        """A batch of these orders; the record id decides as the log's does."""
        offset = sum(map(len, self.batches))
        orders = [order(number, **changed) for number in numbers]
        self.batches.append(
            [{**one, "_epoch": 0, "_partition": 0, "_offset": offset + n} for n, one in enumerate(orders)]
        )
        self.lake.append(orders)

    def send(self, table: str, topic: str) -> Reader:
        self.lake.do("changelog", table=table, topic=topic)
        return Reader(self.broker.login, self.registry.url, topic)

    def until_told(self, table: str) -> dict[str, Any]:
        """How the changelog is once it has told all batches, in the live release."""
        return self.until_at(table, len(self.batches))

    def until_refused(self, table: str, kind: type[TwinlakeError]) -> str:
        """What is wrong with the changelog, once it is an error of this kind."""
        return self.until_error(table, kind)["what"]

    def records(self, to: int | None = None) -> list[dict[str, Any]]:
        return [one for batch in self.batches[:to] for one in batch]

    def view(self, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """What the live version shows now, without what follows the watermark."""
        opened, view = self.opened(table)
        rows = view.select(*opened.definition.timeless).toArrow()
        keys = opened.definition.view_keys
        return {tuple(row[key] for key in keys): row for row in rows.to_pylist()}


@pytest.fixture(scope="module")
def stage(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, broker: Broker, registry: FakeRegistry
) -> Iterator[Stage]:
    patched = pytest.MonkeyPatch()
    patched.setattr(changed, "WHOLE_EVERY_S", 1.0)
    found = Stage(spark, tmp_path_factory.mktemp("changelog"), broker, registry)
    found.append(*range(40))
    yield found
    found.close()
    patched.undo()


@pytest.fixture
def topic() -> str:
    return next(TOPICS)


@pytest.fixture(autouse=True)
def _stopped(stage: Stage) -> Iterator[None]:
    """No changelog is on when the next test begins."""
    yield
    stage.end_all("changelog")


def of_sales(table: dict[tuple[Any, ...], dict[str, Any]]) -> dict[Any, Any]:
    names = ("sales", "orders", "smallest", "largest", "customers")
    return {key: tuple(row[name] for name in names) for key, row in table.items()}


def made_anew(stage: Stage, topic: str, policy: str = "compact") -> None:
    """Somebody deletes the topic and makes another one of its name."""
    kafka: Any = Kafka(stage.broker.login)
    (gone,) = kafka._admin.delete_topics([topic]).values()
    gone.result()
    wait_for("the topic to go", lambda: kafka.topic(topic) is None or None, 30)
    wait_for("the new topic", lambda: kafka.create(topic, config={"cleanup.policy": policy}) or None, 30)


def sent_to_another(stage: Stage, topic: str) -> None:
    """As the error of a topic that cannot go on says."""
    remedy = stage.status(LATEST)["error"]["remedy"]
    assert "to another topic" in remedy or "name another topic" in remedy
    stage.lake.do("changelog", table=LATEST, stop=True)
    reader = stage.send(LATEST, f"{topic}-again")
    stage.until_told(LATEST)
    assert reader.table() == stage.view(LATEST)


def test_at_every_position_the_records_make_what_an_oracle_says(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    assert stage.until_told(SALES)["way"] == CONTENT
    for number in (40, 60, 45):
        stage.append(*range(number, number + 20))
        assert stage.until_told(SALES)["way"] == TOUCHED

    told = [one["pin"]["position"]["orders"] for one in reader.positions()]
    assert told == sorted(set(told)) and told[-1] == len(stage.batches)
    records = reader.records()
    for batch in told:
        table = table_of(one for one in records if one.position["orders"] <= batch)
        assert of_sales(table) == sales(stage.records(batch))
    assert reader.table() == stage.view(SALES)


def test_only_touched_keys_are_sent_and_a_deleted_one_as_a_tombstone(stage: Stage, topic: str) -> None:
    stage.append(1001)
    reader = stage.send(LATEST, topic)
    stage.until_told(LATEST)
    had = len(reader.records())
    assert ("c1",) in reader.table()

    stage.append(2001, status="cancelled")
    assert stage.until_told(LATEST)["records"] == 1

    (gone,) = [one for one in reader.records() if one.position["orders"] == len(stage.batches)]
    assert (gone.key, gone.row, gone.release) == (("c1",), None, stage.status(LATEST)["release"])
    assert len(reader.records()) == had + 1
    expected = {(key,): value for key, value in latest(stage.records()).items() if value[1] != "cancelled"}
    shown = {key: (row["order_id"], row["status"]) for key, row in reader.table().items()}
    assert shown == expected
    assert reader.table() == stage.view(LATEST)


@pytest.mark.faults
def test_the_reader_that_the_docs_show_builds_the_table_back(stage: Stage, tmp_path: Path) -> None:
    (written,) = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/changelog.md").read_text(), re.DOTALL)
    Services(bootstrap_servers=stage.broker.bootstrap, registry_url=stage.registry.url).save(
        Settings(home=tmp_path / ".twinlake").services_file
    )
    reader = stage.send(LATEST, "latest_order_changes")
    stage.append(6001, customer="gone")
    stage.until_told(LATEST)
    stage.append(7001, customer="gone", status="cancelled")
    stage.until_told(LATEST)
    said = tmp_path / "said"

    def shown() -> dict[str, str]:
        lines = re.findall(r"^\d+ rows; {.*?}: (\(.*?\)) is (.*)$", said.read_text(), re.MULTILINE)
        return {key: row for key, row in dict(lines).items() if row != "None"}

    expected = {str(key): str(row) for key, row in reader.table().items()}
    with (
        said.open("w") as out,
        subprocess.Popen(
            [sys.executable, "-u", "-c", written], cwd=tmp_path, stdout=out, stderr=out
        ) as shows,
    ):
        try:
            wait_for("the reader", lambda: shown() == expected or None, 60, remedy=str(said))
        finally:
            shows.kill()

    assert said.read_text().splitlines()[-1].startswith(f"{len(expected)} rows; ")
    assert "('gone',) is None" in said.read_text()


@pytest.mark.faults
def test_a_rebuild_sends_nothing_and_a_restart_goes_on(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    stage.until_told(SALES)
    stage.append(3000)
    stage.until_told(SALES)
    had = len(reader.records())

    assert stage.lake.do("rebuild", table=SALES)["equal"]
    stage.restart()
    stage.append(3001)
    told = stage.until_told(SALES)

    assert (told["way"], told["records"]) == (TOUCHED, 1)
    assert len(reader.records()) == had + 1
    assert reader.table() == stage.view(SALES)


@pytest.mark.faults
def test_a_double_that_a_rebuild_adds_up_in_another_order_is_no_news(stage: Stage, topic: str) -> None:
    reader = stage.send(DOUBLES, topic)
    stage.append(6000, 6001, region="far")  # 1e16 forgets what is added to it, until it is taken off again
    stage.append(6002, 6003, region="far")
    stage.until_told(DOUBLES)
    before = stage.view(DOUBLES)
    assert reader.table() == before

    with read_at_once(stage.spark):
        assert stage.lake.do("rebuild", table=DOUBLES)["equal"]
    stage.append(6005, region="near")
    stage.until_told(DOUBLES)

    after = stage.view(DOUBLES)
    told = reader.table()
    assert told[("far",)] == before[("far",)] != after[("far",)]
    assert abs(told[("far",)]["total"] - after[("far",)]["total"]) < 1e-9 * 2e16
    assert told[("near",)] == after[("near",)]
    stage.append(6006, region="far")
    stage.until_told(DOUBLES)
    assert reader.table()[("far",)] == stage.view(DOUBLES)[("far",)]


@pytest.mark.faults
def test_what_happened_while_it_was_off_is_sent_when_it_is_on_again(stage: Stage, topic: str) -> None:
    reader = stage.send(LATEST, topic)
    stage.until_told(LATEST)
    stage.lake.do("changelog", table=LATEST, stop=True)
    stage.append(*range(4000, 4030), status="cancelled")
    stage.append(*range(4030, 4035))

    stage.send(LATEST, topic)

    assert stage.until_told(LATEST)["way"] == TOUCHED
    assert reader.table() == stage.view(LATEST)


@pytest.mark.faults
def test_a_swap_sends_what_differs_and_a_rollback_takes_it_back(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    stage.until_told(SALES)
    before = reader.table()
    stage.lake.promote(stage.lake.build(CHANGED))

    swapped = stage.until_told(SALES)
    assert swapped["way"] == ALL_KEYS
    kept = [one for one in stage.records() if one["status"] != "cancelled"]
    assert of_sales(reader.table()) == sales(kept)
    assert 0 < swapped["records"] < len(before) + 1

    stage.lake.do("rollback", approved_by="tester")
    stage.until_told(SALES)
    assert reader.table() == before
    assert [one["release"] for one in reader.positions()][-2:] == [
        swapped["release"], swapped["release"] + 1
    ]  # fmt: skip


@pytest.mark.faults
def test_after_a_repair_all_keys_are_compared(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    stage.until_told(SALES)
    feed = stage.lake.server.lake.versions.opened(stage.lake.server.lake.version(SALES))
    with stage.lake.server.lake.versions.batch_lock(feed.version):
        closed = stage.lake.server.lake.versions.close_segment(feed.version)
    before = feed.appender.transaction(feed.batch_writer)
    damaged = feed.rows().where(f"_segment <= {closed.through}").limit(1).drop("_segment").toArrow()
    added = feed.appender.write(damaged, {"_segment": str(closed.through)})
    feed.appender.commit(added, feed.batch_writer, before + 1, {"kind": "damage"}, same=False)
    stage.append(5000)
    assert stage.until_told(SALES)["way"] == ALL_KEYS
    assert reader.table() == stage.view(SALES)

    assert stage.lake.do("rebuild", table=SALES, repair=True)["replaced"]
    stage.append(5001)

    assert stage.until_told(SALES)["way"] == ALL_KEYS
    assert reader.table() == stage.view(SALES)
    assert of_sales(reader.table()) == sales(stage.records())


@pytest.mark.faults
@pytest.mark.parametrize("case", OF_DATA)
def test_a_damaged_file_of_its_table_is_named_and_once_it_is_restored_nothing_was_left_out(
    stage: Stage, topic: str, case: str
) -> None:
    damage, found = OF_DATA[case]
    reader = stage.send(LATEST, topic)
    stage.until_told(LATEST)
    path = stage.lake.server.lake.version(LATEST).path(stage.lake.path)
    state = TableState(path, appends=False)
    file = path / max(state.files.items(), key=lambda one: one[1].bytes)[0]
    whole, told = file.read_bytes(), len(reader.records())

    damage(file)
    stage.append(*range(8000, 8010))
    stage.until_refused(LATEST, DamagedError)
    error = stage.status(LATEST)["error"]
    had = len(reader.records())
    file.write_bytes(whole)
    stage.until_told(LATEST)

    assert (error["file"], error["table"]) == (str(file), LATEST) and found in error["why"], error
    assert had == told and reader.table() == stage.view(LATEST)


@pytest.mark.faults
def test_a_lost_pin_is_made_up_for_from_the_topic(stage: Stage, topic: str) -> None:
    reader = stage.send(LATEST, topic)
    stage.until_told(LATEST)
    stage.lake.do("changelog", table=LATEST, stop=True)
    told = reader.positions()[-1]
    with_other_version = Position(**{**told, "pin": {**told["pin"], "version": "gone-1"}})
    lost = Destination(stage.broker.login, changes_to(topic), LATEST, told["lake"])
    lost.open()
    lost.send([], {"release": "1", "position": "{}"}, with_other_version)
    stage.append(9001, 9002, status="cancelled")  # later than any other order, so that both customers go
    stage.append(9003)

    stage.send(LATEST, topic)

    found = stage.until_told(LATEST)
    assert (found["way"], found["records"]) == (CONTENT, 3)
    assert reader.table() == stage.view(LATEST)


@pytest.mark.faults
def test_a_batch_that_the_lake_was_at_before_it_was_restored_is_told_as_it_is_now(
    stage: Stage, topic: str
) -> None:
    """It has read other records up to that number since, in fewer batches, and nothing else comes."""
    reader = stage.send(LATEST, topic)
    stage.until_told(LATEST)
    stage.lake.do("changelog", table=LATEST, stop=True)
    told = reader.positions()[-1]
    pin = {**told["pin"], "clocks": {"orders": {"processing_time": 1}}}
    before = Destination(stage.broker.login, changes_to(topic), LATEST, told["lake"])
    before.open()
    hidden = bytes(reader._read(topic)[0].key())  # a row that the lost records had deleted
    headers = {"release": str(told["release"]), "position": "{}"}
    before.send([Record(topic=topic, key=hidden, value=None)], headers, Position(**{**told, "pin": pin}))
    assert len(reader.table()) == len(stage.view(LATEST)) - 1

    stage.send(LATEST, topic)

    wait_for("the row", lambda: reader.table() == stage.view(LATEST) or None, 60)
    found = stage.status(LATEST)
    assert (found["way"], found["records"]) == (CONTENT, 1)


@pytest.mark.faults
@pytest.mark.parametrize("what", ["release", "batch"])
def test_what_was_told_is_never_followed_by_what_was_before_it(stage: Stage, topic: str, what: str) -> None:
    reader = stage.send(LATEST, topic)
    release = stage.until_told(LATEST)["release"]
    stage.lake.do("changelog", table=LATEST, stop=True)
    told = reader.positions()[-1]
    later = Destination(stage.broker.login, changes_to(topic), LATEST, told["lake"])
    later.open()
    ahead = {"pin": {**told["pin"], "position": {"orders": len(stage.batches) + 1_000}}}
    position = Position(**{**told, **({"release": 99} if what == "release" else ahead)})
    later.send([], {"release": str(position.release), "position": "{}"}, position)

    stage.send(LATEST, topic)

    refused = stage.until_refused(LATEST, BusyError)
    assert refused.startswith(f"release {release} is before") or (
        what == "batch" and refused.endswith("is behind what its changelog has sent")
    )
    sent_to_another(stage, topic)


@pytest.mark.faults
def test_a_topic_that_was_made_anew_is_filled_again(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    stage.until_told(SALES)
    stage.lake.do("changelog", table=SALES, stop=True)
    made_anew(stage, topic)

    stage.send(SALES, topic)
    stage.append(7000)

    stage.until_told(SALES)
    assert reader.table() == stage.view(SALES)


@pytest.mark.faults
def test_a_topic_that_was_made_anew_under_its_sender_is_filled_again(stage: Stage, topic: str) -> None:
    reader = stage.send(LATEST, topic)
    stage.until_told(LATEST)
    made_anew(stage, topic)

    stage.append(7100)

    stage.until_told(LATEST)
    assert reader.table() == stage.view(LATEST)


@pytest.mark.faults
def test_a_topic_that_forgets_is_not_filled_again(stage: Stage, topic: str) -> None:
    stage.send(LATEST, topic)
    stage.until_told(LATEST)
    made_anew(stage, topic, policy="delete")

    stage.append(7101)

    assert stage.until_refused(LATEST, UsageError) == f"topic {topic!r} has cleanup.policy=delete"
    sent_to_another(stage, topic)


def test_a_row_that_no_message_holds_is_named_as_such(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    stage.until_told(SALES)
    stage.lake.do("changelog", table=SALES, stop=True)
    told = Position(**reader.positions()[-1])
    destination = Destination(stage.broker.login, changes_to(topic), SALES, told.lake)
    destination.open()

    with pytest.raises(UsageError, match=f"a row of {SALES} is too large"):
        destination.send([Record(topic=topic, key=b"k", value=bytes(2_000_000))], {}, told)


@pytest.mark.faults
def test_an_error_that_nobody_foresaw_is_said_and_nothing_is_left_out(
    stage: Stage, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(changes, "find_changes", fails)
    reader = stage.send(LATEST, topic)

    refused = stage.until_refused(LATEST, TwinlakeError)

    assert refused == f"the changelog of {LATEST} is not sent"
    assert "it is tried again by itself" in stage.status(LATEST)["error"]["remedy"]
    monkeypatch.undo()
    stage.until_told(LATEST)
    assert reader.table() == stage.view(LATEST)


@pytest.mark.faults
def test_a_topic_that_gained_partitions_is_sent_no_more(stage: Stage, topic: str) -> None:
    stage.send(LATEST, topic)
    stage.until_told(LATEST)
    admin: Any = Kafka(stage.broker.login)._admin
    (grown,) = admin.create_partitions([NewPartitions(topic, 7)]).values()
    grown.result()

    stage.append(7200)

    assert stage.until_refused(LATEST, DifferenceError) == f"topic {topic!r} has 7 partitions"
    sent_to_another(stage, topic)


@pytest.mark.faults
def test_a_view_over_tables_is_told_too(stage: Stage, topic: str) -> None:
    reader = stage.send(PAID, topic)
    stage.until_told(PAID)
    stage.append(8003, 8004)

    assert stage.until_told(PAID)["way"] == ALL_KEYS
    assert reader.table() == stage.view(PAID)


def test_of_two_senders_only_the_later_can_commit(stage: Stage, topic: str) -> None:
    reader = stage.send(SALES, topic)
    stage.until_told(SALES)
    stage.lake.do("changelog", table=SALES, stop=True)
    told = reader.positions()
    position = Position(**told[-1])
    first, second = (
        Destination(stage.broker.login, changes_to(topic), SALES, position.lake) for _ in range(2)
    )
    first.open()
    assert second.open() == position

    with pytest.raises(UnreachableError, match="was not sent"):
        first.send([], {"release": "1", "position": "{}"}, replace(position, release=98))
    second.send([], {"release": "1", "position": "{}"}, replace(position, release=99))

    assert [one["release"] for one in reader.positions()] == [*(one["release"] for one in told), 99]


@pytest.mark.parametrize(
    ("table", "topic", "kind", "why"),
    [
        ("nothing", "t1", NotFoundError, "'nothing' is not live"),
        (SALES, "orders", UsageError, "tables are made from it"),
        (SALES, "a b", UsageError, "not a name of a topic"),
        (SALES, "deleted", UsageError, "cleanup.policy=delete"),
        (SALES, "cut", UsageError, "has 4 partitions"),
        (SALES, "foreign", UsageError, "has records already"),
        (SALES, "scribbled", UsageError, "holds something else than positions"),
    ],
)
def test_what_cannot_be_a_changelog_is_refused(
    stage: Stage, table: str, topic: str, kind: type[TwinlakeError], why: str
) -> None:
    kafka = Kafka(stage.broker.login)
    kafka.create("deleted")
    kafka.create("cut.position", config={"cleanup.policy": "compact"})
    for name in ("foreign", "scribbled.position"):
        if kafka.create(name, partitions=1, config={"cleanup.policy": "compact"}):
            producer = Producer({"bootstrap.servers": stage.broker.bootstrap})
            producer.produce(name, b"{}", b"k")
            assert producer.flush(30) == 0

    with pytest.raises(kind, match=why):
        stage.lake.do("changelog", table=table, topic=topic)
    assert stage.lake.server.status()["changelogs"] == []


def test_a_topic_has_one_changelog_and_a_table_has_one(stage: Stage, topic: str) -> None:
    stage.send(SALES, topic)
    stage.until_told(SALES)

    for table, other, why in (
        (SALES, f"{topic}x", "a table has one"),
        (LATEST, topic, "taken"),
        (LATEST, f"{topic}.position", "taken"),
    ):
        with pytest.raises(UsageError) as error:
            stage.lake.do("changelog", table=table, topic=other)
        assert why in str(error.value)
    stage.lake.do("changelog", table=SALES, topic=topic)
    stage.lake.do("changelog", table=SALES, stop=True)
    with pytest.raises(TwinlakeError, match="is not a changelog of"):
        stage.lake.do("changelog", table=LATEST, topic=topic)


def test_a_paused_changelog_sends_nothing_and_goes_on_over_a_restart(stage: Stage) -> None:
    reader = stage.send(LATEST, next(TOPICS))
    stage.append(1, 2)
    stage.until_told(LATEST)
    paused = stage.lake.do("pause", name=LATEST, kind="changelog", by="anna", reason="its reader is broken")
    sent = sorted(map(str, reader.records()))  # partitions are read in any order
    stage.append(103, customer="paused")
    stage.restart()
    stage.append(104, customer="paused")
    stage.send(SALES, next(TOPICS))
    stage.until_told(SALES)  # another one goes on
    shown, still = stage.status(LATEST), sorted(map(str, reader.records()))
    with pytest.raises(UsageError, match="more than one thing"):
        stage.lake.do("pause", name=LATEST, by="anna")
    stage.lake.do("resume", name=LATEST, by="anna")
    stage.until_told(LATEST)

    assert paused["changed"] and (shown["state"], shown["error"]) == ("paused", None)
    assert still == sent and len(reader.records()) > len(sent)
    assert reader.table() == stage.view(LATEST)


def test_a_changelog_that_was_stopped_is_not_paused_when_it_is_started_again(stage: Stage) -> None:
    topic = next(TOPICS)
    stage.send(LATEST, topic)
    stage.lake.do("pause", name=LATEST, kind="changelog", by="anna")
    stage.lake.do("changelog", table=LATEST, stop=True)
    stage.append(1, 2)
    stage.send(LATEST, topic)

    assert stage.until_told(LATEST)["state"] == "sending"
