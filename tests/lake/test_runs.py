"""The record of every job: what was put survives a restart, what was only shown does not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinlake.base.job import Job
from twinlake.lake.catalog import runs as module
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.delta import ledger

PROGRESS: dict[str, Any] = {"done": 1, "total": 4, "unit": "chunks"}


def job(minute: int, **more: Any) -> Job:
    return Job(**{"id": f"job{minute}", "kind": "verify", "params": {"table": "sales", "versions": [1, None]},
                  "created_at": f"2026-01-31T12:{minute:02}:00Z", **more})  # fmt: skip


def ended(minute: int, **more: Any) -> Job:
    """A job with a value of its own in every field."""
    usual: dict[str, Any] = {
        "key": "nightly", "state": "failed", "result": {"differing": 2, "differences": [{"why": "ä"}]},
        "error": {"what": "they differ", "why": "", "remedy": ""}, "started_at": "2026-01-31T13:00:00Z",
        "ended_at": "2026-01-31T13:05:00Z", "attempt": 3,
    }  # fmt: skip
    return job(minute, **{**usual, **more})


def test_a_job_is_found_as_it_was_last_put(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.put(job(1))

    put = runs.put(job(1, state="running"))

    assert (put, runs.get("job1")) == (job(1, state="running"), job(1, state="running"))


def test_a_job_that_was_never_put_is_not_found(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.put(job(1))

    assert (runs.get("job2"), runs.get("")) == (None, None)


def test_a_job_is_found_by_its_key_as_it_was_last_put(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.put(job(1, key="nightly"))
    runs.put(job(2, key="hourly"))

    runs.put(job(1, key="nightly", attempt=2))

    assert runs.with_key("nightly") == job(1, key="nightly", attempt=2)


def test_a_job_without_a_key_is_found_by_none(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.put(job(1))
    runs.put(job(2, key=""))

    assert (runs.with_key(""), runs.with_key("None"), runs.with_key("job1")) == (None, None, None)


def test_all_jobs_come_newest_first_each_once(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for put in (job(2), job(1), job(3), job(1, state="running")):
        runs.put(put)

    assert runs.all() == [job(3), job(2), job(1, state="running")]


def test_jobs_survive_a_restart_as_they_were_last_put(tmp_path: Path) -> None:
    before = Runs(tmp_path)
    for put in (job(1, key="nightly"), job(2), ended(1)):
        before.put(put)

    restarted = Runs(tmp_path)

    assert restarted.all() == [job(2), ended(1)]
    assert restarted.with_key("nightly") == ended(1)


def test_what_is_put_after_a_restart_is_newer_than_all_before_it(tmp_path: Path) -> None:
    before = Runs(tmp_path)
    before.put(job(1))
    before.put(job(1, state="running"))
    Runs(tmp_path).put(job(1, state="interrupted"))

    restarted = Runs(tmp_path)

    assert restarted.all() == [job(1, state="interrupted")]


def test_progress_does_not_survive_a_restart(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.put(job(1, progress=PROGRESS))

    restarted = Runs(tmp_path)

    assert (runs.get("job1"), restarted.get("job1")) == (job(1, progress=PROGRESS), job(1))


def test_what_is_shown_is_found_at_once_and_never_persisted(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    put = runs.put(job(1, key="nightly"))

    runs.show(replace(put, state="running", progress=PROGRESS))

    shown = job(1, key="nightly", state="running", progress=PROGRESS)
    assert (runs.get("job1"), runs.with_key("nightly"), runs.all()) == (shown, shown, [shown])
    assert Runs(tmp_path).all() == [job(1, key="nightly")]


def test_the_last_state_of_a_job_is_still_the_last_after_a_clean_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 1)
    runs = Runs(tmp_path)
    for state in ("queued", "running", "succeeded"):
        runs.put(job(1, state=state))

    compacted = runs.compact()

    assert (compacted, Runs(tmp_path).all()) == (True, [job(1, state="succeeded")])


def test_of_many_jobs_that_ended_the_last_are_kept_and_every_other_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "COMPACT_ABOVE_FILES", 1)
    monkeypatch.setattr(module, "KEEP_ENDED", 2)
    runs = Runs(tmp_path)
    runs.put(job(0, key="waits"))
    runs.put(ended(4, kind="promote", key="once"))
    runs.put(ended(6, kind="retire", key="each night"))
    for minute in (5, 1, 2, 3):
        runs.put(job(minute, key=f"k{minute}"))
        runs.put(ended(minute, key=f"k{minute}"))

    assert runs.compact()

    for found in (runs, Runs(tmp_path)):
        assert sorted(one.id for one in found.all()) == ["job0", "job2", "job3", "job4"]
        assert (found.with_key("k5"), found.with_key("k3")) == (None, ended(3, key="k3"))
        assert found.with_key("waits") == job(0, key="waits")
    runs.put(job(7))
    assert len(Runs(tmp_path).all()) == 5


def test_jobs_that_threads_put_at_once_all_survive(tmp_path: Path) -> None:
    jobs = [job(minute) for minute in range(16)]
    runs = Runs(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(runs.put, jobs))

    assert Runs(tmp_path).all() == runs.all() == jobs[::-1]


@pytest.mark.parametrize(
    ("state", "ended"),
    [("queued", False), ("running", False), ("succeeded", True), ("failed", True), ("cancelled", True),
     ("interrupted", True)],
)  # fmt: skip
def test_a_job_has_ended_in_every_state_but_the_first_two(state: str, ended: bool) -> None:
    assert job(1, state=state).ended is ended
