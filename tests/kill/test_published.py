"""A published table is what the records make of it at its position, whoever is killed in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.demo.story import CHANGED as SALES
from tests.demo.story import changed_definitions
from tests.kill.server import LakeProcess, lake_process
from tests.kill.test_changelog import MEASURES, sales
from twinlake.base.breakpoints import Point

RECORDS = 2_000


@dataclass
class Published:
    """The server, and the folder that others read."""

    server: LakeProcess
    swapped_in: int | None = None
    """The release from which on cancelled orders are left out."""

    @property
    def path(self) -> str:
        return str(self.server.lake / "published" / SALES)

    def until_there(self) -> None:
        """What is published is where the log is, in the live release."""
        self.server.until_at_end("published", 300)

    def killed_at(self, point: Point) -> int:
        """While it publishes what is new; the version of the folder that it leaves."""
        self.server.until_stopped_at(point)
        self.server.kill()
        left = DeltaTable(self.path).version()
        assert self.wrong() == {}
        self.server.produce(RECORDS)
        self.server.start()
        self.until_there()
        return left

    def wrong(self) -> dict[str, Any]:
        """By version of the folder, the keys that it has otherwise than the log's records make them; the
        positions of its versions never go back."""
        valid = self.server.valid_events()
        found, before = {}, (0, 0)
        for version in range(DeltaTable(self.path).version() + 1):
            table = DeltaTable(self.path, version=version)
            batch = table.transaction_version("twinlake:orders")
            release = table.transaction_version("twinlake.release")
            assert (release, batch) > before
            before = release, batch
            rows = table.to_pyarrow_table().to_pylist()
            shown = {
                (row["region"], row["window_start"]): tuple(row[name] for name in MEASURES) for row in rows
            }
            assert len(shown) == len(rows)
            expected = sales(
                [event for number, event in valid if number <= batch],
                without_cancelled=self.swapped_in == release,
            )
            if shown != expected:
                found[version] = {
                    key: (shown.get(key), expected.get(key))
                    for key in shown.keys() | expected.keys()
                    if shown.get(key) != expected.get(key)
                }
        return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Published]:
    folder: Path = tmp_path_factory.mktemp("published")
    with lake_process(folder, seed) as server:
        server.start()
        server.release()
        server.produce(RECORDS)
        server.do("publish", table=SALES)
        found = Published(server)
        found.until_there()
        yield found


@pytest.fixture
def published(whole: Published) -> Published:
    if not whole.server.running:
        whole.server.start()
    return whole


@pytest.mark.faults
@pytest.mark.parametrize("point", [Point.BEFORE_PUBLISH, Point.AFTER_PUBLISH])
def test_a_server_that_is_killed_while_it_publishes_goes_on_rightly(
    published: Published, point: Point
) -> None:
    before = DeltaTable(published.path).version()
    published.server.stop_at(point)
    published.server.produce(RECORDS)

    left = published.killed_at(point)

    assert left == before + (point == Point.AFTER_PUBLISH)
    assert published.wrong() == {}


@pytest.mark.faults
def test_a_swap_that_is_killed_before_its_commit_and_a_rollback_are_one_commit_each(
    published: Published,
) -> None:
    server = published.server
    published.until_there()
    plan = server.do("plan", definitions=changed_definitions())["id"]
    server.do("build", plan=plan)
    server.stop_at(Point.BEFORE_PUBLISH)

    published.swapped_in = server.do("promote", plan=plan, approved_by="test")["release"]
    published.killed_at(Point.BEFORE_PUBLISH)
    server.do("rollback", approved_by="test")
    published.until_there()

    assert published.wrong() == {}
    assert DeltaTable(published.path).transaction_version("twinlake.release") == published.swapped_in + 1
