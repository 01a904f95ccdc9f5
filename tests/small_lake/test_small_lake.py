"""The small lake of every format so far: opened, advanced, rebuilt, verified, rolled back by this code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.broker import free_port
from tests.kill.views import Views
from tests.project import PROJECT, project_in
from tests.releases.lake import Lake, following_sql_server, order
from tests.small_lake.small import Shown, shown, unpack, views_of
from twinlake.base.breakpoints import Point
from twinlake.base.errors import FormatError
from twinlake.base.job import Job
from twinlake.base.times import Clock, utc_now
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.all import KINDS, from_json
from twinlake.kinds.kind import is_stored
from twinlake.kinds.measures.all import MEASURES
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import Version, stored_versions
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.server.lake_server import LakeServer, OnBatch
from twinlake.server.release_jobs import RESTRUCTURE

pytestmark = pytest.mark.services

OLDEST = 0
"""Its lake was made by the last code that wrote no number."""
NEW_SINCE = {"top_rows", "history", "trailing", "union", "histogram"}
"""The kinds and measures that the code which made it did not have."""
CHANGED_SINCE = {"customers_now", "orders_now", "customers_with_orders"}
"""What its definitions mean by this code is something else: a snapshot hides fewer rows of a mirror now, and
one table reads two of them. Of all others the fingerprints are for ever."""


class ResumedIngest:
    """Stands where ingest stands: `append` commits valid orders after the log's end and tells versions."""

    def __init__(self, settings: Settings, log: Log, on_batch: OnBatch, clock: Clock) -> None:
        self.state, self.error, self.log_end = "running", None, LogEnd.of(log.topic.name, log.metadata())
        self._log, self._on_batch, self._clock = log, on_batch, clock

    def start(self) -> None:
        """Nothing runs by itself."""

    def stop(self) -> None:
        """Nothing runs by itself."""

    def broker_ends(self) -> dict[int, int]:
        return {}

    def behind(self, ends: Any) -> int:
        return 0

    def topic_settings(self) -> dict[str, str]:
        """Nothing is set: there is no Kafka."""
        return {}

    def unreadable(self) -> list[dict[str, Any]]:
        """What is appended is read."""
        return []

    def append(self, records: list[dict[str, Any]]) -> int:
        before = self._log.metadata()
        batch, epoch = before["batch"] + 1, before["epoch"]
        end = before["ends"][str(epoch)]["0"]
        event = [field.name for field in self._log.topic.newest.fields]
        rows = [
            (epoch, 0, end + index, one["ordered_at"], 1, b"k", b"v", None, 1,
             tuple(one[name] for name in event), "valid", [], False, "1.1.0", False, batch, self._clock())
            for index, one in enumerate(records)
        ]  # fmt: skip
        ends = {**before["ends"], str(epoch): {**before["ends"][str(epoch)], "0": end + len(rows)}}
        counts = {**before["counts"], "valid": before["counts"]["valid"] + len(rows)}
        told = {**before, "batch": batch, "records": len(rows), "ends": ends, "counts": counts}
        app_id = "log:" + self._log.open()
        delta.append(
            self._log.spark.createDataFrame(rows, self._log.ddl), self._log.path, app_id, batch, told
        )
        self._on_batch(batch, None)
        return batch


class SmallLake(Lake):
    """The lake server over a copy of a small lake."""

    def __init__(self, spark: SparkSession, home: Path, sql_url: str) -> None:
        settings = Settings(home=home, in_project=project_in(home / "project"))
        Services(sql_url=sql_url, lake=str(settings.lake)).save(settings.services_file)
        self.spark, self.path, self._runs = spark, settings.lake, 0
        self.server = LakeServer(settings, utc_now, lambda settings: spark, ResumedIngest)
        self.server.start()

    def restructured(self) -> Job | None:
        """The job that takes versions of before on to today's form, once it has ended; None where none is
        asked for."""

        def ended() -> Job | None:
            return job if (job := self.server.jobs.get(found.id)).ended else None

        found = next((one for one in self.server.jobs.list() if one.kind == RESTRUCTURE), None)
        return found and wait_for("the new versions", ended, 600)

    def shown(self) -> Shown:
        return shown(self.spark, self.path)


@pytest.fixture
def packed(tmp_path: Path) -> tuple[Path, Shown]:
    """A lake that nobody has opened since it was made, and what readers saw in it then."""
    return unpack(OLDEST, tmp_path), json.loads((tmp_path / "shown.json").read_text())["shown"]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallLake]:
    home = tmp_path_factory.mktemp("small")
    with following_sql_server(unpack(OLDEST, home)) as sql_url:
        made = SmallLake(spark, home, sql_url)
        made.restructured()
        yield made
        made.stop()


def live_versions(lake: Path) -> dict[str, Version]:
    live = release_log.live(lake)
    assert live
    return {one.table: one for one in stored_versions(lake) if live.tables[one.table] == one.name}


def test_it_holds_something_of_everything(packed: tuple[Path, Shown]) -> None:
    lake, rows = packed
    kept = [from_json(one.definition) for one in stored_versions(lake)]
    measures = {measure.kind for one in kept for measure in getattr(one, "measures", {}).values()}

    assert {one.kind for one in kept} == set(KINDS) - NEW_SINCE
    assert measures == set(MEASURES) - NEW_SINCE
    assert [one.number for one in release_log.releases(lake)] == [1, 2]
    assert min(map(len, rows.values())) > 0
    assert (lake / "changelogs" / "sales_per_region.json").exists()
    assert (lake / "certificates" / "_delta_log").is_dir() and (lake / "runs" / "_delta_log").is_dir()


@pytest.mark.faults
def test_a_reader_waits_until_its_server_has_taken_it_on_and_then_sees_the_same_rows(
    spark: SparkSession, packed: tuple[Path, Shown]
) -> None:
    lake, before = packed
    id = json.loads((lake / "lake.json").read_text())["id"]
    waiting = Views(spark, lake)
    with pytest.raises(FormatError, match=f"has format {OLDEST}"):
        waiting.follow()

    assert formats.acquire(lake) == id

    assert json.loads(json.dumps(shown(spark, lake))) == before
    with views_of(spark, lake) as views:
        (quarantined,) = views.rows("SELECT count(*) AS n FROM serve.orders_quarantine")
        (replayed,) = views.rows("SELECT count(*) AS n FROM serve.orders_replayed")
    assert quarantined["n"] > 0 and replayed["n"] > 0


@pytest.mark.faults
def test_a_reader_of_a_lake_that_becomes_newer_is_shown_nothing_that_it_could_misread(
    spark: SparkSession, packed: tuple[Path, Shown]
) -> None:
    lake, _ = packed
    formats.acquire(lake)
    with views_of(spark, lake) as views:
        found = formats.known(lake)
        assert found and spark.catalog.tableExists("serve.orders")
        (lake / "lake.json").write_text(json.dumps({"id": found.id, "format": 99, "needs": "9.0.0"}))

        with pytest.raises(FormatError, match="has format 99"):
            views.follow()

        assert not spark.catalog.tableExists("serve.orders")
        found.save(lake)
        views.follow()
        assert spark.catalog.tableExists("serve.orders")


@pytest.mark.faults
@pytest.mark.parametrize("point", [Point.BEFORE_FORMAT, Point.AFTER_FORMAT])
def test_a_server_that_is_killed_while_it_takes_the_lake_on_loses_nothing(
    spark: SparkSession, packed: tuple[Path, Shown], point: Point
) -> None:
    lake, before = packed
    home = lake.parent
    breakpoints = home / "breakpoints"
    breakpoints.mkdir()
    (breakpoints / point).write_text("")
    command = [sys.executable, "-m", "twinlake.server", "--home", str(home), "--port", str(free_port())]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--breakpoints", str(breakpoints)], cwd=PROJECT, stdout=log, stderr=log
        )
    reached = (breakpoints / f"{point}.reached").exists

    wait_for("the point", lambda: reached() or None, 120)
    server.kill()
    server.wait()

    found = formats.known(lake)
    assert found and found.format == OLDEST + (point is Point.AFTER_FORMAT)
    assert formats.acquire(lake) == found.id
    assert json.loads(json.dumps(shown(spark, lake))) == before


def test_its_rows_are_the_same_once_it_is_opened_and_a_plan_over_its_own_definitions_changes_nothing(
    lake: SmallLake,
) -> None:
    before = json.loads((lake.path.parent / "shown.json").read_text())["shown"]
    live = live_versions(lake.path)

    made = lake.do("plan", definitions={table: one.definition for table, one in live.items()})

    assert json.loads(json.dumps(lake.shown())) == before
    assert {
        one["table"]: (one["action"], one["fingerprint"] == live[one["table"]].fingerprint)
        for one in made["changes"]
    } == {table: ("changed", False) if table in CHANGED_SINCE else ("unchanged", True) for table in live}


@pytest.mark.faults
def test_it_is_verified_advanced_rebuilt_and_rolled_back(lake: SmallLake) -> None:
    live = release_log.live(lake.path)
    assert live
    status = lake.server.status()
    assert {one["name"]: one["state"] for one in status["topics"]} == dict.fromkeys(
        (one["name"] for one in status["topics"]), "running"
    )
    assert not [one for one in status["versions"] if one["stalled"]]
    versions = live_versions(lake.path).items()
    stored = [name for name, one in versions if is_stored(from_json(one.definition))]
    before = lake.shown()
    for table in live.tables:
        assert lake.do("verify", table=table)["equal"]
    for table in stored:
        assert lake.do("rebuild", table=table)["equal"]
    assert lake.shown() == before

    ingest: Any = lake.server.ingests["orders"]
    batch = ingest.append([order(number, event_id=f"new{number}", region="new") for number in range(40)])
    wait_for("the versions", lambda: lake_is_at(lake, batch) or None, 120)

    after = lake.shown()
    assert len(after["orders"]) == len(before["orders"]) + 40
    (new,) = [
        row for row in after["habits"] if row["region"] == "new" and row["window_start"] < "2026-01-31T12"
    ]
    assert new["number"] == 40
    assert lake.do("verify", table="sales_per_region")["equal"]
    rolled = lake.do("rollback", to=1, approved_by="me")
    assert (rolled["release"], rolled["restores"]) == (4, 1)
    assert lake.do("verify", table="sales_per_region")["equal"]
    counted = sum(row["orders"] for row in lake.shown()["sales_per_region"])
    assert counted == len(after["orders"])  # the first release counted cancelled orders, too


def lake_is_at(lake: SmallLake, batch: int) -> bool:
    health = lake.server.status()["versions"]
    return all(one["position"].get("orders", batch) == batch for one in health)
