"""The report is read by approvers, and its values come from records that anybody may have produced."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from twinlake.difference.over_time import Bucket, Buckets
from twinlake.lake.catalog.plans import Change, Plan, Plans
from twinlake.releases.comparison import ComparedColumn, ComparedVersion, Comparison, Sample
from twinlake.releases.gate_checks import Check, Gate
from twinlake.releases.over_time import Lines, OverTime, folded
from twinlake.releases.report import render
from twinlake.releases.shown import as_shown

NASTY = "<script>alert('x')</script>"
PLAN = Plan(
    id="a" * 12,
    release_before=1,
    changes=(Change(table="t", action="changed", fingerprint="f", blue="b-1", why=(f"where: {NASTY}",)),),
    definitions={},
    created_at="2026-01-31T12:00:00Z",
)
DIFF = Comparison(
    table="t",
    blue=ComparedVersion(version="b-1", delta_version=3),
    green=ComparedVersion(version="g-2", delta_version=5),
    position={"orders": 7},
    keys=("region",),
    common=100_000,
    changed=1,
    only_blue=2,
    only_green=0,
    over_time=OverTime(
        column=NASTY,
        seconds=3_600,
        at=(0, 3_600, 7_200),
        differing=(0, 1, 0),
        first="1970-01-01T01:02:00Z",
        last="1970-01-01T01:02:00Z",
        untimed=2,
        rows=Lines(name="rows", blue=(5, 5, 5), green=(5, 4, 5)),
        totals=(Lines(name=NASTY, blue=(1.5, 2.5, None), green=(1.5, 2.0, None)),),
    ),
    columns=(
        ComparedColumn(name="sales", type="decimal(38,2)", changed=1, blue_total="10.50", green_total="9.00"),
    ),
    samples=(
        Sample(
            kind="changed",
            key={"region": NASTY},
            blue={"sales": NASTY},
            green={"sales": "1"},
            columns=("sales",),
        ),
        Sample(kind="only_blue", key={"region": "x"}, blue={"region": "x", "sales": "9" * 5000}, green=None),
    ),
)
WITNESS = Check(table="t", name="witness", passed=False, detail=NASTY, rows=(NASTY,))
GATE = Gate(plan="a" * 12, at="now", checks=(WITNESS,))


def page() -> str:
    return render(PLAN, [as_shown(DIFF)], GATE, {"t": "g-2"}, "2026-01-31T12:05:00Z")


def test_values_of_records_are_escaped_and_cut() -> None:
    text = page()

    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 8
    assert "9" * 201 not in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a\0b", r"a\x00b"), ("\x1b[2J", r"\x1b[2J"), ("gpj.\u202eexe", r"gpj.\u202eexe"), ("a\nb", r"a\nb")],
)
def test_a_value_that_hides_something_shows_it(value: str, shown: str) -> None:
    sample = Sample(
        kind="changed", key={"region": value}, blue={"sales": value}, green={"sales": [value]},
        columns=("sales",),
    )  # fmt: skip
    one = as_shown(replace(DIFF, samples=(sample,)))
    text = render(PLAN, [one], GATE, {"t": "g-2"}, "2026-01-31T12:05:00Z")

    assert f"<code>{shown}</code>" in text and f"<del>{shown}</del>" in text
    assert value not in text


def test_the_page_loads_nothing() -> None:
    assert not re.findall(r"(?:src|href|url|@import|http)\s*[=(:]", page().replace('http-equiv="', ""))


def test_a_kind_of_rows_that_occurs_is_visible_on_the_bar() -> None:
    widths = [float(width) for width in re.findall(r'<rect x="[\d.]+" y="0" width="([\d.]+)"', page())]

    assert len(widths) == 4
    assert widths[1] > 5 and widths[2] > 5 and widths[3] == 0
    assert sum(widths) <= 1001


def test_the_report_has_what_changed_over_time_since_when_and_by_how_much() -> None:
    text = page()

    assert "Rows differ from 1970-01-01T01:02:00Z to 1970-01-01T01:02:00Z" in text
    assert "a point per hour, from 1970-01-01T00:00:00Z to 1970-01-01T02:00:00Z" in text
    assert "-1.50 (-14.3 %)" in text and "2 rows that differ have no time there" in text
    # both sums run to the middle of the picture, and the last hour has none
    assert '<path class="curve" stroke="var(--green)" d="M0.0 48.0h0L300.0 24.0">' in text
    assert text.count('<path class="curve"') == 5


def test_totals_that_are_too_large_to_add_up_are_shown() -> None:
    rows = (Bucket(at=0, left=1, right=1, differing=1, totals={"n": (1e308, -1e308)}),
            Bucket(at=60, left=1, right=1, differing=1, totals={"n": (1e308, 1e308)}))  # fmt: skip

    found = folded(Buckets(column="at", seconds=60, rows=rows, first=0, last=60))

    assert found.totals[0].blue == (1e308, 1e308)


def test_a_total_that_one_side_does_not_have_is_not_equal() -> None:
    gone = ComparedColumn(name="amount", type="double", changed=0, blue_total="100.00", green_total=None)
    same = ComparedColumn(name="n", type="bigint", changed=0, blue_total="1", green_total="1")

    shown = as_shown(replace(DIFF, columns=(gone, same)))

    assert [one["name"] for one in shown["columns"]] == ["amount"]
    assert [one["name"] for one in shown["equal_columns"]] == ["n"]


def test_a_table_without_a_column_of_time_says_so_and_so_does_an_older_comparison() -> None:
    for one, said in ((replace(DIFF, over_time=None, no_time="no time"), "no time"),
                      (replace(DIFF, over_time=None), "did not look at time yet")):  # fmt: skip
        text = render(PLAN, [as_shown(one)], GATE, {"t": "g-2"}, "2026-01-31T12:05:00Z")
        assert said in text and 'class="curve"' not in text


def test_a_comparison_that_was_stored_before_time_was_looked_at_is_still_read(tmp_path: Path) -> None:
    plans, older = Plans(tmp_path), DIFF.to_json()
    del older["over_time"], older["no_time"]
    plans.save_diff(PLAN.id, "t", older)

    assert plans.diff(PLAN.id, "t", Comparison) == replace(DIFF, over_time=None)


def test_diff_and_gate_survive_their_files(tmp_path: Path) -> None:
    plans = Plans(tmp_path)
    plans.save_diff(PLAN.id, "t", DIFF.to_json())
    plans.save_gate(PLAN.id, GATE.to_json())

    assert plans.diff(PLAN.id, "t", Comparison) == DIFF
    assert plans.gate(PLAN.id, Gate) == GATE
