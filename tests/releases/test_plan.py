"""Plans are decided from plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from twinlake.base.errors import DifferenceError, NotFoundError, UsageError
from twinlake.lake.catalog.plans import Change, Plan, Plans
from twinlake.lake.catalog.release_log import Release, commit, live, releases, rollback_target
from twinlake.lake.catalog.version import Version
from twinlake.releases.plan import History, Proposal, decide, describe, differences

HISTORY = {"orders": History(topic="orders", records=900_000, bytes=5_000_000)}


def version(table: str, fingerprint: str, build: int, retired_at: str | None = None) -> Version:
    return Version(
        table=table, fingerprint=fingerprint * 12, build=build, definition={"where": fingerprint},
        topics=("orders",), contracts={}, created_at="2026-01-31T12:00:00Z", retired_at=retired_at,
    )  # fmt: skip


def proposal(table: str, fingerprint: str) -> Proposal:
    return Proposal(table=table, definition={"where": fingerprint}, fingerprint=fingerprint * 12,
                    topics=("orders",), stores_rows=True)  # fmt: skip


def released(number: int, tables: dict[str, str], **more: Any) -> Release:
    return Release(number=number, kind="promote", tables=tables, created_at="2026-01-31T12:00:00Z",
                   approved_by="tester", **more)  # fmt: skip


def decided(
    live: Release | None, proposals: list[Proposal], versions: list[Version], remove: Sequence[str] = ()
) -> Plan:
    return decide(live=live, proposals=proposals, versions=versions, histories=HISTORY, created_at="now",
                  records_per_second=100_000, remove=remove)  # fmt: skip


def actions(plan: Plan) -> dict[str, str]:
    return {change.table: change.action for change in plan.changes}


def test_each_table_is_new_changed_unchanged_or_removed(tmp_path: Path) -> None:
    before = [version("same", "a", 1), version("other", "b", 2), version("gone", "c", 3)]
    plan = decided(
        released(4, {v.table: v.name for v in before}),
        [proposal("same", "a"), proposal("other", "d"), proposal("fresh", "e")],
        before,
        remove=["gone"],
    )

    assert actions(plan) == {"same": "unchanged", "other": "changed", "fresh": "new", "gone": "removed"}
    assert plan.release_before == 4
    assert not plan.empty
    plans = Plans(tmp_path)
    plans.save(plan)
    assert plans.load(plan.id) == plan


def test_what_goes_names_who_is_left_without_it() -> None:
    before = [version("gone", "c", 3), version("silent", "d", 4)]
    live = released(4, {one.table: one.name for one in before})
    plan = decide(
        live=live, proposals=[], versions=before, histories={}, created_at="now",
        changelogs={"gone": "changes"}, published=["silent"], remove=["gone", "silent"],
    )  # fmt: skip

    lines = "\n".join(describe(plan))
    assert "queries of serve.gone fail from then on" in lines and "queries of serve.silent fail" in lines
    assert "its changelog to topic changes stands still from then on: end it with `twinlake" in lines
    assert lines.count("changelog to topic") == 1
    assert lines.count("end it with `twinlake publish silent --stop`") == 1


def test_a_change_costs_its_records_and_an_unchanged_table_nothing() -> None:
    before = [version("same", "a", 1), version("other", "b", 2)]
    plan = decided(
        released(1, {v.table: v.name for v in before}),
        [proposal("same", "a"), proposal("other", "c")],
        before,
    )
    same, other = plan.changes

    assert (same.records, same.minutes_estimate) == (0, 0.0)
    assert (other.records, other.bytes, other.minutes_estimate) == (900_000, 5_000_000, 0.32)
    assert other.why == ("where: b -> c",)


def test_a_living_version_of_the_same_meaning_is_used_again_and_a_retired_one_is_not() -> None:
    blue = version("t", "b", 2)
    live_release = released(1, {"t": blue.name})
    reused = decided(live_release, [proposal("t", "a")], [blue, version("t", "a", 1)]).changes[0]
    rebuilt = decided(live_release, [proposal("t", "a")], [blue, version("t", "a", 1, "2026-02-01")]).changes[
        0
    ]

    assert (reused.green, reused.builds, reused.records) == ("aaaaaaaaaaaa-1", False, 0)
    assert (rebuilt.green, rebuilt.builds, rebuilt.records) == (None, True, 900_000)


def test_the_logs_of_unchanged_tables_are_not_asked() -> None:
    blue = version("t", "a", 1)

    plan = decide(live=released(1, {"t": blue.name}), proposals=[proposal("t", "a")], versions=[blue],
                  histories={}, created_at="now")  # fmt: skip

    assert actions(plan) == {"t": "unchanged"}


def test_an_unchanged_plan_says_so() -> None:
    blue = version("t", "a", 1)
    plan = decided(released(7, {"t": blue.name}), [proposal("t", "a")], [blue])

    assert plan.empty
    assert "nothing to change" in describe(plan)[0]


def test_a_plan_says_whether_what_it_was_made_of_is_committed() -> None:
    change = Change(table="t", action="new", fingerprint="f")
    plan = Plan(id="0" * 12, release_before=None, changes=(change,), definitions={}, created_at="now")

    assert "defined at commit abcdef012345" in describe(replace(plan, git_commit="abcdef0123456789"))
    dirty = describe(replace(plan, git_commit="abcdef0123456789-dirty"))
    assert "defined at commit abcdef012345, with changes that are not committed" in dirty


def test_a_plan_says_when_history_does_not_reach_back() -> None:
    change = Change(
        table="t", action="new", fingerprint="f", reaches_back=False, history="it begins at offset 7"
    )
    plan = Plan(id="0" * 12, release_before=None, changes=(change,), definitions={}, created_at="now")

    assert any("does not reach back far enough: it begins at offset 7" in line for line in describe(plan))


def test_a_plan_of_a_former_formula_is_made_again(tmp_path: Path) -> None:
    plan = Plan(id="0" * 12, release_before=None, changes=(), definitions={}, created_at="now")
    plans = Plans(tmp_path)
    plans.save(plan)
    (file,) = tmp_path.rglob(f"{plan.id}.json")
    file.write_text(json.dumps({key: one for key, one in plan.to_json().items() if key != "formula"}))
    former = plans.load(plan.id)

    plan.refuse_outdated()
    with pytest.raises(UsageError, match="cannot be used any more"):
        former.refuse_outdated()


def test_differences_name_the_place() -> None:
    old = {"where": None, "columns": [["a", "x"], ["b", "y"]], "keys": ["k"]}
    new = {"where": "x > 0", "columns": [["a", "x"], ["b", "z"]], "keys": ["k", "l"]}

    assert differences(old, new) == ("columns.b: y -> z", "keys[1]: nothing -> l", "where: nothing -> x > 0")


def test_of_a_map_with_hundreds_of_values_the_first_differences_are_named() -> None:
    rules = [["", 0], *([f"{year}-03-29T01:00:00Z", 3600] for year in range(1990, 2100))]
    old, new = {"offsets": rules}, {"offsets": rules[:38]}

    lines = differences(old, new)

    assert lines[0] == "offsets.2027-03-29T01:00:00Z: 3600 -> nothing"
    assert len(lines) == 11 and lines[-1] == "offsets: 63 more"
    assert differences({}, old) == ("offsets: nothing -> 111 values",)


@pytest.mark.parametrize("id", ["../../etc/passwd", "A" * 12, "0" * 11, ""])
def test_an_id_that_is_none_reaches_no_file(tmp_path: Any, id: str) -> None:
    with pytest.raises(UsageError):
        Plans(tmp_path).load(id)


def test_of_two_commits_of_the_same_release_one_wins(tmp_path: Any) -> None:
    commit(tmp_path, released(1, {"t": "a-1"}))

    with pytest.raises(DifferenceError, match="production has moved"):
        commit(tmp_path, released(1, {"t": "b-2"}))
    assert [one.tables for one in releases(tmp_path)] == [{"t": "a-1"}]
    assert commit(tmp_path, released(2, {"t": "b-2"})) == live(tmp_path)


def test_a_rollback_goes_back_and_never_forward_by_itself() -> None:
    first, second = released(1, {"t": "a-1"}), released(2, {"t": "b-2"})
    third = released(3, {"t": "c-3"})
    back = released(4, {"t": "b-2"}, restores=2)

    assert rollback_target([first, second, third]) == second
    assert rollback_target([first, second, third, back]) == first
    assert rollback_target([first, second, third, back], to=3) == third
    with pytest.raises(UsageError, match="cannot be rolled back"):
        rollback_target([first])
    with pytest.raises(UsageError, match="is live already") as live:
        rollback_target([first, second, third, back], to=2)
    assert "`twinlake releases`" in str(live.value) and 'in Airflow "To release"' in str(live.value)
    with pytest.raises(NotFoundError, match="`twinlake releases`"):
        rollback_target([first, second], to=9)


def test_a_live_table_without_a_definition_stays_as_it_is_unless_it_is_to_be_removed() -> None:
    before = [version("kept", "a", 1), version("gone", "b", 2)]
    live = released(4, {one.table: one.name for one in before})

    plan = decided(live, [], before, remove=["gone"])

    kept = next(change for change in plan.changes if change.table == "kept")
    assert actions(plan) == {"kept": "unchanged", "gone": "removed"}
    assert kept.green == kept.blue == before[0].name and kept.stays
