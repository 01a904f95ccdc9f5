"""A hopping table of before is stored by tile after a start, whoever is killed meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views
from twinlake.base.breakpoints import Point
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import Version, load, stored_versions, version_file

TABLE = "hopping_sales"
RECORDS = 2_000
SIZE, EVERY = timedelta(minutes=10), timedelta(minutes=2)
OF_BEFORE: dict[str, Any] = {
    "kind": "aggregate", "name": TABLE, "inputs": ["orders"], "explode": None, "where": None,
    "columns": [[name, name] for name in ("region", "ordered_at", "amount")], "keys": ["region"],
    "window": {"kind": "hopping", "on": "ordered_at", "size": "10 minutes", "every": "2 minutes"},
    "measures": [["sales", {"kind": "sum", "of": "amount"}], ["orders", {"kind": "count", "of": None}]],
}  # fmt: skip
"""As Twinlake wrote it while each window had rows of its own."""
POINTS = (Point.BEFORE_PARTIAL, Point.BEFORE_STEP_COMMIT, Point.BEFORE_RELEASE, Point.AFTER_RELEASE)

Shown = dict[tuple[str, datetime], tuple[Decimal, int]]


def live(server: LakeProcess) -> Version:
    release = release_log.live(server.lake)
    assert release is not None
    return load(version_file(server.lake, TABLE, release.tables[TABLE]))


def shown(views: Views) -> Shown:
    views.follow()
    rows = views.rows(f"SELECT * FROM serve.{TABLE}")
    found = {(one["region"], one["window_start"]): (one["sales"], one["orders"]) for one in rows}
    assert len(found) == len(rows)
    return found


def expected(server: LakeProcess) -> Shown:
    """Each event in every window that has its time, added up one by one."""
    groups: dict[tuple[str, datetime], list[Decimal]] = defaultdict(list)
    for _, event in server.valid_events():
        at = event["ordered_at"].replace(tzinfo=None)
        start = datetime.min + (at - datetime.min) // EVERY * EVERY
        while start > at - SIZE:
            groups[event["region"], start].append(event["amount"])
            start -= EVERY
    return {key: (sum(amounts, Decimal()), len(amounts)) for key, amounts in groups.items()}


@pytest.fixture
def server(tmp_path: Path, seed: int) -> Iterator[LakeProcess]:
    with lake_process(tmp_path, seed) as made:
        made.start()
        made.produce(RECORDS)
        made.until(made.caught_up)
        plan = made.do("plan", definitions={TABLE: OF_BEFORE})["id"]
        made.do("build", plan=plan)
        made.do("promote", plan=plan, approved_by="test")
        yield made


@pytest.mark.faults
def test_a_server_killed_while_it_stores_a_hopping_table_by_tile_serves_the_old_one_and_goes_on(
    spark: SparkSession, server: LakeProcess
) -> None:
    views, old = Views(spark, server.lake), live(server)
    assert "tiled" not in old.definition["window"]
    server.kill()
    try:
        for point in POINTS:
            server.stop_at(point, TABLE if point in POINTS[:2] else "")
            server.start()
            server.until_stopped_at(point)
            server.kill()
            assert (live(server).name == old.name) == (point is not Point.AFTER_RELEASE)
            assert shown(views) == expected(server)
        server.start()
        server.produce(RECORDS)
        server.until(server.caught_up)

        assert live(server).definition["window"]["tiled"]
        release = release_log.live(server.lake)
        assert release is not None and release.number == 2
        versions = [one for one in stored_versions(server.lake) if one.table == TABLE]
        assert len(versions) == 2
        assert shown(views) == expected(server) and server.do("verify", table=TABLE)["equal"]
    finally:
        views.close()
