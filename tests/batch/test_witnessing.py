"""Asking another engine: one version at a time, within one deadline, again where a file is gone meanwhile.

The questions are of files that the test has written; the engine's process is the real one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.lake.test_certificates import certificate
from tests.witness.test_evaluate import EVENTS, ask, log_file, topic
from twinlake.base.job import CancelledError, Run
from twinlake.base.waiting import wait_for
from twinlake.batch import certify, witnessing
from twinlake.lake.catalog.certificates import Certificate, Certificates
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.witness.answer import DIFFERS, EQUAL, FAILED, NOT_WITNESSED, Answer, Verdict
from twinlake.witness.question import Limits, Question

OPENED: Any = SimpleNamespace(version=SimpleNamespace(table="totals"))
PIN: Any = SimpleNamespace(position={"orders": 1})
LATER: Any = SimpleNamespace(position={"orders": 2})


def never() -> Any:
    raise AssertionError("it is not asked again")


def witnessed(run: Run, staging: Path, again: Callable[[], Any] = never) -> Witnessed:
    return witnessing.witnessed(OPENED, PIN, run, staging, "now", again)


def asking(monkeypatch: pytest.MonkeyPatch, *questions: Question | Exception) -> None:
    """These are what is written down of the version, one after the other."""
    left = iter(questions)

    def question(*_: Any) -> Question:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(witnessing, "question", question)


def gone(folder: Path) -> Question:
    files = (log_file(folder, EVENTS), str(folder / "gone.parquet"))
    return replace(ask(folder), topics={"orders": topic(*files)})


def test_a_file_of_the_log_that_is_gone_makes_it_ask_again_at_the_pin_of_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(monkeypatch, gone(tmp_path), ask(tmp_path))

    found = witnessed(Run(id="j"), tmp_path, lambda: LATER)

    assert (found.answer.verdict, found.position) == (EQUAL, {"orders": 2})


@pytest.mark.parametrize("by", ["the engine", "Spark"])
def test_one_that_is_gone_twice_is_why_there_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    error = RuntimeError("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file")
    both = (gone(tmp_path), gone(tmp_path)) if by == "the engine" else (error, error)
    asking(monkeypatch, *both)

    found = witnessed(Run(id="j"), tmp_path, lambda: LATER)

    assert found.answer.words == "not witnessed because a file of the log is gone"
    assert found.answer.verdict == NOT_WITNESSED and found.position == {"orders": 2}


def test_what_else_keeps_it_from_being_asked_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking(monkeypatch, OSError("no space left on device"))

    found = witnessed(Run(id="j"), tmp_path)

    assert (found.answer.verdict, found.answer.why) == (FAILED, "it was not asked: no space left on device")


def test_one_is_asked_at_a_time_and_the_others_wait_and_can_be_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    at_once: list[int] = []
    running = 0

    def witness(question: Question, *_: Any, **__: Any) -> Answer:
        nonlocal running
        running += 1
        at_once.append(running)
        begun.set()
        assert go_on.wait(60)
        running -= 1
        return Answer(table=question.table, verdict=EQUAL)

    monkeypatch.setattr(witnessing, "witness", witness)
    asking(monkeypatch, *(ask(tmp_path) for _ in range(3)))
    said: list[str] = []
    first, third = Run(id="first"), Run(id="third")
    second = Run(id="second", report=lambda progress: said.append(progress.message))
    threads = [threading.Thread(target=witnessed, args=(first, tmp_path / "first"))]
    threads[0].start()
    assert begun.wait(60)

    threads.append(threading.Thread(target=witnessed, args=(second, tmp_path / "second")))
    threads[1].start()
    wait_for("the second to wait", lambda: said or None, 60)
    third.cancelled.set()
    with pytest.raises(CancelledError):
        witnessed(third, tmp_path / "third")
    go_on.set()
    for thread in threads:
        thread.join(60)

    assert at_once == [1, 1]
    assert said == [
        "waiting to have another engine evaluate totals", "having another engine evaluate totals",
    ]  # fmt: skip


def test_both_ways_of_asking_have_the_time_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Limits] = []

    def witness(question: Question, limit: Limits, **_: Any) -> Answer:
        limits.append(limit)
        refused = "" if len(limits) > 1 else "odd(x)"
        return Answer(table=question.table, verdict=NOT_WITNESSED, refused=refused)

    moments = iter((100.0, 1_600.0))
    monkeypatch.setattr(witnessing, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr(witnessing, "witness", witness)
    monkeypatch.setattr(witnessing, "_stepped", lambda *_: "rows")
    monkeypatch.setattr(witnessing, "_rows", lambda *_: None)
    monkeypatch.setattr(witnessing, "_deleted", lambda *_: "")
    asking(monkeypatch, ask(tmp_path))
    maintained: Any = MaintainedVersion.__new__(MaintainedVersion)

    witnessing._answer(maintained, PIN, tmp_path, lambda: False)

    assert [limit.seconds for limit in limits] == [3_600, 2_100]


def kept(lake: Any, number: int, witness: Witnessed | None) -> tuple[Certificate, list[str]]:
    """The certificate as it is kept, and what was logged of it."""
    made = certificate(minute=number, witness=witness)
    with capture_logs() as logs:
        return certify._kept(lake, made), [one["event"] for one in logs]


@pytest.mark.parametrize("verdict", [DIFFERS, FAILED])
def test_an_answer_is_logged_as_an_error_once_and_one_that_failed_is_not_taken_on(
    tmp_path: Path, verdict: Verdict
) -> None:
    settings = SimpleNamespace(values=SimpleNamespace(proof=SimpleNamespace(witness="report")))
    lake = SimpleNamespace(certificates=Certificates(tmp_path), settings=settings)
    answer = Answer(table="sales", verdict=verdict, differing=1)
    found = Witnessed(answer=answer, position={"orders": 1}, at="now")

    first, logged = kept(lake, 1, found)
    second, logged_again = kept(lake, 2, None)

    assert logged == ["another engine does not agree"] and logged_again == []
    assert first.witness == found and second.witness == (found if verdict == DIFFERS else None)
