"""A version that reads tables is brought forward while some of these are held by whoever waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.history import LATEST, SALES, MemoryLog, Orders, version_of
from twinlake.base.errors import StalledVersionError
from twinlake.base.job import Run
from twinlake.base.waiting import wait_for
from twinlake.batch.merge import merge_small
from twinlake.kinds.derived import Derived
from twinlake.speed.versions import Versions

RUN = Run(id="test")
BUYERS = Derived(
    name="buyers", reads=(SALES.name, LATEST.name), columns=("n",), keys=("n",), by=(),
    sql="SELECT count(*) AS n FROM latest_order CROSS JOIN sales_per_region",
)  # fmt: skip
VIEW = replace(
    version_of(BUYERS), topics=("orders",), reads={one.name: version_of(one).name for one in (SALES, LATEST)}
)


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> MemoryLog:
    return MemoryLog(spark, tmp_path)


@pytest.fixture
def versions(log: MemoryLog, tmp_path: Path) -> Iterator[Versions]:
    made = Versions(tmp_path, {"orders": log}, merge_small)
    for version in (version_of(SALES), version_of(LATEST), VIEW):
        made.start(version)
    yield made
    made.stop()


@pytest.mark.parametrize(("held", "slow"), [(SALES, LATEST), (LATEST, SALES)], ids=["the first", "the last"])
def test_a_table_below_that_is_there_and_held_is_not_waited_for(
    versions: Versions, log: MemoryLog, monkeypatch: pytest.MonkeyPatch, held: object, slow: object
) -> None:
    there, comes = version_of(held), version_of(slow)  # type: ignore[arg-type]
    versions.advance_to(VIEW, {"orders": 0}, RUN)  # both are open
    monkeypatch.setattr("twinlake.speed.wait_progress.STILL_S", 30.0)
    monkeypatch.setattr("twinlake.speed.versions.ANSWER_WAIT_S", 30.0)
    late = versions.owner(comes).hold(2)
    late.at.result(30)
    end = log.append(Orders(1).batch(10))
    versions.offer("orders", log.metadata(), log.rows(end - 1, end))
    wait_for("the first table", lambda: versions.position(there)["orders"] == end or None, 60)

    with versions.hold([there], 90, RUN) as still:
        reached = versions.advance_to(VIEW, {"orders": end}, RUN)
        stood = still.renew()

    assert reached == {"orders": end} == versions.position(comes)
    assert stood and not late.renew()


def test_a_version_that_cannot_be_opened_has_not_even_reached_the_beginning(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a build over an empty log would say that it is done."""

    def fails(*_: object) -> None:
        raise RuntimeError("the table cannot be made")

    monkeypatch.setattr("twinlake.speed.owner.RETRY_FIRST_S", 0.05)
    monkeypatch.setattr("twinlake.speed.owner.open_version", fails)
    green = replace(version_of(SALES), build=2)
    versions.start(green)

    with pytest.raises(StalledVersionError, match=f"{green} does not advance from batch 0") as stalled:
        versions.advance_to(green, {"orders": 0}, RUN)

    assert "the table cannot be made" in stalled.value.why
