"""Rebuild, verify and clean-up as jobs of a whole lake server: beside each other, cancelled, repairing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.tables import sales_per_region
from tests.longer import some
from tests.releases.lake import Lake, order
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import UsageError
from twinlake.base.job import Job, Run
from twinlake.base.times import format_moment, utc_now
from twinlake.base.waiting import wait_for
from twinlake.batch import maintain
from twinlake.batch.rebuild import rebuild
from twinlake.kinds.evidence import SEGMENT
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import batch_epoch
from twinlake.lake.catalog.version import Version
from twinlake.lake.delta import delta

SALES = sales_per_region.TABLE.name
LONG_S = 60.0


class Sales:
    """The one table of a lake, all the orders behind it, and jobs about it."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.orders: list[dict[str, Any]] = []
        lake.promote(lake.build({SALES: sales_per_region.TABLE}))
        self.append()
        self.versions.close_segment(self.version)
        self.append()

    @property
    def versions(self) -> Any:
        return self.lake.server.lake.versions

    @property
    def version(self) -> Version:
        return self.lake.server.lake.version(SALES)

    @property
    def feed(self) -> MaintainedVersion:
        opened = self.versions.opened(self.version)
        assert isinstance(opened, MaintainedVersion)
        return opened

    def append(self, count: int = 100) -> None:
        """More orders, in the log and in the table."""
        fresh = [order(len(self.orders) + number) for number in range(count)]
        self.orders += fresh
        self.versions.advance_to(self.version, {"orders": self.lake.append(fresh)}, Run(id="append"))

    def corrupt(self, where: str) -> None:
        """A thousand orders too many in some stored rows, as only somebody beside the server can write."""
        table = f"delta.`{self.feed.path}`"
        self.feed.spark.sql(f"UPDATE {table} SET orders__n = orders__n + 1000 WHERE {where}")

    def submit(self, kind: str, **params: Any) -> Job:
        return self.lake.server.jobs.submit(kind, {"table": SALES, **params})

    def until(self, job: Job, message: str) -> None:
        """Until it says that it is doing this."""

        def says() -> bool | None:
            progress = self.lake.server.jobs.get(job.id).progress
            return True if str(progress.get("message")).startswith(message) else None

        wait_for(f"a job that is {message}", says, LONG_S, every_s=0.01)

    def ended(self, job: Job) -> Job:
        found = self.lake.server.jobs.wait(job.id, LONG_S)
        assert found.ended
        return found

    def replaced(self) -> int:
        """How many replaces its lock has seen."""
        return batch_epoch(self.feed) - 1

    def shown(self) -> dict[Any, Any]:
        return as_shown(self.feed.view(self.versions.pin(self.version)))

    def expected(self) -> dict[Any, Any]:
        sums: dict[Any, tuple[int, Decimal]] = defaultdict(lambda: (0, Decimal(0)))
        for one in self.orders:
            key = (one["region"], one["ordered_at"].replace(second=0))
            sums[key] = (sums[key][0] + 1, sums[key][1] + one["amount"])
        return dict(sums)


def as_shown(view: DataFrame) -> dict[Any, Any]:
    """Orders and sales by region and minute."""
    return {
        (row["region"], row["window_start"].astimezone(UTC)): (row["orders"], row["sales"])
        for row in view.collect()
    }


@pytest.fixture(scope="module")
def sales(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sales]:
    lake = Lake(spark, tmp_path_factory.mktemp("batch") / "home")
    try:
        yield Sales(lake)
    finally:
        lake.stop()


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where breakpoints are asked for."""
    monkeypatch.setattr(breakpoints, "_folder", None)
    folder = tmp_path / "breakpoints"
    breakpoints.honour(folder)
    yield folder
    for file in folder.glob("*"):
        file.unlink()


def test_of_two_rebuilds_at_once_the_second_waits_for_the_first(sales: Sales, asked: Path) -> None:
    before = sales.replaced()
    (asked / Point.BEFORE_REPLACE).touch()
    first = sales.submit("rebuild")
    reached = asked / f"{Point.BEFORE_REPLACE}.reached"
    wait_for("the first rebuild", lambda: True if reached.exists() else None, LONG_S)
    second = sales.submit("rebuild")
    sales.until(second, "waiting for the batch lock")
    sales.append()

    assert sales.replaced() == before
    reached.unlink()
    ends = [sales.ended(first), sales.ended(second)]

    assert [(one.state, one.result and one.result["equal"]) for one in ends] == [("succeeded", True)] * 2
    assert sales.replaced() == before + 2
    assert sales.shown() == sales.expected()


def test_a_rebuild_that_waited_replaces_what_is_closed_when_its_turn_comes(sales: Sales) -> None:
    """With the segment of the moment when it was asked for it would count everything twice."""
    before = sales.replaced()
    with sales.versions.batch_lock(sales.version):
        waiting = sales.submit("rebuild")
        sales.until(waiting, "waiting for the batch lock")
        sales.append()
        rebuild(
            sales.feed, sales.versions.close_segment(sales.version),
            lambda: sales.versions.open_segment(sales.version), Run(id="first"),
            sales.lake.path / "staging" / "first", "2026",
        )  # fmt: skip

    assert sales.ended(waiting).state == "succeeded"
    assert sales.replaced() == before + 2
    assert sales.shown() == sales.expected()


def test_a_rebuild_that_is_cancelled_while_it_computes_replaces_nothing(sales: Sales) -> None:
    before, job = sales.replaced(), sales.submit("rebuild")
    sales.until(job, "computing")
    sales.lake.server.jobs.cancel(job.id)

    assert sales.ended(job).state == "cancelled"
    assert sales.replaced() == before
    assert sales.shown() == sales.expected()
    assert sales.ended(sales.submit("rebuild")).state == "succeeded"
    assert sales.replaced() == before + 1


def test_a_verify_that_is_cancelled_while_it_compares_certifies_nothing(sales: Sales) -> None:
    certificates, version = sales.lake.server.lake.certificates, sales.version
    before, job = certificates.newest(SALES, version.name), sales.submit("verify")
    sales.until(job, "comparing")
    sales.lake.server.jobs.cancel(job.id)

    assert sales.ended(job).state == "cancelled"
    assert certificates.newest(SALES, version.name) == before
    assert sales.ended(sales.submit("verify")).state == "succeeded"
    assert certificates.newest(SALES, version.name) != before


@pytest.mark.parametrize("kind", some(["rebuild", "verify"]))
def test_a_difference_fails_the_job_and_is_replaced_only_when_told(sales: Sales, kind: str) -> None:
    sales.corrupt(f"{SEGMENT} < {sales.versions.open_segment(sales.version)} AND region = 'r1'")
    before, wrong = sales.replaced(), sales.shown()

    found = sales.ended(sales.submit(kind))
    assert (found.state, found.error and found.error["what"].partition(" differ ")[0]) == (
        "failed", "speed and batch",
    )  # fmt: skip
    assert found.result and found.result["differing"] > 0 and found.result["repaired"] == []
    assert (sales.replaced(), sales.shown()) == (before, wrong)

    repaired = sales.ended(sales.submit(kind, repair=True))
    assert (repaired.state, repaired.result and repaired.result["equal"]) == ("succeeded", True)
    assert repaired.result
    assert {one["key"]["region"] for one in repaired.result["repaired"]} == {"r1"}
    assert len(repaired.result["repaired"]) == found.result["differing"]
    assert sales.shown() == sales.expected()


@pytest.mark.faults
def test_what_is_due_is_what_the_log_has_gained_until_a_difference_makes_it_everything(sales: Sales) -> None:
    def done(kind: str) -> dict[str, Any]:
        result = sales.ended(sales.submit(kind, due=True)).result
        assert result
        return result

    for kind in ("rebuild", "verify"):
        sales.ended(sales.submit(kind))
    sales.append(1)
    before, rebuilt = sales.replaced(), done("rebuild")
    last = max(minute for _, minute in sales.expected())
    touched = len([minute for _, minute in sales.expected() if minute == last])

    assert rebuilt["equal"] and sales.replaced() == before + 1
    assert rebuilt["rows_compared"] == done("verify")["rows_compared"] == touched < len(sales.expected())
    assert done("rebuild")["rows_compared"] == 0
    certificate = sales.lake.server.lake.certificates.newest(SALES, sales.version.name)
    assert certificate and certificate.covers_all and not certificate.is_whole

    sales.corrupt(f"region = 'r1' AND window_start < TIMESTAMP '{last}'")
    assert done("rebuild")["equal"]  # nothing new there: the daily one finds it
    assert not sales.ended(sales.submit("verify")).result["equal"]  # type: ignore[index]
    found = done("rebuild")
    assert (found["equal"], found["covers"], found["replaced"]) == (False, "all of history", False)
    assert sales.ended(sales.submit("rebuild", due=True, repair=True)).state == "succeeded"
    assert done("rebuild")["equal"] and sales.shown() == sales.expected()


def test_what_a_backfill_has_replaced_is_verified_with_what_is_due(sales: Sales) -> None:
    whole = sales.ended(sales.submit("verify")).result
    minutes = sorted({minute for _, minute in sales.expected()})
    start, end = format_moment(minutes[0]), format_moment(minutes[1])
    sales.ended(sales.submit("rebuild", **{"from": start, "to": end}))

    found = sales.ended(sales.submit("verify", due=True)).result

    assert found and whole and 0 < found["rows_compared"] < whole["rows_compared"]
    made = sales.lake.server.lake.certificates.newest(SALES, sales.version.name)
    assert made and made.windows == [{"from": start, "to": end}] and made.covers_all


@pytest.mark.faults
def test_a_difference_that_is_found_beside_a_due_rebuild_stands(sales: Sales, asked: Path) -> None:
    sales.ended(sales.submit("rebuild"))
    sales.append(1)
    (asked / Point.BEFORE_REPLACE).touch()
    rebuilding = sales.submit("rebuild", due=True)
    reached = asked / f"{Point.BEFORE_REPLACE}.reached"
    wait_for("the rebuild", lambda: True if reached.exists() else None, LONG_S)
    last = max(minute for _, minute in sales.expected())
    sales.corrupt(f"region = 'r1' AND window_start < TIMESTAMP '{last}'")
    found = sales.ended(sales.submit("verify")).result
    reached.unlink()
    sales.ended(rebuilding)

    made = sales.lake.server.lake.certificates.newest(SALES, sales.version.name)
    assert found and not found["equal"] and made and not made.equal
    assert sales.ended(sales.submit("rebuild", due=True, repair=True)).state == "succeeded"
    assert sales.shown() == sales.expected()


def test_what_is_due_has_no_range_of_its_own(sales: Sales) -> None:
    job = sales.ended(sales.submit("rebuild", due=True, **{"from": "2026-01-01"}))

    assert job.error and job.error["what"] == "what is pending has its own range"


def test_what_was_changed_in_the_open_segment_is_seen_and_repaired(sales: Sales) -> None:
    sales.append()
    sales.corrupt(f"{SEGMENT} = {sales.versions.open_segment(sales.version)}")
    changed = {key for key, row in sales.shown().items() if row[0] > 1000}

    found = sales.ended(sales.submit("verify"))
    assert (found.state, found.result and found.result["differing"]) == ("failed", len(changed))
    assert sales.ended(sales.submit("verify", repair=True)).state == "succeeded"

    assert changed and sales.shown() == sales.expected()


@pytest.mark.faults
def test_what_a_running_job_has_pinned_is_cleaned_up_only_after_its_end(
    sales: Sales, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintain, "KEEP_COMMITS_S", 0)
    monkeypatch.setattr(maintain, "KEEP_FILES_HOURS", 0)
    lake, began = sales.lake.server.lake, format_moment(utc_now())
    reader = lake.runs.put(Job(id="reader", kind="verify", params={}, state="running", started_at=began))
    pin, shown = sales.versions.pin(sales.version), sales.shown()
    assert sales.ended(sales.submit("rebuild")).state == "succeeded"
    sales.append()
    snapshot = delta.snapshot(lake.spark, sales.feed.path)
    snapshot.deltaLog().checkpoint(snapshot, getattr(getattr(lake.spark._jvm.scala, "None$"), "MODULE$"))

    kept = maintain.maintain(lake, SALES)
    assert kept.commit_files_deleted == 0
    assert as_shown(sales.feed.view(pin)) == shown

    lake.runs.put(replace(reader, state="succeeded"))
    assert maintain.maintain(lake, SALES).commit_files_deleted > 0
    with pytest.raises(Exception, match=r"DELTA_|NOT_EXIST"):
        as_shown(sales.feed.view(pin))
    assert sales.shown() == sales.expected()


def test_a_verify_of_a_range_certifies_exactly_its_windows_and_says_where_the_first_one_is(
    sales: Sales,
) -> None:
    """Airflow's own backfill asks for each data interval, also for one in which nothing lies."""
    firsts = sorted({one["ordered_at"].replace(second=0, microsecond=0) for one in sales.orders})
    first, after = format_moment(firsts[0]), format_moment(firsts[1])

    some = sales.ended(sales.submit("verify", **{"from": first, "to": after})).succeeded()
    none = sales.ended(sales.submit("verify", **{"from": "2020-01-01", "to": "2020-01-02"})).succeeded()
    (kept,) = sales.lake.server.lake.certificates.of(SALES, 1)
    whole = sales.ended(sales.submit("verify")).succeeded()

    assert (some["covers"], some["equal"]) == (f"windows {first} to {after}", True)
    assert 0 < some["rows_compared"] < whole["rows_compared"]
    assert (none["equal"], none["rows_compared"]) == (True, 0)
    assert kept.covers == some["covers"], "of nothing no certificate is kept"
    assert (some["first_window"], none["first_window"], whole["first_window"]) == (first, first, None)


def test_a_repair_keeps_its_reason_and_a_reason_belongs_to_a_repair(sales: Sales) -> None:
    job = sales.ended(sales.submit("rebuild", repair=True, reason="a disk lost rows"))

    assert (job.state, job.params["reason"]) == ("succeeded", "a disk lost rows")
    with pytest.raises(UsageError, match="reason is that of `repair`"):
        sales.submit("rebuild", reason="for nothing")
