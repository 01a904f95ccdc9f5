"""A reader of a changelog is told the table as it was at every position, whoever is killed in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.changelog.reader import Reader, table_of
from tests.demo.story import CHANGED as SALES
from tests.demo.story import changed_definitions
from tests.kill.server import LakeProcess, lake_process
from twinlake.base.breakpoints import Point

TOPIC = "sales_changes"
RECORDS = 2_000
MEASURES = ("sales", "orders", "smallest", "largest", "customers")


@dataclass
class Told:
    """The server, and the reader of what it sends."""

    server: LakeProcess
    reader: Reader
    swapped_in: int | None = None
    """The release from which on cancelled orders are left out."""

    def until_told(self) -> None:
        """The changelog is where the log is, in the live release."""
        self.server.until_at_end("changelogs")

    def killed_at(self, point: Point) -> None:
        """While it sends what is new."""
        self.server.killed_at(point, RECORDS)
        self.until_told()

    def wrong(self, since: int = 0) -> dict[str, Any]:
        """By position, the keys that a reader holds otherwise than the log's records make them; the first
        positions left out, where another lake has sent them."""
        positions = self.reader.positions()
        batches = [one["pin"]["position"]["orders"] for one in positions]
        releases = [one["release"] for one in positions]
        assert batches == sorted(batches) and releases == sorted(releases)
        valid = self.server.valid_events()
        told = self.reader.records()
        found = {}
        for batch, release in [*zip(batches, releases, strict=True)][since:]:
            table = table_of(one for one in told if (one.position["orders"], one.release) <= (batch, release))
            shown = {key: tuple(row[name] for name in MEASURES) for key, row in table.items()}
            expected = sales(
                [event for number, event in valid if number <= batch],
                without_cancelled=self.swapped_in is not None and release >= self.swapped_in,
            )
            if shown != expected:
                keys = shown.keys() | expected.keys()
                found[f"{batch} in release {release}"] = {
                    key: (shown.get(key), expected.get(key))
                    for key in keys
                    if shown.get(key) != expected.get(key)
                }
        return found


def sales(events: list[dict[str, Any]], *, without_cancelled: bool) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """(region, minute) -> what the view says of them."""
    groups: dict[tuple[str, datetime], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if not (without_cancelled and event["status"] == "cancelled"):
            groups[event["region"], event["ordered_at"].replace(second=0, microsecond=0)].append(event)
    return {
        key: (
            sum(one["amount"] for one in held), len(held), min(one["amount"] for one in held),
            max(one["amount"] for one in held), len({one["customer"] for one in held}),
        )
        for key, held in groups.items()
    }  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Told]:
    folder: Path = tmp_path_factory.mktemp("changelog")
    with lake_process(folder, seed) as server:
        server.start()
        server.release()
        server.produce(RECORDS)
        server.do("changelog", table=SALES, topic=TOPIC)
        told = Told(server, Reader(server.broker.login, server.services.registry_url, TOPIC))
        told.until_told()
        yield told


@pytest.fixture
def told(whole: Told) -> Told:
    if not whole.server.running:
        whole.server.start()
    return whole


@pytest.mark.faults
@pytest.mark.parametrize("point", [Point.BEFORE_CHANGES, Point.AFTER_CHANGES])
def test_a_server_that_is_killed_while_it_sends_tells_everything_once(told: Told, point: Point) -> None:
    told.killed_at(point)

    assert told.wrong() == {}


@pytest.mark.faults
def test_a_broker_that_is_killed_in_a_transaction_costs_no_record(told: Told) -> None:
    told.server.broker_killed_at(Point.BEFORE_CHANGES, RECORDS)

    told.until_told()
    assert told.wrong() == {}


@pytest.mark.faults
def test_a_rebuild_and_a_swap_are_told_whoever_is_killed(told: Told) -> None:
    server = told.server
    told.until_told()
    had = len(told.reader.records())
    assert server.do("rebuild", table=SALES)["equal"]
    assert len(told.reader.records()) == had
    server.produce(RECORDS)
    told.until_told()
    plan = server.do("plan", definitions=changed_definitions())["id"]
    server.do("build", plan=plan)
    server.stop_at(Point.BEFORE_CHANGES)

    told.swapped_in = server.do("promote", plan=plan, approved_by="test")["release"]
    server.until_stopped_at(Point.BEFORE_CHANGES)
    server.kill()
    server.produce(RECORDS)
    server.start()

    told.until_told()
    assert told.wrong() == {}
    server.do("rollback", approved_by="test")
    told.until_told()
    assert told.reader.positions()[-1]["release"] == told.swapped_in + 1
