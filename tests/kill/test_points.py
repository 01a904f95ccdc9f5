"""kill -9 at each named point: it died there, goes on after a start, and shows what the oracle computes.

One broker, one lake and one oracle serve all points, so each is killed over what the others have left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.demo.story import CHANGED as SALES
from tests.demo.story import changed_definitions
from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views, differences
from tests.processes import has_ended
from tests.project import TABLES
from twinlake.base.breakpoints import Point
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import load, version_file
from twinlake.lake.delta import delta
from twinlake.lake.storage import store
from twinlake.spark.jvm import EXIT_CODE

LATEST = "latest_order"
RECORDS = 2_000
COMMITS = tuple(f"{digit}.json" for digit in range(10))


@dataclass
class Platform:
    """The server and what its readers are shown."""

    server: LakeProcess
    views: Views
    jobs: dict[Point, str] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether the live sales leave out cancelled orders."""
        live = release_log.live(self.server.lake)
        assert live
        version = load(version_file(self.server.lake, SALES, live.tables[SALES]))
        return bool(version.definition["where"])

    def differences(self) -> dict[str, Any]:
        return differences(self.server, self.views, without_cancelled=self.changed)

    def come_by(self, point: Point) -> None:
        """Make the server do what leads by the point."""
        if point in (Point.BEFORE_REPLACE, Point.AFTER_REPLACE):
            self.submit(point, "rebuild", table=SALES)
        elif point in (Point.BEFORE_RELEASE, Point.AFTER_RELEASE):
            self.submit(point, "promote", plan=self.built(), approved_by="test")
        else:
            self.server.produce(RECORDS)

    def built(self) -> str:
        """A plan that takes the sales to their other definition, ready to be promoted."""
        same = {table.name: table.to_json() for table in TABLES}
        plan: str = self.server.do("plan", definitions=same if self.changed else changed_definitions())["id"]
        self.server.do("build", plan=plan)
        return plan

    def switch_sales(self) -> None:
        self.server.do("promote", plan=self.built(), approved_by="test")

    def submit(self, point: Point, kind: str, **params: Any) -> None:
        """One job, whose key is the point; asked again it is done to its end."""
        self.jobs[point] = self.server.client.submit(kind, params, key=point).id

    def again(self, point: Point) -> dict[str, Any]:
        before = self.server.client.job(self.jobs[point])
        assert before.state == "interrupted"
        return self.server.do(before.kind, key=point, **before.params)

    def texts(self, place: str, *endings: str) -> list[str]:
        """Of the files below a place of the lake with these endings."""
        folder = self.server.lake / place
        return [store.read_text(folder / name) for name in store.tree(folder) if name.endswith(endings)]

    def disk(self) -> dict[str, int]:
        """What the lake's files say, counted."""
        lake, live = self.server.lake, release_log.live(self.server.lake)
        assert live
        steps = {
            table: delta.newest_metadata(
                lake / "tables" / table / live.tables[table], lambda metadata: "position" in metadata
            )
            for table in (SALES, LATEST)
        }
        log = delta.newest_metadata(lake / "logs/orders", lambda metadata: "batch" in metadata)
        return {
            "data files": self.server.files("logs/orders", ".parquet"),
            "batch": log["batch"] if log else 0,
            **{table: step["position"]["orders"] if step else 0 for table, step in steps.items()},
            "compared": sum(
                json.loads(text)["replacing"] is not None for text in self.texts("staging", "attempt.json")
            ),
            "replaced": sum(
                '\\"kind\\":\\"rebuild\\"' in text for text in self.texts(f"tables/{SALES}", *COMMITS)
            ),
            "release": live.number,
        }  # fmt: skip


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Platform]:
    with lake_process(tmp_path_factory.mktemp("kill"), seed) as server:
        server.start()
        server.release()
        views = Views(spark, server.lake)
        yield Platform(server, views)
        views.close()


@pytest.fixture
def platform(whole: Platform) -> Platform:
    """Up, and with everything that is in the topic."""
    if not whole.server.running:
        whole.server.start()
    whole.server.produce(RECORDS)
    whole.server.until(whole.server.caught_up)
    return whole


MOVED: dict[Point, set[str]] = {
    Point.BEFORE_LOG_FILES: set(),
    Point.AFTER_LOG_FILES: {"data files"},
    Point.BEFORE_LOG_COMMIT: {"data files"},
    Point.AFTER_LOG_COMMIT: {"data files", "batch"},
    Point.BEFORE_PARTIAL: {"data files", "batch", SALES},
    Point.BEFORE_STEP_COMMIT: {"data files", "batch", SALES},
    Point.BEFORE_REPLACE: {"compared"},
    Point.AFTER_REPLACE: {"compared", "replaced"},
    Point.BEFORE_RELEASE: set(),
    Point.AFTER_RELEASE: {"release"},
}
"""What the files of a dead server say more than before: where exactly it was. A changelog writes none; its
points are in `test_changelog.py`."""
BETWEEN = (Point.BEFORE_PARTIAL, Point.BEFORE_STEP_COMMIT)
"""The other table's step goes on meanwhile: it dies between the two."""


@pytest.mark.faults
@pytest.mark.parametrize("point", MOVED)
def test_a_server_killed_at_this_point_goes_on_without_loss_or_double_counting(
    platform: Platform, point: Point
) -> None:
    server, before = platform.server, platform.disk()
    files = server.files(f"tables/{LATEST}", ".parquet")
    server.stop_at(point, LATEST if point in BETWEEN else "")
    platform.come_by(point)
    server.until_stopped_at(point)
    if point in BETWEEN:
        server.until(lambda: platform.disk()[SALES] > before[SALES])

    server.kill()

    died = platform.disk()
    assert {name for name, count in died.items() if count > before[name]} == MOVED[point]
    if point in BETWEEN:
        moved = server.files(f"tables/{LATEST}", ".parquet") - files
        assert moved == (1 if point is Point.BEFORE_STEP_COMMIT else 0)
    server.start()
    server.until(server.caught_up)
    record_id = ["epoch", "partition", "offset"]
    log = DeltaTable(str(server.lake / "logs" / "orders")).to_pyarrow_table(columns=record_id)
    assert log.num_rows == log.group_by(record_id).aggregate([]).num_rows == server.produced
    if point in (Point.BEFORE_REPLACE, Point.AFTER_REPLACE):
        again = platform.again(point)
        assert (again["equal"], again["chunks_done_before"]) == (True, int(point is Point.AFTER_REPLACE))
    if point in (Point.BEFORE_RELEASE, Point.AFTER_RELEASE):
        assert platform.again(point)["release"] == before["release"] + 1
    assert platform.differences() == {}


@pytest.mark.faults
@pytest.mark.parametrize("point", [Point.BEFORE_RELEASE, Point.AFTER_RELEASE])
def test_a_server_killed_in_a_rollback_has_made_it_wholly_or_not_at_all(
    platform: Platform, point: Point
) -> None:
    server = platform.server
    platform.switch_sales()
    before, changed = platform.disk()["release"], platform.changed
    server.stop_at(point)
    rollback = {"approved_by": "test", "to": before - 1, "reason": "as it was"}
    server.client.submit("rollback", rollback, key=f"rollback {point}")
    server.until_stopped_at(point)

    server.kill()

    assert platform.disk()["release"] == before + (point is Point.AFTER_RELEASE)
    server.start()
    server.until(server.caught_up)
    assert server.do("rollback", key=f"rollback {point}", **rollback)["release"] == before + 1
    assert platform.changed is not changed
    live = release_log.live(server.lake)
    assert live is not None and (live.number, live.reason) == (before + 1, "as it was")
    assert platform.differences() == {}


@pytest.mark.faults
def test_a_server_whose_jvm_alone_is_killed_ends_and_loses_nothing(platform: Platform) -> None:
    server = platform.server
    server.produce(RECORDS)

    assert server.kill_jvm() == EXIT_CODE
    server.start()

    server.until(server.caught_up)
    assert platform.differences() == {}


@pytest.mark.faults
def test_a_server_started_beside_the_jvm_of_a_killed_one_loses_nothing(platform: Platform) -> None:
    server = platform.server
    server.produce(RECORDS)

    jvm = server.kill_python()
    server.start()

    assert has_ended(jvm)
    server.until(server.caught_up)
    assert platform.differences() == {}


def test_a_second_server_on_the_same_lake_ends_and_says_why(platform: Platform) -> None:
    refused = platform.server.second()

    assert refused.returncode == 1 and "in use by another lake server" in refused.stderr
