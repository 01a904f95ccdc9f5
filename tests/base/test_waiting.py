"""What waits says for what, asks until there is an answer, and ends when it is cancelled."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from twinlake.base import waiting
from twinlake.base.errors import TimedOutError
from twinlake.base.job import CancelledError, Run
from twinlake.base.waiting import answer, holding, wait_for, wait_for_answer


def test_the_first_answer_that_is_not_none_is_returned() -> None:
    answers = iter([None, None, 0, 1])

    assert wait_for("an answer", lambda: next(answers), 5, every_s=0.001) == 0


def test_an_error_of_a_named_type_means_not_yet_and_any_other_passes_through() -> None:
    answers = iter([ConnectionError("closed"), ValueError("wrong")])

    def ask() -> None:
        raise next(answers)

    with pytest.raises(ValueError, match="wrong"):
        wait_for("an answer", ask, 5, every_s=0.001, unready=(ConnectionError,))


def test_a_wait_that_is_over_says_for_what_how_long_and_what_was_heard_last() -> None:
    def ask() -> None:
        raise ConnectionError("closed")

    with pytest.raises(TimedOutError) as caught:
        wait_for("the broker", ask, 0.02, every_s=0.001, unready=(OSError,), remedy="start it")

    assert caught.value.what == "waiting for the broker took longer than 0.02 s"
    assert (caught.value.why, caught.value.remedy) == (
        "the last answer was ConnectionError: closed",
        "start it",
    )


def test_a_cancelled_run_ends_the_wait_at_once_however_rarely_it_asks() -> None:
    run = Run(id="job")
    threading.Timer(0.05, run.cancelled.set).start()
    began = time.monotonic()

    with pytest.raises(CancelledError):
        wait_for("nothing", lambda: None, None, run, every_s=600)

    assert time.monotonic() - began < 30


def test_a_run_tells_what_it_waits_for_once_that_takes_long_and_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "TOLD_AFTER_S", 0.05)
    told: list[str | None] = []
    run = Run(id="a", waits=told.append)

    wait_for("an answer", lambda: 1, 10, run)
    assert told == []

    wait_for("the lock", lambda: 1 if told else None, 10, run, every_s=0.01)
    assert told == ["the lock", None]

    with pytest.raises(TimedOutError):
        wait_for("the end", lambda: None, 0.2, run, every_s=0.01)
    assert told == ["the lock", None, "the end", None]


def test_a_run_that_was_cancelled_before_is_not_asked_for() -> None:
    run = Run(id="job")
    run.cancelled.set()

    with pytest.raises(CancelledError):
        wait_for("an answer", lambda: 1, None, run)


def test_an_answer_that_does_not_come_is_waited_for_so_long_and_then_not_wanted_any_more() -> None:
    silent: Future[int] = Future()

    with pytest.raises(TimedOutError, match="waiting for the owner took longer"):
        answer(silent, "the owner", 0.05)

    assert silent.cancelled()


def test_an_answer_and_an_error_of_who_was_asked_arrive() -> None:
    given: Future[int] = Future()
    failed: Future[int] = Future()
    given.set_result(7)
    failed.set_exception(ValueError("wrong"))

    assert answer(given, "the owner", 5) == 7
    with pytest.raises(ValueError, match="wrong"):
        answer(failed, "the owner", 5)


def test_a_lock_that_another_keeps_is_waited_for_so_long_and_never_once_cancelled() -> None:
    lock, run = threading.Lock(), Run(id="job")
    lock.acquire()

    with pytest.raises(TimedOutError, match="waiting for another one took longer"):
        with holding(lock, "another one", 0.05):
            pass
    threading.Timer(0.1, run.cancelled.set).start()
    with pytest.raises(CancelledError):
        with holding(lock, "another one", 60, run):
            pass

    lock.release()
    with holding(lock, "another one", 5, run=None):
        assert lock.locked()
    assert not lock.locked()


def test_whose_every_answer_is_one_is_asked_until_there_is_one() -> None:
    answers = iter([ConnectionError("away"), None])

    def ask() -> None:
        one = next(answers)
        if one is not None:
            raise one

    assert wait_for_answer("it", ask, 5, every_s=0.01, unready=(ConnectionError,)) is None
