"""A plan and what was found out about it are kept in the lake, under the plan's id and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.lake.catalog.plans import Change, Plan, Plans

ID, OTHER = "0123456789ab", "f" * 12
FULL = Plan(
    id=ID,
    release_before=4,
    changes=(
        Change(
            table="sales", action="changed", fingerprint="a" * 64, blue="b-1", green=None,
            why=("where: x -> y", "keys[0]: a -> b"), records=900_000, bytes=5_000_000,
            minutes_estimate=0.32, reaches_back=False, history="the log begins at offset 7",
        ),
        Change(table="gone", action="removed", fingerprint=None, blue="c-2"),
    ),
    definitions={"sales": {"kind": "aggregate", "columns": [["region", "upper(region)"]]}},
    created_at="2026-01-31T12:00:00Z",
    git_commit="abc",
)  # fmt: skip


@pytest.fixture
def plans(tmp_path: Path) -> Plans:
    return Plans(tmp_path)


def change(action: Any, green: str | None = None) -> Change:
    return Change(table=action, action=action, fingerprint="a" * 64, green=green)


def plan(*changes: Change, id: str = ID, release_before: int | None = None) -> Plan:
    return Plan(
        id=id,
        release_before=release_before,
        changes=changes,
        definitions={},
        created_at="2026-01-31T12:00:00Z",
    )


def test_a_plan_is_loaded_as_it_was_saved_by_whoever_opens_the_lake(plans: Plans, tmp_path: Path) -> None:
    plans.save(FULL)

    assert Plans(tmp_path).load(ID) == FULL


def test_a_plan_that_is_saved_again_is_replaced_and_no_other_one(plans: Plans) -> None:
    plans.save(plan(id=ID))
    plans.save(plan(id=OTHER))

    plans.save(plan(id=ID, release_before=2))

    assert (plans.load(ID), plans.load(OTHER)) == (plan(id=ID, release_before=2), plan(id=OTHER))


def test_a_plan_that_was_never_made_is_not_found(plans: Plans) -> None:
    plans.save(plan(id=OTHER))

    with pytest.raises(NotFoundError, match=f"there is no plan {ID}"):
        plans.load(ID)


def test_each_table_of_a_plan_has_the_last_diff_that_was_saved(plans: Plans) -> None:
    plans.save_diff(ID, "sales", {"changed": 1})
    plans.save_diff(ID, "returns", {"changed": 2})

    plans.save_diff(ID, "sales", {"changed": 3, "samples": [None, "ä"]})

    assert plans.diff(ID, "sales", dict) == {"changed": 3, "samples": [None, "ä"]}
    assert plans.diff(ID, "returns", dict) == {"changed": 2}


def test_a_plan_has_the_last_gate_that_was_saved(plans: Plans) -> None:
    plans.save_gate(ID, {"passed": False})

    plans.save_gate(ID, {"passed": True, "checks": []})

    assert plans.gate(ID, dict) == {"passed": True, "checks": []}


def test_before_the_first_comparison_and_gate_there_is_none(plans: Plans) -> None:
    plans.save(plan())
    plans.save_diff(ID, "sales", {"changed": 1})
    plans.save_gate(OTHER, {"passed": True})

    assert (plans.diff(ID, "returns", dict), plans.diff(OTHER, "sales", dict), plans.gate(ID, dict)) == (
        None,
        None,
        None,
    )


def test_a_report_is_a_page_of_its_plan_and_is_replaced_as_a_whole(plans: Plans) -> None:
    plans.save_report(ID, "<p>a long first page</p>", [{"table": "sales"}])

    file = plans.save_report(ID, "<p>größer</p>", [])

    assert (file, file.suffix) == (plans.report_file(ID), ".html")
    assert file.read_text(encoding="utf-8") == plans.report(ID) == "<p>größer</p>"
    assert (plans.compared(ID), plans.compared(OTHER)) == ("[]", None)


def test_what_is_kept_of_a_plan_is_apart_from_the_plan(plans: Plans) -> None:
    plans.save(FULL)

    plans.save_diff(ID, "sales", {"changed": 1})
    plans.save_gate(ID, {"passed": True})
    plans.save_report(ID, "<p></p>", [{}])

    assert plans.load(ID) == FULL


@pytest.mark.parametrize("id", ["../../etc/abc", "A" * 12, "0" * 11, "0" * 13, ID + "\n", "", "g" * 12])
@pytest.mark.parametrize(
    "reach",
    [
        lambda plans, id: plans.save(plan(id=id)),
        lambda plans, id: plans.load(id),
        lambda plans, id: plans.save_diff(id, "sales", {}),
        lambda plans, id: plans.diff(id, "sales", dict),
        lambda plans, id: plans.save_gate(id, {}),
        lambda plans, id: plans.gate(id, dict),
        lambda plans, id: plans.save_report(id, "", []),
        lambda plans, id: plans.report_file(id),
        lambda plans, id: plans.compared(id),
        lambda plans, id: plans.gate_text(id),
    ],
    ids="save load save_diff diff save_gate gate save_report report_file compared gate_text".split(),
)
def test_an_id_that_is_none_is_refused_and_reaches_no_file(
    reach: Callable[[Plans, str], Any], id: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not the id of a plan"):
        reach(Plans(tmp_path / "lake"), id)

    assert list(tmp_path.iterdir()) == []


def test_only_a_new_or_changed_table_without_a_green_version_is_built() -> None:
    changes = [change(action, green) for action in ("new", "changed", "unchanged", "removed")
               for green in (None, "g-1")]  # fmt: skip

    built = [(one.action, one.green) for one in changes if one.builds]

    assert built == [("new", None), ("changed", None)]


def test_only_new_and_changed_tables_are_switched() -> None:
    made = plan(change("unchanged"), change("changed"), change("removed"), change("new", "g-1"))

    assert made.switched == (change("changed"), change("new", "g-1"))


@pytest.mark.parametrize(
    ("actions", "empty"),
    [((), True), (("unchanged",), True), (("unchanged", "removed"), False), (("new",), False)],
)
def test_a_plan_is_empty_when_every_table_is_unchanged(actions: tuple[str, ...], empty: bool) -> None:
    made = plan(*map(change, actions))

    assert (made.empty, made.to_json()["empty"]) == (empty, empty)


def test_of_old_plans_those_of_releases_stay_and_the_newest(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    ids = [f"{number:012x}" for number in range(5)]
    for number, id in enumerate(ids):
        plans.save(replace(FULL, id=id))
        plans.save_gate(id, {"passed": True})
        plans.save_report(id, "page", [{}])
        os.utime(tmp_path / "plans" / f"{id}.json", (number, number))

    dropped = plans.drop({ids[0]}, newest=2)

    assert dropped == 2 and {plan.id for plan in plans.all()} == {ids[0], ids[3], ids[4]}
    assert {file.name[:12] for file in (tmp_path / "plans").iterdir()} == {ids[0], ids[3], ids[4]}
    assert plans.gate(ids[4], dict) == {"passed": True}
