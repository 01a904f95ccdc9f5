"""A kind or a measure is one module and one line of a list: all layers run the toys of `tests/plugin`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.history import MemoryLog, Orders, version_of
from tests.plugin import AGES, LOGS, STATUSES, expected, promised, shown
from tests.plugin.their_tables import Ages, LogSum, Statuses
from tests.releases.lake import Lake, following_sql_server, order
from tests.releases.promised import project_of
from tests.world import World
from twinlake.base.job import Run
from twinlake.batch.verify import verify
from twinlake.kinds import all as kinds
from twinlake.kinds.equality import scale_of
from twinlake.kinds.kind import Kind, is_stored
from twinlake.kinds.measures import all as measures
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import LogView
from twinlake.lake.catalog.version import Pin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line of each list."""
    monkeypatch.setitem(kinds.KINDS, "ages", Ages)
    monkeypatch.setitem(kinds.KINDS, "statuses", Statuses)
    monkeypatch.setitem(measures.MEASURES, "log_sum", LogSum)


@pytest.mark.parametrize("table", [AGES, STATUSES, LOGS], ids=lambda table: table.name)
def test_a_new_kind_and_a_new_measure_come_back_from_json(table: Kind) -> None:
    assert kinds.from_json(table.to_json()) == table


@pytest.mark.parametrize("table", [AGES, LOGS], ids=lambda table: table.name)
def test_any_interleaving_of_steps_merges_and_rebuilds_shows_what_the_oracle_shows(
    spark: SparkSession, tmp_path: Path, table: Any
) -> None:
    world = World(spark=spark, lake=tmp_path, table=table)
    for _ in range(3):
        world.produce()
        world.step()
        world.close()
    world.merge()
    world.produce()
    world.restart()
    world.step()
    rebuilt = world.rebuild()
    world.produce()
    world.step()

    records = [record for batch in world.log.batches for record in batch]
    assert rebuilt.certificate.equal and rebuilt.replaced and world.verify().equal
    assert shown(world.feed.view(world.pin()).collect()) == expected(table, records)


def test_a_tampered_state_of_a_new_kind_is_found(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark=spark, lake=tmp_path, table=AGES)  # type: ignore[arg-type]
    world.produce()
    world.step()
    spark.sql(f"UPDATE delta.`{world.feed.path}` SET oldest = oldest - INTERVAL 1 DAY WHERE region = 'north'")

    found = world.verify()

    assert [(one["key"], one["cause"], one["columns"]) for one in found.differences] == [
        ({"region": "north"}, "state_differs", ["oldest"])
    ]


def test_a_double_of_a_new_measure_has_its_tolerance_in_states_and_views(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark=spark, lake=tmp_path, table=LOGS)
    world.produce()
    world.step()

    types = dict(world.feed.view(world.pin(), scaled=("logs",)).dtypes)
    assert LOGS.scales(world.feed.state_types) == {"logs__logs": "logs__size", "logs__size": "logs__size"}
    assert types == {"region": "string", "logs": "double", scale_of("logs"): "double"}
    spark.sql(f"UPDATE delta.`{world.feed.path}` SET logs__logs = logs__logs * (1 + 1e-12)")
    assert world.verify().equal
    spark.sql(f"UPDATE delta.`{world.feed.path}` SET logs__logs = logs__logs * (1 + 1e-6)")
    assert not world.verify().equal


def test_a_view_kind_is_verified_by_its_logs_alone(spark: SparkSession, tmp_path: Path) -> None:
    log, orders = MemoryLog(spark, tmp_path), Orders(1)
    log.append(orders.batch(5))
    view = LogView(version=version_of(STATUSES), definition=STATUSES, logs={"orders": log})  # type: ignore[dict-item]
    pin = Pin(version=view.version, position={"orders": 1})
    assert verify(view, pin, Run(id="v"), "2026").equal
    log.batches[0].append(log.batches[0][0])

    found = verify(view, pin, Run(id="v"), "2026")

    assert (found.equal, found.differing, found.rows_compared) == (False, 1, 5)
    assert found.differences[0]["cause"] == "counted_more_than_once"


@pytest.mark.faults
def test_new_kinds_are_planned_built_compared_and_released_together(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Blue and green of each toy meet at one position; one release switches them all."""
    records = [order(number) for number in range(60)]
    toys: dict[str, Any] = {table.name: table for table in (AGES, STATUSES, LOGS)}
    greens = {
        "ages": replace(AGES, where="status <> 'cancelled'"),
        "statuses": replace(STATUSES, column="region"),
        "logs": replace(LOGS, where="amount > 0.10"),
    }
    with following_sql_server(tmp_path / "home" / "lake") as sql_url:
        lake = Lake(spark, tmp_path / "home", sql_url, project_of(tmp_path / "project", promised("status")))
        try:
            lake.promote(lake.build(toys))
            project_of(tmp_path / "project", promised("region"))
            lake.append(records)
            plan = lake.build(greens)
            found = {name: lake.do("diff", table=name, plan=plan) for name in toys}
            release = lake.promote(plan)
            served = {name: view_of(lake, name) for name in toys}
            status = {one["table"]: one for one in lake.server.status()["versions"]}
        finally:
            lake.stop()

    assert {name: one["position"] for name, one in found.items()} == {name: {"orders": 1} for name in toys}
    assert found["ages"]["changed"] == 1 and found["logs"]["changed"] > 0
    assert (found["statuses"]["common"], found["statuses"]["only_green"]) == (0, 5)
    assert set(release["tables"]) == set(toys) == set(release_log.live(lake.path).tables)  # type: ignore[union-attr]
    assert served["ages"] == expected(AGES, [one for one in records if one["status"] != "cancelled"])
    assert served["statuses"] == {f"r{number}": 12 for number in range(5)}
    assert (status["statuses"]["step"], status["statuses"]["lag_records"]) == (None, None)
    assert not is_stored(STATUSES) and not list((lake.path / "tables" / "statuses").glob("*/_delta_log"))


def view_of(lake: Lake, table: str) -> dict[str, Any]:
    open_lake = lake.server.lake
    version = open_lake.version(table)
    opened = open_lake.versions.opened(version)
    return shown(opened.view(open_lake.versions.pin(version)).collect())
