"""A kept lake with a hopping table: its version is built again by tile, and the old one served until then."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import following_sql_server
from tests.small_lake.small import unpack
from tests.small_lake.test_small_lake import OLDEST, SmallLake, live_versions
from tests.world import Killed
from twinlake.kinds.windows import TILE
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.version import stored_versions
from twinlake.releases import tiled
from twinlake.releases.comparison import Comparison
from twinlake.releases.tiled import outdated

pytestmark = [pytest.mark.services, pytest.mark.faults]

TABLE = "habits"
STEPS = ("propose", "build", "compare", "promote")


def killed_after(step: Callable[..., Any]) -> Callable[..., Any]:
    def done(*given: Any) -> None:
        step(*given)
        raise Killed

    return done


def names(lake: Path, table: str = TABLE) -> list[str]:
    return [one.name for one in stored_versions(lake) if one.table == table and one.state == "living"]


def test_a_hopping_table_of_before_is_served_until_its_tiles_show_the_same_over_any_kill(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(OLDEST, tmp_path)
    before = json.loads((tmp_path / "shown.json").read_text())["shown"]
    old, kept = live_versions(path), names(path)
    with following_sql_server(path) as sql_url:
        for step in STEPS:
            with monkeypatch.context() as killing:
                killing.setattr(tiled, step, killed_after(getattr(tiled, step)))
                lake = SmallLake(spark, tmp_path, sql_url)
                job = lake.restructured()
                lake.stop()
            assert job is not None and job.state != "succeeded"
            is_live = live_versions(path)[TABLE].name == old[TABLE].name
            assert is_live == (step != "promote")
            assert json.loads(json.dumps(lake.shown())) == before
        lake = SmallLake(spark, tmp_path, sql_url)
        try:
            new = live_versions(path)
            assert outdated(lake.server.lake) == {}
            assert new[TABLE].definition["window"]["tiled"] and len(names(path)) == len(kept) + 1
            assert {name for name in new if new[name].name != old[name].name} == {TABLE}
            assert TILE in lake.server.lake.versions.opened(new[TABLE]).states.names
            assert lake.do("verify", table=TABLE)["equal"]
            assert json.loads(json.dumps(lake.shown())) == before
            live = release_log.live(path)
            assert live and (live.number, live.approved_by) == (3, release_log.NOBODY)
            assert lake.do("rollback", approved_by="me")["restores"] == 2
            assert lake.do("verify", table=TABLE)["equal"]
            assert json.loads(json.dumps(lake.shown())) == before
        finally:
            lake.stop()


def test_versions_that_differ_change_nothing_for_readers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(OLDEST, tmp_path)
    old = {table: one.name for table, one in live_versions(path).items()}
    monkeypatch.setattr(Comparison, "equal", property(lambda found: False))
    with following_sql_server(path) as sql_url:
        lake = SmallLake(spark, tmp_path, sql_url)
        try:
            job = lake.restructured()
        finally:
            lake.stop()

    assert job is not None and job.state == "failed" and job.error is not None
    assert "does not show what" in job.error["what"]
    assert {table: one.name for table, one in live_versions(path).items()} == old
