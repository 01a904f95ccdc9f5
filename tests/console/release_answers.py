"""Releases and plans as the lake server gives them: made by its own code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from twinlake.lake.catalog.plans import Change, Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.releases.comparison import ComparedColumn, ComparedVersion, Comparison, Sample
from twinlake.releases.gate_checks import Check, Gate
from twinlake.releases.over_time import Lines, OverTime
from twinlake.releases.timeline import Entry, PlanFacts, Switch

HOUR = 1_769_767_200
"""2026-01-30, ten o'clock."""
FIRST = Release(
    number=3, kind="initial", tables={"sales": "v-0"}, positions={"sales": {"orders": 5}},
    created_at="2026-01-30T10:00:00Z", approved_by="ben", plan="b" * 12,
)  # fmt: skip
LIVE = replace(
    FIRST, number=4, kind="promote", tables={"sales": "v-1"}, created_at="2026-01-31T10:00:00Z",
    approved_by="anna", plan="a" * 12,
)  # fmt: skip
BACK = replace(
    FIRST, number=5, kind="rollback", restores=3, created_at="2026-01-31T11:00:00Z", approved_by="anna",
    reason="cancelled orders are missed",
)  # fmt: skip
PLAN = Plan(
    id="c" * 12, release_before=4, created_at="2026-01-31T11:30:00Z", git_commit="d" * 40, definitions={},
    changes=(
        Change(table="sales", action="changed", fingerprint="f", blue="v-1", green="v-2",
               why=("where: nothing -> status <> 'cancelled'",)),
        Change(table="orders", action="unchanged", fingerprint="o", blue="o-1", green="o-1"),
    ),
)  # fmt: skip
DIFF = Comparison(
    table="sales", blue=ComparedVersion(version="v-1", delta_version=3),
    green=ComparedVersion(version="v-2", delta_version=5), position={"orders": 7}, keys=("region",),
    common=1_000, changed=40, only_blue=2, only_green=0,
    columns=(
        ComparedColumn(name="average", type="double", changed=40),
        ComparedColumn(
            name="amount", type="decimal(38,2)", changed=40, blue_total="90.00", green_total="81.00"
        ),
        ComparedColumn(name="customers", type="bigint", changed=0),
    ),
    samples=(
        Sample(kind="changed", key={"region": "north"}, blue={"amount": "9.00"}, green={"amount": "1.50"},
               columns=("amount",)),
    ),
    over_time=OverTime(
        column="window_start", seconds=3_600, at=(HOUR, HOUR + 3_600, HOUR + 7_200), differing=(0, 30, 12),
        first="2026-01-30T11:02:00Z", last="2026-01-30T12:58:00Z",
        rows=Lines(name="rows", blue=(300.0, 350.0, 352.0), green=(300.0, 350.0, 350.0)),
        totals=(Lines(name="amount", blue=(30.0, 30.0, 30.0), green=(30.0, 25.0, 26.0)),),
    ),
)  # fmt: skip
PASSED = Check(table="sales", name="certificate", passed=True, detail="equal at orders batch 7")
FAILED = Check(table="sales", name="witness", passed=False, detail="2 rows differ", rows=("north: 3, not 4",))
GATE = Gate(plan=PLAN.id, at="2026-01-31T11:40:00Z", checks=(PASSED, FAILED))


def facts(**changed: Any) -> PlanFacts:
    """Of the plan."""
    given = {"state": "refused", "live": 4, "release": None, "greens": {"sales": "v-2"}, "gate": GATE,
             "diffs": (DIFF,), **changed}  # fmt: skip
    return PlanFacts(plan=PLAN, **given)


def releases() -> list[dict[str, Any]]:
    """Two of them, the newer one live."""
    switch = Switch(table="sales", before="v-0", after="v-1", why=("amount: Sum -> Max",))
    new = Switch(table="sales", before=None, after="v-0", why=("the table is new",))
    return [
        Entry(release=LIVE, live=True, changes=(switch,)).to_json(),
        Entry(release=FIRST, live=False, changes=(new,)).to_json(),
    ]
