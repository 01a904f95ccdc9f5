"""What the lake server says of releases and plans, over a real release log and real files of plans."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from twinlake.base.errors import NotFoundError
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import Change, Decided, Plan, Plans, Rejected
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.releases.gate_checks import Check, Gate
from twinlake.releases.timeline import newest_plans, plan_facts, timeline

AT = "2026-01-31T12:00:00Z"
NEW = Change(table="sales", action="new", fingerprint="f" * 12, why=("the table is new",))
CHANGED = Change(table="sales", action="changed", fingerprint="g" * 12, blue="f" * 12 + "-1", why=("where",))
FIRST = Plan(id="a" * 12, release_before=None, changes=(NEW,), definitions={}, created_at=AT)
SECOND = Plan(id="b" * 12, release_before=1, changes=(CHANGED,), definitions={}, created_at=AT)


def version(fingerprint: str, build: int) -> Version:
    return Version(
        table="sales", fingerprint=fingerprint, build=build, definition={}, topics=("orders",), contracts={},
        created_at=AT,
    )  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    """What an open lake has, as far as it is asked; both plans are made, the first version is living."""
    formats.acquire(tmp_path)
    living = [version("f" * 12, 1)]
    versions = SimpleNamespace(living=lambda: living, usable=lambda: living)
    plans = Plans(tmp_path)
    for plan in (FIRST, SECOND):
        plans.save(plan)
    return SimpleNamespace(path=tmp_path, plans=plans, versions=versions, made=living)


def release(lake: Any, **given: Any) -> Release:
    before = release_log.live(lake.path)
    number = before.number + 1 if before else 1
    usual = {"kind": "promote", "created_at": AT, "approved_by": "anna"}
    return release_log.commit(lake.path, Release(number=number, **{**usual, **given}))


def test_each_release_says_what_it_changed_and_why(lake: Any) -> None:
    one, two = f"{'f' * 12}-1", f"{'g' * 12}-2"
    release(lake, tables={"sales": one}, plan=FIRST.id)
    release(lake, tables={"sales": two, "more": "m-1"}, plan=SECOND.id)
    release(lake, tables={"sales": one}, plan=FIRST.id, kind="rollback", restores=1, reason="it was wrong")

    found = [one.to_json() for one in timeline(lake, 50)]

    assert [(one["number"], one["live"], one["reason"]) for one in found] == [
        (3, True, "it was wrong"), (2, False, None), (1, False, None),
    ]  # fmt: skip
    assert found[0]["changes"] == [
        {"table": "more", "before": "m-1", "after": None, "why": ()},
        {"table": "sales", "before": two, "after": one, "why": ()},
    ]
    assert found[1]["changes"][1] == {"table": "sales", "before": one, "after": two, "why": ("where",)}
    assert found[2]["changes"] == [
        {"table": "sales", "before": None, "after": one, "why": ("the table is new",)}
    ]
    assert [one.release.number for one in timeline(lake, 2)] == [3, 2]


@pytest.mark.parametrize(
    ("restored", "back_to"),
    [
        ([None], None),
        ([None, None], 1),
        ([None, None, 1], None),
        ([None] * 3 + [2], 1),
        ([None, None, 1, None], 3),
    ],
)  # fmt: skip
def test_the_live_release_says_where_a_rollback_goes(
    lake: Any, restored: list[int | None], back_to: int | None
) -> None:
    for number, of in enumerate(restored, 1):
        kind = "promote" if of is None else "rollback"
        release(lake, tables={"sales": f"f-{of or number}"}, kind=kind, restores=of)

    newest, *older = timeline(lake, 50)

    assert newest.back_to == back_to and not any(one.back_to for one in older)


def test_one_release_is_asked_for_by_its_number(lake: Any) -> None:
    with pytest.raises(NotFoundError, match="there is none yet"):
        timeline(lake, 50, 1)
    release(lake, tables={"sales": "f-1"}, plan="e" * 12)  # whose plan is gone
    release(lake, tables={"sales": "f-2"})

    (found,) = timeline(lake, 1, 1)

    assert (found.release.number, found.live, found.changes[0].why) == (1, False, ())
    with pytest.raises(NotFoundError, match="there is no release 3"):
        timeline(lake, 50, 3)


def test_a_plan_says_how_far_it_has_come(lake: Any) -> None:
    def state(plan: Plan) -> str:
        return plan_facts(lake, plan.id).state

    assert (state(FIRST), state(SECOND)) == ("not asked", "outdated")
    release(lake, tables={"sales": CHANGED.blue}, plan=FIRST.id)
    assert (state(FIRST), state(SECOND)) == ("live", "not built")
    lake.made.append(version("g" * 12, 2))
    assert state(SECOND) == "not asked"
    for passed, word in ((False, "refused"), (True, "passed")):
        checks = (Check(table="sales", name="lag", passed=passed, detail="0 s"),)
        lake.plans.save_gate(SECOND.id, Gate(plan=SECOND.id, at=AT, checks=checks).to_json())
        assert state(SECOND) == word

    lake.plans.save_decided(SECOND.id, Decided(rejected=Rejected(by="ben", at=AT, reason="not this")))
    assert state(SECOND) == "rejected"
    assert newest_plans(lake, 1)[0].summary()["rejected"] == {"by": "ben", "at": AT, "reason": "not this"}

    release(lake, tables={"sales": f"{'g' * 12}-2"}, plan=SECOND.id)

    assert (state(FIRST), state(SECOND)) == ("released", "live")
    found = plan_facts(lake, SECOND.id).to_json()
    assert (found["live"], found["release"], found["greens"]) == (2, 2, {"sales": f"{'g' * 12}-2"})
    assert found["gate"]["passed"] and found["lines"][0] == f"plan {SECOND.id}: from release 1"


def test_a_plan_that_changes_nothing_or_is_of_a_former_formula_is_no_plan_to_release(lake: Any) -> None:
    same = replace(FIRST, id="c" * 12, changes=(replace(NEW, action="unchanged", blue="f-1"),))
    old = replace(FIRST, id="d" * 12, formula=0)
    for plan in (same, old):
        lake.plans.save(plan)

    assert plan_facts(lake, same.id).state == "nothing to change"
    assert plan_facts(lake, old.id).state == "outdated"


def test_the_newest_plans_are_listed_by_what_they_change(lake: Any) -> None:
    found = [one.summary() for one in newest_plans(lake, 1)]

    assert [(one["id"], one["changes"]) for one in found] == [
        (SECOND.id, [{"table": "sales", "action": "changed"}])
    ]
