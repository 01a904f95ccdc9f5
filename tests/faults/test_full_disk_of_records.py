"""Records of parts and jobs meet a full disk: nothing ends because of it, and nothing accepted is lost."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.disk import Disk, small_disk
from tests.server.test_jobs import Work, jobs_of, once
from tests.services.supervise import dummies
from tests.services.supervise.test_supervisor import Home
from twinlake.base.errors import FullDiskError
from twinlake.base.job import Job
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog.runs import Runs
from twinlake.services.supervise import control, record
from twinlake.services.supervise.process import marked


@pytest.fixture
def run_folder(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "home" / "run", megabytes=1) as made:
        yield made


@pytest.fixture
def home(run_folder: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setattr(control, "all_parts", dummies.parts)
    made = Home(tmp_path / "home")
    yield made
    run_folder.folder.joinpath(".ballast").unlink(missing_ok=True)
    made.close()


def test_a_part_that_dies_while_its_record_cannot_be_written_is_started_again(
    home: Home, run_folder: Disk
) -> None:
    home.supervise("first")
    pid = home.ready("first")
    mark = home.folders.mark("first")

    run_folder.fill()
    for _ in range(2):
        (before,) = marked(mark)
        os.kill(before.pid, signal.SIGKILL)
        wait_for("another process", lambda before=before: _other(mark, before.pid), 30)

    assert record.load(home.folders, "first").identity.pid == pid, "the old record is whole"
    run_folder.give_room()
    assert home.ready("first", other_than=pid) == marked(mark)[0].pid
    assert record.load(home.folders, "first").restarts == 2


def _other(mark: str, pid: int) -> bool | None:
    return True if [one for one in marked(mark) if one.pid != pid] else None


def test_down_needs_no_room_and_ends_a_part_whose_record_could_not_be_written(
    home: Home, run_folder: Disk
) -> None:
    home.supervise("first")
    pid = home.ready("first")
    run_folder.fill()
    os.kill(pid, signal.SIGKILL)
    mark = home.folders.mark("first")
    wait_for("another process", lambda: _other(mark, pid), 30)

    control.bring_down(home.settings, lambda name: None)

    assert marked(mark) == []


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "lake" / "runs", megabytes=1) as made:
        yield made


@pytest.fixture
def work() -> Iterator[Work]:
    made = Work()
    yield made
    made.go_on.set()


def test_a_job_that_cannot_be_written_down_is_refused_and_taken_once_there_is_room(
    runs: Disk, work: Work, tmp_path: Path
) -> None:
    jobs = jobs_of(tmp_path / "lake", work)
    work.go_on.set()
    once(jobs, jobs.submit("copy", {"table": "t"}).id, lambda job: job.ended)

    runs.fill()
    with pytest.raises(FullDiskError) as refused:
        jobs.submit("copy", {"table": "t"}, "key")
    assert refused.value.what == f"the disk of {runs.folder} is full"
    assert re.match(r"[\d,]+ of 1,048,576 bytes are free", refused.value.why)

    runs.give_room()
    job = jobs.submit("copy", {"table": "t"}, "key")
    assert once(jobs, job.id, lambda job: job.ended).state == "succeeded"
    assert len(jobs.list()) == 2 == len(Runs(tmp_path / "lake").all())


def test_a_job_that_was_accepted_before_the_disk_was_full_begins_by_itself_when_there_is_room(
    runs: Disk, work: Work, tmp_path: Path
) -> None:
    kept = Runs(tmp_path / "lake")
    jobs = jobs_of(tmp_path / "lake", work, kept)
    jobs._started = False  # accepted, but not begun yet
    job = jobs.submit("copy", {"table": "t"}, "key")
    runs.fill()
    jobs.start()

    waiting = once(jobs, job.id, lambda job: job.progress)
    assert (waiting.state, work.calls) == ("queued", 0)
    assert f"the disk of {runs.folder} is full" in waiting.progress["message"]

    work.go_on.set()
    runs.give_room()
    assert once(jobs, job.id, lambda job: job.ended).state == "succeeded"


def test_a_job_whose_end_meets_a_full_disk_is_told_so_and_can_be_asked_for_again(
    runs: Disk, work: Work, tmp_path: Path
) -> None:
    jobs = jobs_of(tmp_path / "lake", work)
    job = jobs.submit("copy", {"table": "t"}, "key")
    once(jobs, job.id, lambda job: job.state == "running")
    runs.fill()
    work.go_on.set()

    failed = once(jobs, job.id, lambda job: job.ended)
    assert failed.state == "failed" and failed.error
    assert f"the disk of {runs.folder} is full" in failed.error["why"]

    runs.give_room()
    assert _again(jobs.submit("copy", {"table": "t"}, "key"), job)
    assert once(jobs, job.id, lambda job: job.ended).state == "succeeded"


def _again(job: Job, before: Job) -> bool:
    return (job.id, job.attempt) == (before.id, 2)
