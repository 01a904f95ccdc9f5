"""What is kept of a difference over time, and how a page shows it: without Spark."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from tests.releases.test_report import DIFF
from twinlake.difference.over_time import Bucket, Buckets
from twinlake.releases.comparison import ComparedColumn, Comparison
from twinlake.releases.drawn import drawn
from twinlake.releases.over_time import MOST_COLUMNS, OverTime, folded, span_text
from twinlake.releases.shown import as_shown


def buckets(*rows: Bucket) -> Buckets:
    return Buckets(column="window_start", seconds=60, rows=rows, first=60, last=239)


SOME = buckets(
    Bucket(at=0, left=2, right=2, differing=0, totals={"sales": (Decimal(5), Decimal(5)), "orders": (2, 2)}),
    Bucket(at=60, left=2, right=1, differing=1, totals={"sales": (Decimal(7), Decimal(4)), "orders": (2, 2)}),
    Bucket(at=180, left=1, right=1, differing=1, totals={"sales": (None, Decimal(1)), "orders": (1, 1)}),
    Bucket(at=None, left=3, right=3, differing=3, totals={"sales": (Decimal(9), Decimal(9))}),
)


def test_times_without_rows_are_filled_in_and_rows_without_a_time_are_counted_apart() -> None:
    made = folded(SOME)

    assert made.at == (0, 60, 120, 180) and made.differing == (0, 1, 0, 1) and made.untimed == 3
    assert (made.rows.blue, made.rows.green) == ((2.0, 2.0, 0.0, 1.0), (2.0, 1.0, 0.0, 1.0))
    assert [one.name for one in made.totals] == ["sales", "orders"], "what differs most is first"
    assert made.totals[0].blue == (5.0, 7.0, None, None) and made.totals[0].green == (5.0, 4.0, None, 1.0)
    assert (made.first, made.last) == ("1970-01-01T00:01:00Z", "1970-01-01T00:03:59Z")


def test_what_is_kept_is_bounded_and_what_differs_most_stays() -> None:
    totals = {f"n{index}": (100, 100 + index) for index in range(50)}

    made = folded(buckets(Bucket(at=0, left=1, right=1, differing=1, totals=totals)))

    assert [one.name for one in made.totals] == [f"n{49 - index}" for index in range(MOST_COLUMNS)]


@pytest.mark.parametrize(
    ("blue", "green", "is_alike"),
    [
        (Decimal("9" * 20 + ".01"), Decimal("9" * 20 + ".02"), False),
        (0.1 + 0.2, 0.3, True),
        (0.3, 0.3001, False),
        (math.nan, math.nan, True),
        (math.inf, -math.inf, False),
        (math.inf, None, False),
        (None, None, True),
    ],
)
def test_what_is_alike_is_decided_on_all_digits(blue: Any, green: Any, is_alike: bool) -> None:
    totals = {"x": (blue, green)}

    made = folded(buckets(Bucket(at=0, left=1, right=1, differing=1, totals=totals)))

    assert made.totals[0].is_alike is is_alike
    plots = as_shown(_compared((), made))["over_time"]["plots"]
    assert ("Sum of x per minute" in [one["title"] for one in plots]) is not is_alike


def test_of_no_rows_and_of_numbers_that_nobody_can_plot_there_is_nothing() -> None:
    made = folded(buckets(Bucket(at=0, left=1, right=1, differing=1, totals={"x": (float("nan"), 1e308)})))

    assert folded(buckets()).at == () and made.totals[0].blue == (None,)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(60, "minute"), (900, "15 minutes"), (3_600, "hour"), (604_800, "7 days"), (61, "61 seconds")],
)
def test_a_bucket_is_said_in_words(seconds: int, text: str) -> None:
    assert span_text(seconds) == text


def test_what_a_person_decides_by_comes_first_and_what_is_equal_is_apart() -> None:
    columns = (
        ComparedColumn(name="same", type="bigint", changed=0, blue_total="7", green_total="7"),
        ComparedColumn(name="most_rows", type="double", changed=90),
        ComparedColumn(name="little", type="bigint", changed=2, blue_total="100", green_total="99"),
        ComparedColumn(
            name="much", type="decimal(38,2)", changed=1, blue_total="-10.00", green_total="30.50"
        ),
        ComparedColumn(name="from_nothing", type="bigint", changed=1, blue_total="0", green_total="3"),
    )

    shown = as_shown(_compared(columns, folded(SOME)))

    assert [one["name"] for one in shown["columns"]] == ["from_nothing", "much", "little", "most_rows"]
    assert [one["difference"] for one in shown["columns"]] == ["+3", "+40.50", "-1", None]
    assert [one["percent"] for one in shown["columns"]] == [None, 405.0, -1.0, None]
    assert [one["name"] for one in shown["equal_columns"]] == ["same"]
    over = shown["over_time"]
    assert over["same"] == ["orders"] and over["each"] == "minute"
    assert [one["title"] for one in over["plots"]] == [
        "Sum of sales per minute", "Rows per minute", "Rows that differ per minute",
    ]  # fmt: skip


def test_no_digit_of_a_difference_is_lost_and_a_text_has_none() -> None:
    huge = "9" * 36 + ".99"
    columns = (
        ComparedColumn(name="n", type="decimal(38,2)", changed=1, blue_total=huge, green_total="-0.01"),
    )

    shown = as_shown(_compared(columns, None))

    assert shown["columns"][0]["difference"] == "-1" + "0" * 36 + ".00"
    assert shown["no_time"].startswith("It was compared by a Twinlake that did not look at time")
    sample = as_shown(DIFF)["samples"][1]["values"]
    assert [one["difference"] for one in sample] == [None]


def test_a_curve_has_gaps_and_a_value_between_two_of_them_is_a_point() -> None:
    curve = {"name": "blue", "side": "blue", "values": [0.0, 10.0, None, -10.0, None]}

    (made,) = drawn((0, 60, 120, 180, 240), [{"title": "t", "curves": [curve]}])

    assert (made["low"], made["high"], made["zero"]) == (-10.0, 10.0, "60.0")
    assert made["curves"][0]["d"] == "M0.0 60.0h0L150.0 0.0M450.0 120.0h0"
    (alone,) = drawn((60,), [{"title": "t", "curves": [{**curve, "values": [3.0]}]}])
    assert alone["curves"][0]["d"] == "M300.0 0.0h0"
    (nothing,) = drawn((), [{"title": "t", "curves": [{**curve, "values": []}]}])
    assert nothing["curves"][0]["d"] == "" and nothing["high"] == 0.0


def _compared(columns: tuple[ComparedColumn, ...], over_time: OverTime | None) -> Comparison:
    return Comparison(
        table="t", blue=DIFF.blue, green=DIFF.green, position={"orders": 7}, keys=("k",), common=100,
        changed=90, only_blue=0, only_green=0, columns=columns, over_time=over_time,
    )  # fmt: skip
