"""What `jobs list`, `follow` and `cancel` print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result

from tests.cli.answers import ENDED, Answers, Ended, lines
from twinlake.base.errors import BusyError, NotFoundError, UsageError
from twinlake.base.job import CancelledError, Job
from twinlake.cli import jobs as jobs_module
from twinlake.server.client import LakeClient

Twinlake = Callable[..., Result]

BUSY = BusyError("the lock is busy", "a rebuild runs", "wait")
RUNNING = Job(**{
    **ENDED, "id": "j", "kind": "rebuild", "state": "running",
    "params": {"table": "t", "repair": False, "definitions": {"t": {}}},
    "result": None, "error": None, "ended_at": None,
    "progress": {"done": 2, "total": 8_000, "unit": "chunks", "message": "[window] 2", "eta_s": 30.4},
})  # fmt: skip


def test_list_shows_each_job_with_how_long_it_took(twinlake: Twinlake) -> None:
    done = twinlake(Answers(verify={"equal": True}, rebuild=Ended(error=BUSY)), "jobs", "list")

    assert lines(done) == [
        "job      kind     state      created              seconds  parameters and progress",
        "verify   verify   succeeded  2026-01-31T12:00:00  2.5      table=t",
        "rebuild  rebuild  failed     2026-01-31T12:00:00  2.5      table=t",
    ]


def test_list_shows_how_far_a_running_job_is(twinlake: Twinlake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "_job", lambda answers, kind, params: RUNNING.to_json())
    (row,) = lines(twinlake(Answers(rebuild={}), "jobs", "list"))[1:]

    assert row.startswith("j    rebuild  running  2026-01-31T12:00:00")
    assert row.endswith("table=t (running, 2 of 8,000 chunks, [window] 2, about 30 s left)")


def test_list_as_json_is_every_field_of_every_job(twinlake: Twinlake) -> None:
    done = twinlake(Answers(verify={"equal": True}), "jobs", "list", "--json")

    job = {
        **ENDED, "id": "verify", "kind": "verify", "params": {"table": "t"}, "state": "succeeded",
        "result": {"equal": True}, "error": None,
    }  # fmt: skip
    assert json.loads(done.stdout) == [job]


def test_follow_tells_how_the_job_ended(twinlake: Twinlake) -> None:
    done = twinlake(Answers(rebuild={"equal": True}), "jobs", "follow", "rebuild")

    assert done.exit_code == 0
    assert lines(done) == ["rebuild t (job rebuild): succeeded", "job rebuild (rebuild) succeeded"]


def test_follow_of_a_failed_job_ends_with_its_error(twinlake: Twinlake) -> None:
    done = twinlake(Answers(rebuild=Ended(error=BUSY)), "jobs", "follow", "rebuild")

    assert isinstance(done.exception, BusyError) and done.exception.to_json() == BUSY.to_json()
    assert lines(done) == ["rebuild t (job rebuild): failed"]


def test_follow_as_json_is_the_job_and_exit_code_1_where_it_failed(twinlake: Twinlake) -> None:
    failed = twinlake(Answers(rebuild=Ended(error=BUSY)), "jobs", "follow", "rebuild", "--json")
    succeeded = twinlake(Answers(rebuild={}), "jobs", "follow", "rebuild", "--json")

    told = json.loads(failed.stdout)
    assert (failed.exit_code, told["state"], told["error"]) == (1, "failed", BUSY.to_json())
    assert (succeeded.exit_code, json.loads(succeeded.stdout)["state"]) == (0, "succeeded")


def test_cancel_says_how_the_job_is_then(twinlake: Twinlake) -> None:
    answers = Answers(verify=Ended(error=CancelledError("verify"), state="cancelled"))
    done = twinlake(answers, "jobs", "cancel", "verify")

    assert (done.exit_code, lines(done)) == (0, ["job verify (verify) is cancelled"])
    assert answers.cancelled == ["verify"]


def test_cancel_as_json_is_the_job(twinlake: Twinlake) -> None:
    answers = Answers(verify=Ended(error=CancelledError("verify"), state="cancelled"))
    done = twinlake(answers, "jobs", "cancel", "verify", "--json")

    assert json.loads(done.stdout)["state"] == "cancelled"


def test_a_job_that_has_ended_cannot_be_cancelled(twinlake: Twinlake) -> None:
    answers = Answers(verify={"equal": True})
    done = twinlake(answers, "jobs", "cancel", "verify")

    assert isinstance(done.exception, UsageError) and done.exception.why == "it has ended: succeeded"
    assert not answers.cancelled


@pytest.mark.parametrize("id", ["", "..", "../status", "a/b", "a?wait=1", "ä"])
def test_what_is_no_id_of_a_job_is_asked_of_nobody(id: str) -> None:
    for ask in (LakeClient("http://127.0.0.1:9", "").job, LakeClient("http://127.0.0.1:9", "").cancel):
        with pytest.raises(NotFoundError, match="there is no job"):
            ask(id)


@pytest.mark.parametrize("command", ["follow", "cancel"])
def test_a_job_that_is_not_there_is_not_found(twinlake: Twinlake, command: str) -> None:
    done = twinlake(Answers(), "jobs", command, "nothing")

    assert isinstance(done.exception, NotFoundError) and done.exception.exit_code == 2


class Followed:
    """A client whose job shows these states in turn."""

    def __init__(self, *states: Job) -> None:
        self.states = states

    def follow(self, id: str, on_progress: Callable[[Job], None]) -> Job:
        for job in self.states:
            on_progress(job)
        return self.states[-1]


def test_without_a_terminal_a_change_of_state_is_a_line_and_progress_one_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queued: Any = Job(**{**vars(RUNNING), "state": "queued", "progress": {}})
    ended = Job(**{**vars(RUNNING), "state": "succeeded", "ended_at": ENDED["ended_at"]})

    done = jobs_module.follow(Followed(queued, RUNNING, RUNNING, ended), RUNNING)  # type: ignore[arg-type]

    assert done == ended
    assert capsys.readouterr().err.splitlines() == [
        "rebuild t (job j): queued",
        "rebuild t (job j): running, 2 of 8,000 chunks, [window] 2, about 30 s left",
        "rebuild t (job j): succeeded",
    ]


class Interrupted:
    """A client whose user presses Ctrl-C."""

    def follow(self, id: str, on_progress: Callable[[Job], None]) -> Job:
        raise KeyboardInterrupt


def test_who_stops_following_is_told_that_the_job_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        jobs_module.follow(Interrupted(), RUNNING)  # type: ignore[arg-type]

    said = capsys.readouterr().err
    assert "job j goes on" in said and "`twinlake jobs cancel j`" in said
