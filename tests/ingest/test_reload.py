"""New files of topics become active while everything goes on, all or none: on a real broker,
with a producer that does not stop and a reader who looks all the time."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from jobs.tables import sales_per_region
from tests.ingest.stage import Stage, frame, order
from tests.ingest.whole_server import WholeServer
from twinlake.base.errors import UsageError
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.lake.log import active_topics

FRESH_S = 30.0
"""So soon a record is in the log of the topic that is reloaded, however busy the machine (measured: 18 s with
25 processes on 2 cores). A restart takes 36 s and more on a quiet one."""

NOTE = {"name": "note", "type": "string", "default": ""}
IN_CONTRACT = """      - name: note
        logicalType: string
        physicalType: string
        required: true
"""
CANCELLED = "          - value: cancelled\n"


@pytest.fixture
def stage(faked: Stage) -> Stage:
    return faked


class Traffic:
    """Sends an order to a topic every 100 ms, and reads what the server has of it: once opened it may not
    fail, go back or fall far behind."""

    def __init__(self, whole: WholeServer, table: str) -> None:
        self.whole, self.table = whole, table
        self.sent: list[float] = []
        self.seen: list[tuple[float, int, int]] = []
        self.errors: list[BaseException] = []
        self._over = threading.Event()
        works = (self._send, self._read)
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in works]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, work: Any) -> None:
        try:
            while not self._over.wait(0.1):
                work()
        except BaseException as error:
            self.errors.append(error)

    def _send(self) -> None:
        send(self.whole.stage, self.whole.name, f"id{len(self.sent)}")
        self.sent.append(time.monotonic())

    def _read(self) -> None:
        lake = self.whole.server.lake
        version = lake.version(self.table)
        pin = lake.versions.pin(version, Run(id="reader"))
        assert not [one for one in lake.versions.health() if one.stalled]
        (row,) = lake.versions.opened(version).view(pin).selectExpr("coalesce(sum(orders), 0) AS n").collect()
        self.seen.append((time.monotonic(), self.whole.topic()["records"], row["n"]))

    def late(self) -> float:
        """The longest time from a record's acknowledgement to a look that found it in the log."""
        waits = [
            next((at for at, records, _ in self.seen if records > number), self.seen[-1][0]) - sent
            for number, sent in enumerate(self.sent)
            if sent < self.seen[-1][0]
        ]
        return max(waits)


def send(stage: Stage, topic: str, *ids: str, **changes: Any) -> None:
    schema_id = stage.registry.register(f"{topic}-value", stage.schema)
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap, "linger.ms": 1, "log_level": 0})
    for event_id in ids:
        producer.produce(topic, frame(schema_id, stage.schema, order(event_id, **changes)), b"anna")
    assert producer.flush(30) == 0


def built(whole: WholeServer) -> str:
    """A table over the topic, which is fed from now on."""
    table = replace(sales_per_region.TABLE, name="sales", inputs=(whole.name,))
    plan = whole.do("plan", definitions={"sales": table.to_json()})
    whole.do("build", plan=plan["id"])
    return "sales"


def allow_refunds(whole: WholeServer, version: str) -> None:
    text = whole.contract(whole.name).read_text()
    wider = text.replace(CANCELLED, CANCELLED + CANCELLED.replace("cancelled", "refunded"))
    whole.contract(whole.name).write_text(wider.replace("version: 1.0.0", f"version: {version}"))


def test_topics_come_change_and_go_while_everything_is_read(whole: WholeServer, stage: Stage) -> None:
    new = f"{whole.name}_new"
    table = built(whole)
    with Traffic(whole, table) as traffic:
        whole.until("a reader", lambda: bool(traffic.seen and traffic.seen[-1][2] > 5))
        nothing = whole.do("reload")
        send(stage, whole.name, "before", status="refunded")
        whole.until("an invalid one", lambda: whole.topic()["counts"]["invalid"] == 1)
        allow_refunds(whole, "1.1.0")
        whole.add(new)
        checked = whole.do("reload", check=True)
        looked = [one["name"] for one in whole.server.status()["topics"]]
        first = whole.do("reload")
        send(stage, whole.name, "after", status="refunded")
        send(stage, new, "a", "b")
        whole.until_records(2, new)
        # the next version of its schema, in which tables of before go on as they were
        schema = {**stage.schema, "fields": [*stage.schema["fields"], NOTE]}
        (whole.project / "schemas" / f"{new}.v2.avsc").write_text(json.dumps(schema))
        contract = whole.contract(new)
        contract.write_text(contract.read_text() + IN_CONTRACT)
        second = whole.do("reload")
        send(stage, new, "c")
        whole.until_records(3, new)
        for file in (contract, *(whole.project / "schemas").glob(f"{new}.*")):
            file.unlink()
        third = whole.do("reload")
        had = len(traffic.seen)
        whole.until("more looks", lambda: bool(traffic.errors) or len(traffic.seen) > had + 5)

    assert traffic.errors == []
    for before, after in zip(traffic.seen, traffic.seen[1:], strict=False):
        assert before[1] <= after[1] and before[2] <= after[2]
    assert traffic.late() < FRESH_S
    name = whole.name
    did = (nothing, first, second, third)
    assert [(one["added"], one["edited"], one["removed"], one["unchanged"]) for one in did] == [
        ([], [], [], [name]), ([new], [name], [], []), ([], [new], [], [name]), ([], [], [new], [name])
    ]  # fmt: skip
    assert {**checked, "applied": True} == first and looked == [name]
    whole.until("the rest", lambda: whole.topic()["records"] == len(traffic.sent) + 2)
    assert whole.topic()["counts"]["invalid"] == 1  # decided once; what came after is valid
    rows = whole.server.lake.logs[name].all(0, 10**9).where("event.status = 'refunded'").collect()
    judged = sorted((row["verdict"], row["contract"]) for row in rows)
    assert judged == [("invalid", "1.0.0"), ("valid", "1.1.0")]
    assert [one["name"] for one in whole.server.status()["topics"]] == [name]
    whole.restart()
    assert whole.server.lake.logs.keys() == {name}
    assert whole.server.lake.logs[name].topic.contract.version == "1.1.0"
    assert whole.do("verify", table=table)["equal"]


def test_what_is_wrong_is_refused_as_a_whole_with_all_reasons(whole: WholeServer, stage: Stage) -> None:
    good, bad = f"{whole.name}_good", f"{whole.name}_bad"
    built(whole)
    whole.add(good)
    whole.add(bad)
    whole.contract(bad).write_text("kind: DataContract\n")
    for file in (whole.contract(whole.name), whole.project / "schemas" / f"{whole.name}.v1.avsc"):
        file.rename(file.with_suffix(".away"))
    published = active_topics.published(whole.server.lake.path)

    with pytest.raises(UsageError, match="nothing was reloaded") as refused:
        whole.do("reload")

    assert f"{bad}.yaml" in refused.value.why
    assert f"the files of topic {whole.name} are gone, and it is read by table sales" in refused.value.why
    assert [one["name"] for one in whole.server.status()["topics"]] == [whole.name]
    assert active_topics.published(whole.server.lake.path) == published
    assert stage.kafka.topic(good) is None and not whole.server.lake.path.joinpath("logs", good).exists()
    stage.orders("still read")
    whole.until_records(1)


def test_a_plan_over_a_contract_that_was_edited_is_made_after_the_reload(whole: WholeServer) -> None:
    table = replace(sales_per_region.TABLE, inputs=(whole.name,))
    definitions = {table.name: table.to_json()}
    allow_refunds(whole, "1.1.0")
    with pytest.raises(
        UsageError, match=f"the contract or schema of topic {whole.name} has changed"
    ) as edited:
        whole.do("plan", definitions=definitions)

    whole.do("reload")

    assert edited.value.remedy == "run `twinlake reload`, then plan again"
    assert not whole.do("plan", definitions=definitions)["empty"]


def test_a_topic_whose_contract_is_torn_is_not_taken_for_a_removed_one(whole: WholeServer) -> None:
    clicks = f"{whole.name}_clicks"
    whole.add(clicks)
    (whole.project / "schemas" / f"{clicks}.v1.avsc").unlink()
    text = whole.contract(clicks).read_text()
    is_json = "customProperties:\n  - property: format\n    value: json\n"
    whole.contract(clicks).write_text(text.replace("customProperties:\n", is_json))
    whole.do("reload")

    refusals = []
    for wrong in (whole.contract(clicks).read_text() + "a: [b\n", text):
        whole.contract(clicks).write_text(wrong)
        with pytest.raises(UsageError, match="nothing was reloaded") as refused:
            whole.do("reload")
        refusals.append(refused.value.why)
    assert "it cannot be read as YAML" in refusals[0]
    assert "has no schema file, and does not say `format: json`" in refusals[1]
    wait_for("the topic to be read", lambda: whole.topic(clicks)["state"] == "running" or None, 60)

    whole.restart()
    assert whole.topic(clicks)["state"] == "stopped"

    whole.contract(clicks).unlink()
    assert whole.do("reload")["removed"] == [clicks]


def test_a_paused_topic_stays_paused_and_two_reloads_take_turns(whole: WholeServer, stage: Stage) -> None:
    whole.do("pause", name=whole.name, by="anna")
    allow_refunds(whole, "1.1.0")
    with ThreadPoolExecutor(2) as both:
        found = list(both.map(lambda _: whole.do("reload"), range(2)))
    stage.orders("a")
    whole.until("the lag", lambda: whole.topic()["lag_records"] == 1)
    state = whole.topic()["state"]
    whole.do("resume", name=whole.name, by="anna")
    whole.until_records(1)

    assert sorted(one["edited"] for one in found) == [[], [whole.name]]
    assert state == "paused"
