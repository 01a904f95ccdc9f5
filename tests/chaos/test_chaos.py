"""A quarter of an hour of chaos on real parts; `make chaos` runs it for as long as is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.__main__ import ended_in_order
from tests.chaos.plan import AT_LEAST, QUARTER, drawn, least
from tests.chaos.run import run


@pytest.mark.timeout(2700)
def test_nothing_is_lost_doubled_mixed_or_stepped_back_in_a_quarter_of_an_hour_of_chaos(
    tmp_path: Path, seed: int, figure: Callable[[str, str], None]
) -> None:
    with ended_in_order():
        journal = run(tmp_path, QUARTER, seed)
    for what, value in journal.figures.items():
        figure(what, value)

    assert journal.wrong == []


def test_a_seed_draws_the_same_plan() -> None:
    assert drawn(7, QUARTER) == drawn(7, QUARTER) != drawn(8, QUARTER)


@pytest.mark.parametrize("drawn_by", range(50))
def test_every_plan_holds_what_a_run_must_with_room_for_sendings_that_a_kill_makes_fail(
    drawn_by: int,
) -> None:
    plan = drawn(drawn_by, QUARTER)

    sorts = [event.what for event in plan]
    assert sorts.count("kill") >= AT_LEAST["kills"]
    assert sorts.count("promote") >= AT_LEAST["promotions"]
    committed = sum(e.params["count"] for e in plan if e.params.get("how") in ("plain", "commit"))
    assert committed > 1.08 * AT_LEAST["records"]


def test_a_short_run_holds_one_of_each() -> None:
    assert set(least(0.5).values()) >= {1} and min(least(0.5).values()) == 1
