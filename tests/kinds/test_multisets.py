"""What measures with entry rows refuse, how they come back from JSON, and what tables without any keep."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.all import from_json
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.totals import Sum

PLAIN = Aggregate(
    name="t", inputs=("orders",), columns={"k": "region", "x": "amount"}, keys=("k",),
    measures={"n": Count(), "total": Sum("x")},
)  # fmt: skip


@pytest.mark.parametrize(
    ("measure", "types", "why"),
    [
        (Quantile("x"), {"x": "string"}, "string is not a number"),
        (Quantile("x", 1.5), {"x": "double"}, "q is 1.5, not a number from 0 to 1"),
        (Quantile("x", (0.5, -0.1)), {"x": "int"}, "q is -0.1, not a number from 0 to 1"),
        (Quantile("x", ()), {"x": "int"}, "it asks for no q"),
        (Quantile("x", (0.0, 1.0)), {"x": "decimal(38,2)"}, None),
        (TopK("x", 0), {"x": "string"}, "most is 0, not a whole number of 1 or more"),
        (TopK("x", 3), {"x": "array<int>"}, "array<int> cannot be an item; cast it to string or bigint"),
        (TopK("x", 3), {"x": "string collate UNICODE_CI"},
         "string collate UNICODE_CI cannot be an item; cast it to string or bigint"),
        (TopK("x", 3, by="y"), {"x": "string", "y": "double"},
         "a weight of type double is not exact; cast it to decimal(19, 2)"),
        (TopK("x", 3, by="y"), {"x": "string", "y": "decimal(20,2)"},
         "a weight of type decimal(20,2) is not exact; cast it to decimal(19, 2)"),
        (TopK("x", 3, by="y"), {"x": "double", "y": "decimal(19,2)"}, None),
        (TopK("x", 3, by="y"), {"x": "timestamp", "y": "bigint"}, None),
        (CountDistinct("x", exact=True), {"x": "map<string,int>"},
         "map<string,int> cannot be an item; cast it to string or bigint"),
        (CountDistinct("x", exact=True), {"x": "decimal(38,2)"}, None),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(measure: Measure, types: dict[str, str], why: str | None) -> None:
    assert measure.refuses(types) == why


@pytest.mark.parametrize(
    "measure",
    [Quantile("x"), Quantile("x", 0.5), Quantile("x", (0, 0.5, 1)), Quantile("x", (0.5,)), TopK("x", 3),
     TopK("x", 3, by="y"), CountDistinct("x"), CountDistinct("x", exact=True)],
    ids=repr,
)  # fmt: skip
def test_a_measure_comes_back_from_json(measure: Measure) -> None:
    assert from_json(measure.to_json()) == measure
    assert json.loads(json.dumps(measure.to_json())) == measure.to_json()  # or a plan tells it as changed


def test_a_whole_number_will_do_as_a_share() -> None:
    texts = [replace(PLAIN, measures={"m": Quantile("x", q)}).view({"t": "s"}, ViewClock()) for q in (1, 1.0)]

    assert texts[0] == texts[1]


def test_a_table_without_entries_has_the_plain_state_and_view() -> None:
    text = PLAIN.view({"t": "states"}, ViewClock())

    assert PLAIN.state_keys == ("k",)
    assert "_entry" not in text and text.count("SELECT") == 1


def test_measures_of_one_column_share_their_entries() -> None:
    """Each further one of a column costs no row of state."""
    both = replace(
        PLAIN, measures={"a": TopK("x", 3), "b": CountDistinct("x", exact=True), "c": Quantile("x")}
    )

    assert both.state_keys == ("_item_1", "_item_2", "k", "_entry")
