"""A paused table stands still, its log and every other table go on, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.tables import latest_order, sales_per_region
from tests.project import TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.errors import NotFoundError, StalledVersionError, UsageError
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.kinds.kind import Kind
from twinlake.speed.advance import LONG_RECORDS

SALES, LATEST = sales_per_region.TABLE, latest_order.TABLE
FIRST: dict[str, Kind] = {table.name: table for table in TABLES}
SECOND = {**FIRST, SALES.name: replace(SALES, where="status <> 'cancelled'")}


class Opened:
    """A lake with a release; `restart` opens it as a process does that comes after one that was killed."""

    def __init__(self, spark: SparkSession, home: Path, sql_url: str) -> None:
        self.spark, self.home, self.sql_url = spark, home, sql_url
        self.lake = Lake(spark, home, sql_url)
        self.lake.promote(self.lake.build(FIRST))

    def restart(self) -> None:
        self.lake.stop()
        self.lake = Lake(self.spark, self.home, self.sql_url)

    def append(self, *numbers: int) -> int:
        return self.lake.append([order(number) for number in numbers])

    def at(self, table: str) -> int:
        version = self.lake.server.lake.version(table)
        return self.lake.server.lake.versions.position(version)["orders"]

    def until(self, table: str, batch: int) -> None:
        wait_for(f"{table} at {batch}", lambda: self.at(table) == batch or None, 300, every_s=0.05)

    def shown(self, table: str) -> dict[str, Any]:
        return next(one for one in self.lake.server.status()["versions"] if one["table"] == table)


@pytest.fixture
def opened(spark: SparkSession, tmp_path: Path) -> Iterator[Opened]:
    with following_sql_server(tmp_path / "lake") as sql_url:
        found = Opened(spark, tmp_path, sql_url)
        yield found
        found.lake.stop()


def test_a_paused_table_stands_still_over_a_restart_and_misses_nothing(opened: Opened) -> None:
    opened.append(1, 2)
    opened.until(SALES.name, 1)
    paused = opened.lake.do("pause", name=SALES.name, by="anna", reason="wrong totals")
    twice = opened.lake.do("pause", name=SALES.name, by="ben")
    opened.append(3, 4)
    opened.until(LATEST.name, 2)
    verified = opened.lake.do("verify", table=SALES.name)
    report = wait_for("readers to be told", opened.lake.told_of_some, 30)
    with pytest.raises(StalledVersionError, match="takes no step") as waited:
        opened.lake.server.lake.versions.advance_to(
            opened.lake.server.lake.version(SALES.name), {"orders": 2}, Run(id="test")
        )
    opened.restart()
    opened.append(5)
    opened.until(LATEST.name, 3)
    still, shown = opened.at(SALES.name), opened.shown(SALES.name)
    (listed,) = opened.lake.server.status()["paused"]
    resumed = opened.lake.do("resume", name=SALES.name, by="anna")
    opened.until(SALES.name, 3)

    (position,) = paused["position"].values()
    assert (paused["changed"], twice["changed"], position) == (True, False, {"orders": 1})
    assert twice["paused"] == paused["paused"] == listed
    assert "by anna: wrong totals" in waited.value.why and "resume sales_per_region" in waited.value.remedy
    assert verified["position"] == {"orders": 1}
    (told,) = report.stalled
    assert told.table == SALES.name and "wrong totals" in told.why and told.position == {"orders": 1}
    assert (still, shown["stalled"], shown["paused"]["by"], shown["lag_records"]) == (1, True, "anna", 3)
    assert (resumed["changed"], opened.lake.do("resume", name=SALES.name, by="a")["changed"]) == (True, False)
    assert opened.lake.do("verify", table=SALES.name)["equal"]
    assert opened.lake.server.status()["paused"] == [] and opened.shown(SALES.name)["paused"] is None


def test_a_table_is_paused_in_the_middle_of_a_backlog(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.lake.do("pause", name=SALES.name, by="anna")
    for first in range(0, 60, 5):
        opened.append(*range(first, first + 5))
    owner = opened.lake.server.lake.versions.owner(opened.lake.server.lake.version(SALES.name))
    owner._long_records = 5  # a step is a batch
    opened.lake.do("resume", name=SALES.name, by="anna")
    wait_for("the first steps", lambda: opened.at(SALES.name) >= 2 or None, 300, every_s=0.01)

    paused = opened.lake.do("pause", name=SALES.name, by="anna")
    ((stands,),) = [tuple(position.values()) for position in paused["position"].values()]
    batch = opened.append(99)
    opened.until(LATEST.name, batch)

    assert 2 <= stands < 12 and opened.at(SALES.name) == stands
    owner._long_records, owner._planned = LONG_RECORDS, []
    opened.lake.do("resume", name=SALES.name, by="anna")
    opened.until(SALES.name, batch)


def test_a_release_of_another_definition_goes_on_and_resolves_the_pause(opened: Opened) -> None:
    opened.append(*range(1, 30))
    opened.until(SALES.name, 1)
    opened.lake.do("pause", name=SALES.name, by="anna")
    opened.append(*range(30, 40))
    plan = opened.lake.build(SECOND)
    compared = opened.lake.do("diff", table=SALES.name, plan=plan)
    opened.lake.promote(plan)
    batch = opened.append(41)
    opened.until(SALES.name, batch)

    assert compared["position"] == {"orders": 1}  # where the paused one stands
    with pytest.raises(StalledVersionError, match="takes no step"):  # its readers would go back
        opened.lake.do("rollback", approved_by="tester")
    opened.lake.do("resume", name=SALES.name, by="anna")
    assert opened.lake.do("rollback", approved_by="tester")["changed"]
    assert opened.at(SALES.name) == batch


def test_what_cannot_be_paused_is_said_with_what_can(opened: Opened) -> None:
    with pytest.raises(NotFoundError) as unknown:
        opened.lake.do("pause", name="nothing", by="anna")
    with pytest.raises(NotFoundError):
        opened.lake.do("resume", name="nothing", by="anna")
    with pytest.raises(UsageError, match="table orders cannot be paused") as view:
        opened.lake.do("pause", name="orders", kind="table", by="anna")

    assert unknown.value.why == (
        "topics: orders; tables: latest_order, sales_per_region; changelogs: none"
    )
    assert view.value.remedy == "pause what it reads: topic orders"

