"""The job store: accepted once per key, persisted, found again after a kill, cancelled between parts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import DifferenceError, NotFoundError, UsageError
from jobs.run import Run
from jobs.server.job_kinds import Kind, Params
from jobs.server.jobs import Jobs


class CopyParams(Params):
    table: str
    times: int = 1


class Work:
    """A handler that counts its calls, waits for leave, and fails when told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.go_on = threading.Event()
        self.error: Exception | None = None

    def __call__(self, kind: Kind, params: CopyParams, run: Run) -> dict[str, Any]:
        self.calls += 1
        run.progress(1, 4, "chunks", "working")
        while not self.go_on.wait(0.01):
            run.check_cancelled()
        if self.error:
            raise self.error
        return {"table": params.table, "times": params.times}


KINDS = {"copy": Kind(params=CopyParams, handler=lambda server, params, run: {})}


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.go_on.set()


@pytest.fixture
def jobs(tmp_path: Path, work: Work) -> Jobs:
    return Jobs(tmp_path, KINDS, work)


def test_a_job_runs_and_keeps_its_result(jobs: Jobs, work: Work) -> None:
    work.go_on.set()

    job = jobs.wait(jobs.submit("copy", {"table": "t", "times": 2}).id, 10)

    assert (job.state, job.result, job.error, job.attempt) == (
        "succeeded",
        {"table": "t", "times": 2},
        None,
        1,
    )
    assert job.created_at <= (job.started_at or "") <= (job.ended_at or "")


def test_the_same_key_is_the_same_job_and_runs_once(jobs: Jobs, work: Work) -> None:
    first, second = (jobs.submit("copy", {"table": "t"}, key="dag/run/task") for _ in range(2))
    work.go_on.set()
    jobs.wait(first.id, 10)

    assert first.id == second.id == jobs.submit("copy", {"table": "t"}, key="dag/run/task").id
    assert work.calls == 1


def test_a_key_does_not_name_two_things(jobs: Jobs, work: Work) -> None:
    work.go_on.set()
    jobs.submit("copy", {"table": "t"}, key="k")

    with pytest.raises(UsageError, match="belongs to another job"):
        jobs.submit("copy", {"table": "other"}, key="k")


def test_a_job_that_was_running_when_the_server_died_is_interrupted_and_its_key_runs_it_again(
    tmp_path: Path, jobs: Jobs, work: Work
) -> None:
    job = jobs.submit("copy", {"table": "t"}, key="k")
    while jobs.get(job.id).state != "running":
        pass
    after = Work()
    after.go_on.set()

    again = Jobs(tmp_path, KINDS, after)

    assert again.get(job.id).state == "interrupted"
    assert again.get(job.id).error["what"] == f"job {job.id} was interrupted"
    resumed = again.wait(again.submit("copy", {"table": "t"}, key="k").id, 10)
    assert (resumed.id, resumed.state, resumed.attempt, after.calls) == (job.id, "succeeded", 2, 1)
    assert Jobs(tmp_path, KINDS, after).get(job.id).state == "succeeded"
    work.go_on.set()


def test_a_job_that_was_accepted_but_not_started_is_done_after_the_restart(
    tmp_path: Path, work: Work
) -> None:
    busy = Jobs(tmp_path, KINDS, work)
    accepted = [busy.submit("copy", {"table": f"t{number}"}) for number in range(8)]
    after = Work()
    after.go_on.set()

    again = Jobs(tmp_path, KINDS, after)
    again.start()

    states = [again.wait(job.id, 10).state for job in accepted]
    assert set(states) == {"succeeded", "interrupted"} and states.count("succeeded") == after.calls >= 2
    work.go_on.set()


def test_cancel_ends_a_job_between_its_parts_and_frees_its_key(jobs: Jobs, work: Work) -> None:
    job = jobs.submit("copy", {"table": "t"}, key="k")
    while not jobs.get(job.id).progress:
        pass

    jobs.cancel(job.id)

    assert jobs.wait(job.id, 10).state == "cancelled"
    work.go_on.set()
    assert jobs.wait(jobs.submit("copy", {"table": "t"}, key="k").id, 10).attempt == 2


def test_an_error_that_an_operator_can_fix_keeps_its_three_parts_and_its_result(
    jobs: Jobs, work: Work
) -> None:
    work.error = DifferenceError("they differ", "because", "look")
    work.error.result = {"equal": False}  # type: ignore[attr-defined]
    work.go_on.set()

    job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    told = {"error": "DifferenceError", "what": "they differ", "why": "because", "remedy": "look"}
    assert (job.state, job.error, job.result) == ("failed", told, {"equal": False})


def test_progress_tells_the_time_that_is_left(jobs: Jobs, work: Work) -> None:
    job = jobs.submit("copy", {"table": "t"})
    while not jobs.get(job.id).progress:
        pass

    shown = jobs.get(job.id).progress

    assert (shown["done"], shown["total"], shown["unit"]) == (1, 4, "chunks") and shown["eta_s"] >= 0
    work.go_on.set()


@pytest.mark.parametrize("params", [{}, {"table": "t", "tiems": 2}, {"table": 1}])
def test_wrong_parameters_are_refused_by_name(jobs: Jobs, params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="parameters of copy"):
        jobs.submit("copy", params)
    with pytest.raises(NotFoundError):
        jobs.get("nothing")
