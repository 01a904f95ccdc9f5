"""Waits for something that others do: asks again and again, says what it waits for, ends when cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    stop_never,
    stop_when_event_set,
    wait_fixed,
)
from tenacity.nap import sleep_using_event

from twinlake.base.errors import TimedOutError
from twinlake.base.job import Run

T = TypeVar("T")

LOOK_S = 0.5
"""Between two looks at whether whoever waits was cancelled."""
TOLD_AFTER_S = 2.0
"""A run that waits for longer tells for what."""


def wait_for(
    what: str,
    ask: Callable[[], T | None],
    limit_s: float | None,
    run: Run | None = None,
    *,
    every_s: float = 0.1,
    unready: tuple[type[Exception], ...] = (),
    remedy: str = "see `twinlake status`",
) -> T:
    """The first answer of `ask` that is not None; asked at once, then every `every_s` seconds.

    An exception of a type in `unready` means "not yet" as well; any other passes through. `what` completes
    "waiting for ...": the run tells it. TimedOutError after `limit_s` seconds (None: never), with what was
    heard last; CancelledError as soon as the run is cancelled.
    """
    run = run or Run(id="")
    heard: list[BaseException] = []
    is_told = False

    def not_yet(state: RetryCallState) -> None:
        nonlocal is_told
        outcome = state.outcome
        heard[:] = [error] if outcome and (error := outcome.exception()) else []
        if not is_told and (state.seconds_since_start or 0) >= TOLD_AFTER_S:
            is_told = True
            run.waits(what)

    def give_up(state: RetryCallState) -> T:
        run.check_cancelled()
        not_yet(state)
        why = f"the last answer was {type(heard[0]).__name__}: {heard[0]}" if heard else "nothing was heard"
        raise TimedOutError(f"waiting for {what} took longer than {limit_s:g} s", why, remedy)

    limit = stop_never if limit_s is None else stop_after_delay(limit_s)
    asking = Retrying(
        stop=stop_when_event_set(run.cancelled) | limit,
        wait=wait_fixed(every_s),
        sleep=sleep_using_event(run.cancelled),
        retry=retry_if_result(lambda answer: answer is None) | retry_if_exception_type(unready),
        after=not_yet,
        retry_error_callback=give_up,
    )
    run.check_cancelled()
    try:
        found: T = asking(ask)  # type: ignore[assignment]
    finally:
        if is_told:
            run.waits(None)
    return found


def wait_for_answer(
    what: str, ask: Callable[[], T], limit_s: float, *, every_s: float, unready: tuple[type[Exception], ...]
) -> T:
    """Like `wait_for`, but None is an answer."""
    return wait_for(what, lambda: (ask(),), limit_s, every_s=every_s, unready=unready)[0]


def answer(asked: Future[T], what: str, limit_s: float, run: Run | None = None) -> T:
    """What another thread promised; its error is raised here. Whoever gives up needs it no more."""

    def given() -> Future[T] | None:
        wait([asked], timeout=min(LOOK_S, limit_s))
        return asked if asked.done() else None

    try:
        return wait_for(what, given, limit_s, run, every_s=0).result()
    finally:
        asked.cancel()


@contextmanager
def holding(lock: threading.Lock, what: str, limit_s: float, run: Run | None = None) -> Iterator[None]:
    """With the lock held; `what` says whose end is waited for."""
    wait_for(what, lambda: lock.acquire(timeout=min(LOOK_S, limit_s)) or None, limit_s, run, every_s=0)
    try:
        yield
    finally:
        lock.release()
