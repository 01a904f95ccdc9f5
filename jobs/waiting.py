"""Waits for something that others do: asks again and again, says what it waits for, ends when cancelled."""

from __future__ import annotations

from collections.abc import Callable
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

from jobs.errors import TimedOutError
from jobs.run import Run

T = TypeVar("T")


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
    "waiting for ...". TimedOutError after `limit_s` seconds (None: never), with what was heard last;
    CancelledError as soon as the run is cancelled.
    """
    run = run or Run(id="")
    heard: list[BaseException] = []

    def not_yet(state: RetryCallState) -> None:
        outcome = state.outcome
        heard[:] = [error] if outcome and (error := outcome.exception()) else []

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
    found: T = asking(ask)  # type: ignore[assignment]
    return found
