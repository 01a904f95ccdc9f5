"""What was rolled back does not come back by itself: with the next release, of whatever other table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from tests.releases.test_derived import BEST, BUYERS, NEWEST, PAID, PROMISED, SPENT
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.kinds.kind import Kind
from twinlake.kinds.sql_form.reading import definition
from twinlake.kinds.sql_form.writing import statement
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.rolled_back import rolled_back
from twinlake.releases.choose import choose, not_named, refuse_unmet

TABLES: dict[str, Kind] = {one.name: one for one in (SPENT, NEWEST, BUYERS)}
CHANGED: dict[str, Kind] = {**TABLES, "spent": PAID}
REASON = "cancelled orders are missed"


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    with promised_lake(spark, tmp_path, PROMISED) as made:
        yield made


def actions(plan: dict[str, Any]) -> dict[str, str]:
    return {one["table"]: one["action"] for one in plan["changes"]}


def live(lake: Lake) -> Release:
    found = release_log.live(lake.path)
    assert found is not None
    return found


@pytest.mark.faults
def test_a_table_that_was_rolled_back_and_one_that_reads_it_stay_out_until_they_are_changed_or_named(
    lake: Lake,
) -> None:
    first = lake.promote(lake.build(TABLES))["tables"]
    lake.append([order(number) for number in range(20)])
    second = lake.promote(lake.build({**CHANGED, "best": BEST}))["tables"]
    back = lake.do("rollback", approved_by="me", reason=REASON)

    newest = replace(NEWEST, where="amount > 0")
    other: dict[str, Kind] = {**CHANGED, "newest": newest, "best": BEST}
    plan = lake.plan(other)
    lake.do("build", plan=plan["id"])
    third = lake.promote(plan["id"])["tables"]

    assert back["reason"] == REASON and release_log.releases(lake.path)[2].reason == REASON
    assert actions(plan) == {
        "spent": "unchanged", "newest": "changed", "buyers": "changed", "best": "left out"
    }  # fmt: skip
    again = "    to release it again: change its definition, or name it, `twinlake plan --table "
    assert plan["lines"][-4:] == [
        f"spent: unchanged (was rolled back in release 3: {REASON})", f"{again}spent`",
        f"best: left out (was rolled back in release 3: {REASON})", f"{again}best`",
    ]  # fmt: skip
    assert third["spent"] == first["spent"] != second["spent"]
    version = lake.server.lake.version("buyers", third["buyers"])
    assert version.reads == {"spent": first["spent"], "newest": third["newest"]}

    with_other_text = {**other, "spent": replace(PAID, where="status  <>  'cancelled' -- again")}
    assert lake.plan(with_other_text)["empty"]
    assert lake.plan({name: definition(statement(table), name) for name, table in other.items()})["empty"]
    changed = lake.plan({**other, "spent": replace(PAID, where="status = 'paid'")})
    assert actions(changed)["spent"] == actions(changed)["buyers"] == "changed"
    named = lake.plan(other, ["spent"])
    assert actions(named) == {
        "spent": "changed", "newest": "unchanged", "buyers": "changed", "best": "new"
    }  # fmt: skip
    lake.do("build", plan=named["id"])
    assert lake.promote(named["id"])["tables"]["spent"] == second["spent"]
    assert lake.plan(other)["lines"][0].endswith("nothing to change, every table means what release 5 means")


def test_named_tables_are_taken_with_what_reads_them_and_no_others(lake: Lake) -> None:
    lake.promote(lake.build(TABLES))
    written: dict[str, Kind] = {
        "spent": PAID, "newest": replace(NEWEST, where="amount > 0"), "buyers": BUYERS, "best": BEST
    }  # fmt: skip

    spent, alone = lake.plan(written, ["spent"]), lake.plan({"spent": PAID}, ["spent"], ["buyers"])

    assert actions(spent) == {
        "spent": "changed", "newest": "unchanged", "buyers": "changed", "best": "new"
    }  # fmt: skip
    assert "newest: unchanged (not named)" in spent["lines"]
    assert actions(alone) == {"spent": "changed", "newest": "unchanged", "buyers": "removed"}
    with pytest.raises(NotFoundError, match="there is no table 'spend'"):
        lake.plan(written, ["spend"])


def release(number: int, tables: dict[str, str], restores: int | None = None) -> Release:
    kind: Any = "rollback" if restores else "promote"
    reason = f"because of {number - 1}" if restores else None
    return Release(number=number, kind=kind, tables=tables, created_at="", approved_by="me",
                   restores=restores, reason=reason)  # fmt: skip


def backs(*history: Release) -> set[tuple[str, str | None, int]]:
    return {(one.table, one.version, one.release) for one in rolled_back(history)}


def test_what_was_live_just_before_a_rollback_and_is_not_after_it_was_rolled_back() -> None:
    first, second = {"a": "a-1", "b": "b-1", "gone": "g-1"}, {"a": "a-2", "b": "b-1", "new": "n-1"}
    history = [release(1, first), release(2, second), release(3, first, 1)]

    assert backs(*history[:2]) == set()
    assert backs(*history) == {("a", "a-2", 3), ("new", "n-1", 3), ("gone", None, 3)}
    assert backs(*history, release(4, {**first, "b": "b-4"})) == backs(*history)
    assert backs(*history, release(4, {**first, "a": "a-2"})) == {("new", "n-1", 3), ("gone", None, 3)}
    assert backs(*history, release(4, second, 2)) == {("a", "a-1", 4), ("gone", "g-1", 4), ("new", None, 4)}
    reasons = {one.lines()[0] for one in rolled_back(history)}
    assert reasons == {
        "was rolled back in release 3: because of 2", "its removal was rolled back in release 3: because of 2"
    }  # fmt: skip


def test_what_reads_a_table_that_is_left_out_is_left_out_and_what_a_staying_one_reads_stays() -> None:
    why = ("was rolled back",)
    written = {"spent": SPENT, "newest": NEWEST, "buyers": BUYERS, "best": BEST}

    left_out = choose(written, {}, {"newest": why})
    kept = choose({"best": BEST}, written, {"buyers": why})

    assert set(left_out.tables) == {"spent"}
    assert left_out.stays == {
        "newest": why, "buyers": ("it reads newest, which is left out",),
        "best": ("it reads buyers, which is left out",),
    }  # fmt: skip
    assert set(kept.tables) == set(written) and kept.stays == {
        "buyers": why, "spent": ("buyers, which stays as it is, reads it",),
        "newest": ("buyers, which stays as it is, reads it",),
    }  # fmt: skip
    assert set(not_named(written, written, ["newest"])) == {"spent"}


def test_a_named_table_that_reads_a_new_one_names_it() -> None:
    written = {"spent": SPENT, "newest": NEWEST, "buyers": BUYERS}
    chosen = choose(written, {"newest": NEWEST}, not_named(written, {"newest": NEWEST}, ["buyers"]))

    with pytest.raises(UsageError, match="it reads spent, which is left out"):
        refuse_unmet(["buyers"], chosen)


def test_a_table_that_a_release_dropped_and_a_rollback_brought_back_stays(lake: Lake) -> None:
    lake.promote(lake.build({"spent": SPENT, "newest": NEWEST}))
    lake.promote(lake.build({"spent": SPENT}))
    lake.do("rollback", approved_by="me", reason="it is read")

    plan = lake.plan({"spent": PAID}, remove=[])

    assert actions(plan) == {"spent": "changed", "newest": "unchanged"}
    assert "newest: unchanged (its removal was rolled back in release 3: it is read)" in plan["lines"]
    assert actions(lake.plan({"spent": SPENT}, ["newest"])) == {"spent": "unchanged", "newest": "removed"}
