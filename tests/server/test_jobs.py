"""The job store: accepted once per key, persisted, found again after a kill, cancelled between parts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from twinlake.base.errors import BusyError, DifferenceError, NotFoundError, UsageError
from twinlake.base.job import Failed, Job, Run
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.audit_log import AuditLog
from twinlake.lake.catalog.runs import Runs
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import Params
from twinlake.server.jobs import AT_ONCE, QUEUE_LIMIT, Jobs

DIFFERENCE = DifferenceError("they differ", "because", "look")


class CopyParams(Params):
    table: str
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Copied:
    table: str
    times: int

    def to_json(self) -> dict[str, Any]:
        return {"table": self.table, "times": self.times}


class Untold:
    """A result that cannot be told."""

    def to_json(self) -> dict[str, Any]:
        raise ValueError("no words")


class NoJson:
    """A result that says something that JSON cannot hold."""

    def to_json(self) -> dict[str, Any]:
        return {"held": object()}


class Work:
    """A handler that counts its calls, waits for leave, and ends as it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.go_on = threading.Event()
        self.error: Exception | None = None
        self.end: Callable[[Copied], Any] = lambda copied: copied

    def __call__(self, kind: JobKind, params: CopyParams, run: Run) -> Any:
        self.calls += 1
        self.run = run
        run.progress(1, 4, "chunks", "working")
        while not self.go_on.wait(0.01):
            run.check_cancelled()
        if self.error:
            raise self.error
        return self.end(Copied(table=params.table, times=params.times))


def ticking() -> Callable[[], datetime]:
    """A clock that is a second further each time it is asked."""
    seconds = count()
    return lambda: datetime(2026, 1, 31, 12, 0, tzinfo=UTC) + timedelta(seconds=next(seconds))


KINDS = {
    "copy": JobKind(params=CopyParams, handler=lambda lake, params, run: Untold()),
    "rescue": JobKind(params=CopyParams, handler=lambda lake, params, run: Untold(), urgent=True),
}
CLOCK = ticking()


def jobs_of(lake: Path, work: Work, runs: Runs | None = None) -> Jobs:
    """The jobs as a server finds them that starts on this lake."""
    jobs = Jobs(runs or Runs(lake), AuditLog(lake), KINDS, work, CLOCK)
    jobs.start()
    return jobs


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.go_on.set()


@pytest.fixture
def jobs(tmp_path: Path, work: Work) -> Jobs:
    return jobs_of(tmp_path, work)


def once(jobs: Jobs, id: str, true: Callable[[Job], Any]) -> Job:
    """The job as soon as it is like this."""
    return wait_for("the job", lambda: job if true(job := jobs.get(id)) else None, 10, every_s=0.002)


def test_a_key_of_before_a_kind_gained_a_parameter_finds_its_job(tmp_path: Path, work: Work) -> None:
    runs = Runs(tmp_path)
    kept = Job(id="old", kind="copy", params={"table": "t"}, key="k", state="succeeded", created_at="1",
               ended_at="2026-01-31T12:00:00Z")  # fmt: skip
    runs.put(kept)
    jobs = jobs_of(tmp_path, work, runs)

    assert jobs.submit("copy", {"table": "t"}, "k").id == "old"
    with pytest.raises(UsageError, match="belongs to another job"):
        jobs.submit("copy", {"table": "t", "times": 2}, "k")


def test_a_job_runs_and_keeps_its_result(tmp_path: Path, work: Work) -> None:
    work.go_on.set()
    jobs = Jobs(Runs(tmp_path), AuditLog(tmp_path), KINDS, work, ticking())
    jobs.start()

    job = jobs.wait(jobs.submit("copy", {"table": "t", "times": 2}).id, 10)

    assert (job.state, job.result, job.error, job.attempt) == (
        "succeeded",
        {"table": "t", "times": 2},
        None,
        1,
    )
    assert (job.created_at, job.started_at, job.ended_at) == (
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:01Z",
        "2026-01-31T12:00:02Z",
    )


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
    once(jobs, job.id, lambda job: job.state == "running")
    after = Work()
    after.go_on.set()

    again = jobs_of(tmp_path, after)

    found = again.get(job.id)
    assert found.state == "interrupted" and found.error is not None
    assert found.error["what"] == f"job {job.id} was interrupted"
    resumed = again.wait(again.submit("copy", {"table": "t"}, key="k").id, 10)
    assert (resumed.id, resumed.state, resumed.attempt, after.calls) == (job.id, "succeeded", 2, 1)
    assert jobs_of(tmp_path, after).get(job.id).state == "succeeded"


@pytest.mark.parametrize(
    ("job", "is_alive"),
    [
        ({"state": "queued"}, True),
        ({"state": "running"}, False),  # it has no key, and the server has ended since
        ({"state": "running", "key": "k"}, True),
        ({"state": "interrupted", "key": "k", "ended_at": "2026-01-24T12:00:01Z"}, True),
        ({"state": "interrupted", "key": "k", "ended_at": "2026-01-24T11:59:59Z"}, False),
        ({"state": "failed", "key": "k", "ended_at": "2026-01-31T11:59:59Z"}, False),
    ],
)
def test_what_a_job_has_staged_is_kept_until_its_end_and_a_week_for_an_interrupted_one_with_a_key(
    tmp_path: Path, work: Work, job: dict[str, Any], is_alive: bool
) -> None:
    runs = Runs(tmp_path)
    runs.put(Job(**{"id": "j", "kind": "copy", "params": {"table": "t"}, **job}))

    jobs = Jobs(runs, AuditLog(tmp_path), KINDS, work, lambda: datetime(2026, 1, 31, 12, 0, tzinfo=UTC))

    assert jobs.alive() == ({"j"} if is_alive else set())


def test_a_job_that_was_accepted_but_not_started_is_done_after_the_restart(
    tmp_path: Path, work: Work
) -> None:
    busy = jobs_of(tmp_path, work)
    accepted = [busy.submit("copy", {"table": f"t{number}"}) for number in range(8)]
    after = Work()
    after.go_on.set()

    again = jobs_of(tmp_path, after)

    states = [again.wait(job.id, 10).state for job in accepted]
    assert set(states) == {"succeeded", "interrupted"} and states.count("succeeded") == after.calls >= 2


def test_only_so_many_jobs_wait_and_the_next_one_is_not_accepted(tmp_path: Path, work: Work) -> None:
    runs = Runs(tmp_path)
    for number in range(QUEUE_LIMIT):
        runs.show(Job(id=f"j{number}", kind="copy", params={"table": "t"}))
    jobs = Jobs(runs, AuditLog(tmp_path), KINDS, work, ticking())

    with pytest.raises(BusyError, match="too many jobs are waiting") as refused:
        jobs.submit("copy", {"table": "t"})
    assert len(jobs.list()) == QUEUE_LIMIT
    assert refused.value.remedy == "wait, or cancel some"
    jobs.cancel("j0")
    assert jobs.submit("copy", {"table": "t"}).kind == "copy"


def test_cancel_ends_a_job_between_its_parts_and_frees_its_key(jobs: Jobs, work: Work) -> None:
    job = jobs.submit("copy", {"table": "t"}, key="k")
    once(jobs, job.id, lambda job: job.progress)

    jobs.cancel(job.id)

    assert jobs.wait(job.id, 10).state == "cancelled"
    work.go_on.set()
    assert jobs.wait(jobs.submit("copy", {"table": "t"}, key="k").id, 10).attempt == 2


def test_cancel_reaches_what_runs_in_spark_under_the_job_s_tag(tmp_path: Path, work: Work) -> None:
    tags: list[str] = []
    jobs = Jobs(Runs(tmp_path), AuditLog(tmp_path), KINDS, work, CLOCK, tags.append)
    jobs.start()
    job = jobs.submit("copy", {"table": "t"})
    once(jobs, job.id, lambda job: job.progress)

    jobs.cancel(job.id)

    assert jobs.wait(job.id, 10).state == "cancelled"
    assert tags == [f"job-{job.id}"]


def test_a_handler_that_raises_an_error_fails_with_its_three_parts_and_without_a_result(
    jobs: Jobs, work: Work
) -> None:
    work.error = DIFFERENCE
    work.go_on.set()

    job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    told = {"error": "DifferenceError", "what": "they differ", "why": "because", "remedy": "look"}
    assert (job.state, job.error, job.result) == ("failed", told, None)


def test_a_failed_job_keeps_its_error_and_its_result_over_a_restart(
    tmp_path: Path, jobs: Jobs, work: Work
) -> None:
    work.end = lambda copied: Failed(error=DIFFERENCE, result=copied)
    work.go_on.set()

    job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    assert (job.state, job.error, job.result) == (
        "failed",
        DIFFERENCE.to_json(),
        {"table": "t", "times": 1},
    )
    assert jobs_of(tmp_path, work).get(job.id) == Job(**{**vars(job), "progress": {}})


def test_a_failed_job_starts_again_under_its_key_without_its_old_error_and_result(
    jobs: Jobs, work: Work
) -> None:
    work.end = lambda copied: Failed(error=DIFFERENCE, result=copied)
    work.go_on.set()
    jobs.wait(jobs.submit("copy", {"table": "t"}, key="k").id, 10)
    work.go_on.clear()

    again = jobs.submit("copy", {"table": "t"}, key="k")

    assert (again.state, again.error, again.result, again.attempt) == ("queued", None, None, 2)


def test_an_error_that_nobody_foresaw_fails_the_job_and_says_where_to_look(jobs: Jobs, work: Work) -> None:
    work.error = ZeroDivisionError("by nothing")
    work.go_on.set()

    job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    assert (job.state, job.error) == (
        "failed",
        {
            "error": "TwinlakeError",
            "what": "copy failed",
            "why": "ZeroDivisionError: by nothing",
            "remedy": "see `twinlake logs lake` for the whole error",
        },
    )
    work.error = None
    assert jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10).state == "succeeded"


def test_what_a_job_logs_names_the_job_its_kind_and_its_table(jobs: Jobs, work: Work) -> None:
    work.error = ZeroDivisionError("by nothing")
    work.go_on.set()

    with capture_logs([merge_contextvars]) as lines:
        job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    of_job = {"job": job.id, "kind": "copy", "table": "t"}
    assert lines == [
        {"event": "the job begins", "log_level": "info", "attempt": 1, **of_job},
        {"event": "the job failed", "log_level": "error", "exc_info": True, **of_job},
        {"event": "the job ended", "log_level": "error", "state": "failed", "why": "copy failed", **of_job},
    ]


@pytest.mark.parametrize("end", [lambda copied: Untold(), lambda copied: NoJson(), lambda copied: None])
def test_a_result_that_cannot_be_told_fails_the_job(jobs: Jobs, work: Work, end: Any) -> None:
    work.end = end
    work.go_on.set()

    job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    assert (job.state, (job.error or {}).get("what"), job.result) == ("failed", "copy failed", None)


def test_progress_tells_the_time_that_is_left(jobs: Jobs, work: Work) -> None:
    job = jobs.submit("copy", {"table": "t"})

    shown = once(jobs, job.id, lambda job: job.progress).progress

    assert (shown["done"], shown["total"], shown["unit"]) == (1, 4, "chunks") and shown["eta_s"] >= 0


def test_a_job_that_waits_says_for_what_until_it_goes_on(jobs: Jobs, work: Work) -> None:
    id = jobs.submit("copy", {"table": "t"}).id
    once(jobs, id, lambda job: job.progress)

    work.run.waits("another copy to end")
    waiting = jobs.get(id)
    work.run.waits(None)

    assert waiting.summary() == "running, 1 of 4 chunks, working, waiting for another copy to end"
    assert "waiting" not in jobs.get(id).summary()
    work.go_on.set()
    jobs.wait(id, 10)
    work.run.waits("what comes after its end")
    assert jobs.get(id).progress.get("waiting_for") is None


def test_a_job_that_has_no_place_yet_says_so(jobs: Jobs, work: Work) -> None:
    ids = [jobs.submit("copy", {"table": "t"}).id for _ in range(AT_ONCE + 1)]
    for id in ids[:-1]:
        once(jobs, id, lambda job: job.state == "running")

    assert jobs.get(ids[-1]).summary() == f"queued, waiting for one of {AT_ONCE} other jobs to end"
    work.go_on.set()
    assert jobs.wait(ids[-1], 10).state == "succeeded"


def test_a_job_without_progress_for_too_long_says_so_until_it_goes_on(tmp_path: Path, work: Work) -> None:
    jobs = Jobs(Runs(tmp_path), AuditLog(tmp_path), KINDS, work, CLOCK, patience_s=0.3)
    jobs.start()
    id = jobs.submit("copy", {"table": "t"}).id
    assert once(jobs, id, lambda job: job.progress).idle_minutes is None

    stuck = once(jobs, id, lambda job: job.idle_minutes is not None)
    work.run.moved()

    assert "no progress for 0 minutes" in stuck.summary() and jobs.list()[0].idle_minutes is None
    assert jobs.get(id).idle_minutes is None
    assert once(jobs, id, lambda job: job.idle_minutes is not None).state == "running"


def test_a_job_is_found_by_its_key_and_not_started_again(jobs: Jobs, work: Work) -> None:
    work.error = UsageError("it is wrong", "", "")
    work.go_on.set()
    ended = jobs.wait(jobs.submit("copy", {"table": "t"}, key="k").id, 10)

    assert [job.id for job in jobs.list(key="k")] == [ended.id] and jobs.list(key="other") == []
    assert jobs.get(ended.id).attempt == 1 and work.calls == 1


def test_a_job_that_comes_before_the_start_waits_for_it(tmp_path: Path, work: Work) -> None:
    work.go_on.set()
    jobs = Jobs(Runs(tmp_path), AuditLog(tmp_path), KINDS, work, CLOCK)
    early = jobs.submit("copy", {"table": "t"})
    assert jobs.wait(early.id, 0.2).state == "queued" and work.calls == 0

    jobs.start()

    assert jobs.wait(early.id, 10).state == "succeeded" and work.calls == 1


def test_an_urgent_job_does_not_wait_for_the_ones_that_hang(jobs: Jobs, work: Work) -> None:
    hanging = [jobs.submit("copy", {"table": f"t{number}"}) for number in range(AT_ONCE + 1)]
    for job in hanging[:AT_ONCE]:
        once(jobs, job.id, lambda job: job.state == "running")

    urgent = jobs.submit("rescue", {"table": "t"})

    once(jobs, urgent.id, lambda job: job.state == "running")
    assert jobs.get(hanging[-1].id).state == "queued"


def test_a_job_whose_end_cannot_be_written_down_is_told_as_failed_and_frees_its_key(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(tmp_path)
    jobs = jobs_of(tmp_path, work, runs)
    job = jobs.submit("copy", {"table": "t"}, key="k")
    once(jobs, job.id, lambda job: job.progress)

    def full(job: Job) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "put", full)
        work.go_on.set()
        ended = jobs.wait(job.id, 10)

    assert ended.state == "failed" and ended.error is not None
    assert ended.error["what"] == f"the end of job {job.id} could not be written down"
    assert "it succeeded" in ended.error["why"] and "No space left" in ended.error["why"]
    again = jobs.wait(jobs.submit("copy", {"table": "t"}, key="k").id, 10)
    assert (again.id, again.state, again.attempt) == (job.id, "succeeded", 2)


def test_progress_that_is_reported_after_the_end_changes_nothing(jobs: Jobs, work: Work) -> None:
    late: list[Run] = []
    work.end = lambda copied: late.append(work.run) or copied  # type: ignore[func-returns-value]
    work.go_on.set()
    job = jobs.wait(jobs.submit("copy", {"table": "t"}).id, 10)

    late[0].progress(4, 4, "chunks", "too late")

    assert jobs.get(job.id) == job


def test_a_text_that_no_file_can_hold_is_refused(jobs: Jobs) -> None:
    with pytest.raises(UsageError, match="parameters of copy"):
        jobs.submit("copy", {"table": "\ud800"})
    assert jobs.list() == []


@pytest.mark.parametrize("params", [{}, {"table": "t", "tiems": 2}, {"table": 1}])
def test_wrong_parameters_are_refused_by_name(jobs: Jobs, params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="parameters of copy"):
        jobs.submit("copy", params)
    with pytest.raises(NotFoundError):
        jobs.get("nothing")
