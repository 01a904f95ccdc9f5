"""What a job of a release waits for has a name and an end, and the job can be cancelled meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from twinlake.base.errors import TimedOutError
from twinlake.base.job import CancelledError, Run
from twinlake.batch import maintain
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.open_lake import OpenLake
from twinlake.releases import build, promote

LAKE, PLAN = cast(OpenLake, None), cast(Plan, None)
"""Nobody may look at them before the wait is over."""


NOTHING_TO_CLEAN = cast(
    OpenLake, SimpleNamespace(versions=SimpleNamespace(health=list, living=list), logs={})
)

EMPTY = cast(OpenLake, SimpleNamespace(path=Path("/there/is/no/lake")))
OUTDATED = cast(Plan, SimpleNamespace(release_before=1))
"""Certificates of a plan that may still go live are made before the wait."""

WAITS: dict[str, tuple[Any, str, str, Callable[[Run], object]]] = {
    "promote": (
        promote, "_switching", "another promotion, rollback or retirement to end",
        lambda run: promote.promote(EMPTY, OUTDATED, "me", run),
    ),
    "rollback": (
        promote, "_switching", "another promotion, rollback or retirement to end",
        lambda run: promote.rollback(LAKE, 1, "me", run),
    ),
    "build": (
        build, "_creating", "another build to make its version",
        lambda run: build._create(LAKE, PLAN, cast(Any, SimpleNamespace(fingerprint="f")), run),
    ),
    "maintain": (
        maintain, "_one_at_a_time", "another clean-up to end",
        lambda run: maintain.maintain(NOTHING_TO_CLEAN, None, run),
    ),
}  # fmt: skip
LIMITS = ("SWITCH_WAIT_S", "CREATE_WAIT_S", "OTHER_WAIT_S")


@pytest.fixture(params=list(WAITS))
def waits(request: pytest.FixtureRequest) -> Iterator[tuple[Any, str, Callable[[Run], object]]]:
    """One that waits for another, which goes on as long as the test lasts."""
    module, lock, what, begin = WAITS[request.param]
    with getattr(module, lock):
        yield module, what, begin


def test_a_job_that_waits_for_another_one_ends_with_what_it_waited_for(
    waits: tuple[Any, str, Callable[[Run], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module, what, begin = waits
    for limit in LIMITS:
        monkeypatch.setattr(module, limit, 0.05, raising=False)

    with pytest.raises(TimedOutError, match=f"waiting for {what} took longer than 0.05 s"):
        begin(Run(id="job"))


def test_a_job_that_waits_for_another_one_is_cancelled_at_once(
    waits: tuple[Any, str, Callable[[Run], object]],
) -> None:
    _, _, begin = waits
    run = Run(id="job")
    threading.Timer(0.1, run.cancelled.set).start()

    with pytest.raises(CancelledError):
        begin(run)
