"""How fast this lake builds is learned from its last long build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twinlake.base.job import Job
from twinlake.lake.catalog.runs import Runs
from twinlake.releases.history import LONG_BUILD_RECORDS, measured_rate

LONG = 4 * LONG_BUILD_RECORDS


def job(minute: int, result: dict[str, Any] | None, kind: str = "build", state: Any = "succeeded") -> Job:
    return Job(
        id=f"job{minute}", kind=kind, params={}, state=state, result=result,
        created_at=f"2026-01-31T12:{minute:02}:00Z",
    )  # fmt: skip


def built(records: int, seconds: float, *tables: str) -> dict[str, Any]:
    return {"built": list(tables), "records": records, "seconds": seconds}


def rate_after(lake: Path, *jobs: Job) -> float | None:
    runs = Runs(lake)
    for one in jobs:
        runs.put(one)
    return measured_rate(runs)


def test_the_rate_is_that_of_the_newest_long_build(tmp_path: Path) -> None:
    older, newer = job(1, built(LONG, 1.0, "sales")), job(2, built(LONG, 4.0, "sales"))

    rate = rate_after(tmp_path, newer, older)

    assert rate == LONG_BUILD_RECORDS


def test_a_short_build_measures_nothing(tmp_path: Path) -> None:
    long, short = job(1, built(LONG, 2.0, "sales")), job(2, built(LONG_BUILD_RECORDS - 1, 9.0, "sales"))

    rate = rate_after(tmp_path, long, short)

    assert rate == LONG / 2


def test_a_build_that_did_not_succeed_measures_nothing(tmp_path: Path) -> None:
    failed = job(2, built(LONG, 1.0, "sales"), state="failed")
    running = job(3, None, state="running")

    rate = rate_after(tmp_path, job(1, built(LONG, 2.0, "sales")), failed, running)

    assert rate == LONG / 2


def test_a_build_that_found_every_version_there_measures_nothing(tmp_path: Path) -> None:
    rate = rate_after(tmp_path, job(1, built(LONG, 2.0)))

    assert rate is None


def test_a_job_of_another_kind_measures_nothing(tmp_path: Path) -> None:
    rate = rate_after(tmp_path, job(1, built(LONG, 2.0, "sales"), kind="rebuild"))

    assert rate is None


def test_a_build_that_took_no_time_measures_nothing(tmp_path: Path) -> None:
    rate = rate_after(tmp_path, job(1, built(LONG, 0.0, "sales")))

    assert rate is None


def test_a_lake_without_builds_has_no_rate(tmp_path: Path) -> None:
    assert measured_rate(Runs(tmp_path)) is None
