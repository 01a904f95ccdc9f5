"""Each event goes to its topic once and in the log's order, whoever is killed in between: over real ingest,
with replays and releases."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.changelog.reader import Reader
from tests.kill.server import LakeProcess, lake_process
from tests.project import PROJECT, TABLES
from twinlake.base.breakpoints import Point

TABLE, POSITIONS, REST = "orders", "orders.position", "rest"
TOPICS = ("paid", "pending", REST)
RECORDS = 2_000
LESS: Any = replace(next(table for table in TABLES if table.name == TABLE), where="region <> 'bavaria'")
Order = dict[tuple[str, int], list[tuple[int, int]]]
"""By topic and partition of the source: epoch and offset of each event."""


@dataclass
class Sent:
    """The server, whose orders are routed by their status, and the project whose contract may be edited."""

    server: LakeProcess
    contract: Path
    less_in: int = 99
    """The release from which on the orders of one region are left out."""

    def until_sent(self) -> None:
        self.server.until_at_end("changelogs")

    def killed_at(self, point: Point) -> None:
        """While it sends what is new."""
        self.server.killed_at(point, RECORDS)
        self.until_sent()

    def reader(self, topic: str) -> Reader:
        return Reader(self.server.broker.login, self.server.services.registry_url, topic)

    def read(self) -> Order:
        """What readers of committed records get, in the order of their partitions."""
        found: Order = defaultdict(list)
        for topic in TOPICS:
            for one in self.reader(topic).events():
                epoch, partition, offset = one.id
                assert one.partition == partition
                found[topic, partition].append((epoch, offset))
        return dict(found)

    def expected(self, before: int = 0) -> Order:
        """What the log's valid rows after a batch make, by the release that each was sent in."""
        positions = self.reader(POSITIONS.removesuffix(".position")).positions()
        sent = [(one["pin"]["position"]["orders"], one["release"]) for one in positions]
        assert sent == sorted(sent)
        names = ["batch", "epoch", "partition", "offset", "verdict", "event"]
        rows = DeltaTable(str(self.server.lake / "logs" / "orders")).to_pyarrow_table(columns=names)
        found: Order = defaultdict(list)
        order = sorted(rows.to_pylist(), key=lambda row: [row[name] for name in names[:4]])
        for row in order:
            if row["verdict"] != "valid" or row["batch"] <= before:
                continue
            release = next(release for batch, release in sent if batch >= row["batch"])
            if release >= self.less_in and row["event"]["region"] == "bavaria":
                continue
            status = row["event"]["status"]
            topic = status if status in TOPICS else REST
            found[topic, row["partition"]].append((row["epoch"], row["offset"]))
        return dict(found)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Sent]:
    folder: Path = tmp_path_factory.mktemp("events")
    project = folder / "project"
    for name in ("schemas", "contracts"):
        shutil.copytree(PROJECT / name, project / name)
    (project / "twinlake.toml").write_text("[project]\n")
    with lake_process(folder, seed) as server:
        server.command = ["-m", "twinlake.server", "--project", str(project)]
        server.start()
        server.release()
        server.produce(RECORDS)
        server.do(
            "changelog", table=TABLE, topic_from="status", topics=list(TOPICS[:2]), other_topic=REST,
            position_topic=POSITIONS, **{"from": "beginning"},
        )  # fmt: skip
        found = Sent(server, project / "contracts" / "orders.yaml")
        found.until_sent()
        yield found


@pytest.fixture
def sent(whole: Sent) -> Sent:
    """With a server that runs, whatever the test before has left."""
    if not whole.server.running:
        whole.server.start()
    return whole


@pytest.mark.faults
@pytest.mark.parametrize("point", [Point.BEFORE_CHANGES, Point.AFTER_CHANGES])
def test_a_server_that_is_killed_while_it_sends_sends_every_event_once(sent: Sent, point: Point) -> None:
    sent.killed_at(point)

    expected = sent.expected()
    assert {topic for topic, _ in expected} == set(TOPICS) and {at for _, at in expected} == {0, 1, 2, 3}
    assert sent.read() == expected


@pytest.mark.faults
def test_a_broker_that_is_killed_in_a_transaction_costs_no_event(sent: Sent) -> None:
    sent.server.broker_killed_at(Point.BEFORE_CHANGES, RECORDS)

    sent.until_sent()
    assert sent.read() == sent.expected()


@pytest.mark.faults
def test_what_a_corrected_contract_admits_goes_out_once_when_it_is_valid(sent: Sent) -> None:
    server = sent.server
    sent.until_sent()
    had = sent.read()
    before = server.client.status()["topics"][0]["batch"]
    text = sent.contract.read_text()
    text = text.replace("- value: cancelled\n", "- value: cancelled\n          - value: refunded\n")
    sent.contract.write_text(text.replace("version: 1.0.0", "version: 1.1.0"))
    server.do("reload")
    server.until(lambda: server.client.status()["topics"][0]["state"] == "running")
    server.stop_at(Point.BEFORE_CHANGES)
    replayed = server.do("replay", topic="orders")
    server.until_stopped_at(Point.BEFORE_CHANGES)
    server.kill()
    server.start()
    sent.until_sent()
    assert server.do("replay", topic="orders")["replayed"] == 0

    found, new = sent.read(), sent.expected(before)
    assert found == sent.expected()
    assert sum(map(len, new.values())) == replayed["verdicts"]["valid"] > 0
    for key, events in new.items():
        assert found[key] == had[key] + events
        assert events[0] < had[key][-1]  # they are older than what went out before


@pytest.mark.faults
def test_a_release_with_other_logic_goes_on_at_the_position_whoever_is_killed(sent: Sent) -> None:
    server = sent.server
    server.produce(RECORDS)
    sent.until_sent()
    definitions = {table.name: table.to_json() for table in TABLES} | {TABLE: LESS.to_json()}
    plan = server.do("plan", definitions=definitions)["id"]
    server.do("build", plan=plan)
    server.stop_at(Point.BEFORE_CHANGES)

    sent.less_in = server.do("promote", plan=plan, approved_by="test")["release"]
    server.until_stopped_at(Point.BEFORE_CHANGES)
    server.kill()
    server.produce(RECORDS)
    server.start()
    sent.until_sent()

    expected = sent.expected()
    assert sent.read() == expected
    less_in, sent.less_in = sent.less_in, 99
    assert sent.expected() != expected  # some were left out
    sent.less_in = less_in


@pytest.mark.faults
def test_all_that_is_sent_again_is_sent_again_once_whoever_is_killed(sent: Sent) -> None:
    server = sent.server
    sent.until_sent()
    before = sent.read()
    server.stop_at(Point.BEFORE_CHANGES)
    server.do("changelog", table=TABLE, resend=True)
    server.until_stopped_at(Point.BEFORE_CHANGES)
    server.kill()
    server.start()
    at = server.client.status()["topics"][0]["batch"]

    def there() -> bool:
        said = sent.reader(POSITIONS.removesuffix(".position")).positions()[-1]
        return said["events"]["resends"] == 1 and said["pin"]["position"]["orders"] == at

    server.until(there)
    found = sent.read()
    rows = sent.server.valid_events()
    kept = [event for _, event in rows if event["region"] != "bavaria"]
    assert sum(map(len, found.values())) == sum(map(len, before.values())) + len(kept)
    for key, all_of_it in found.items():
        first, again = all_of_it[: len(before[key])], all_of_it[len(before[key]) :]
        assert first == before[key]
        assert len(again) == len(set(again)) and set(again) <= set(first)
