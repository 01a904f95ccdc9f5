"""The oracle's tables over hand-written events, and its comparison."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import shown, tables
from tests.oracle.compare import compare, same_sales
from tests.oracle.judge import HOUR_MS, MINUTE_MS, Judged
from tests.oracle.topic import Records
from tests.oracle.watermark import Watermark

NOWHERE = Watermark(low=None, high=None)
SALES = (MINUTE_MS, Decimal("3.01"), 2, Decimal("1.505000"), Decimal("1.00"), Decimal("2.01"))
"""One row of `sales_per_region` before the customers: window end, sales, orders, average, extremes."""


def _valid(*events: tuple[str, str, str, int, int]):
    """Events are (customer, region, status, cents, time in ms); all in partition 0 in this order."""
    count = len(events)
    records = Records(
        partitions=[0] * count, offsets=list(range(count)), timestamps_ms=[0] * count,
        keys=[b""] * count, values=[b""] * count,
    )  # fmt: skip
    judged = Judged(rows=list(range(count)))
    for number, (customer, region, status, cents, at) in enumerate(events):
        row = (f"e{number}", number, customer, region, status, cents, at)
        for column, part in zip(judged.columns.values(), row, strict=True):
            column.append(part)
    return tables.frame(records, judged, epoch=0)


def test_sales_are_summed_per_region_and_minute() -> None:
    valid = _valid(
        ("a", "north", "paid", 100, 0),
        ("b", "north", "paid", 201, MINUTE_MS - 1),
        ("a", "north", "cancelled", 1000, 5),
        ("a", "north", "paid", 7, MINUTE_MS),
        ("a", "south", "paid", 9, -1),
    )

    seven, nine = Decimal("0.07"), Decimal("0.09")
    assert tables.sales_per_region(valid, NOWHERE, without_cancelled=True) == {
        ("north", 0): (*SALES, 2, False),
        ("north", MINUTE_MS): (2 * MINUTE_MS, seven, 1, seven, seven, seven, 1, False),
        ("south", -MINUTE_MS): (0, nine, 1, nine, nine, nine, 1, False),
    }
    with_cancelled = tables.sales_per_region(valid, NOWHERE, without_cancelled=False)
    assert with_cancelled["north", 0][1:3] == (Decimal("13.01"), 3)


def test_a_window_is_final_when_the_watermark_is_three_hours_after_its_end() -> None:
    valid = _valid(*(("a", "r", "paid", 1, minute * MINUTE_MS) for minute in range(4)))
    low, high = 3 * HOUR_MS + 2 * MINUTE_MS, 3 * HOUR_MS + 3 * MINUTE_MS

    found = tables.sales_per_region(valid, Watermark(low=low, high=high), without_cancelled=False)

    finals = {closes // MINUTE_MS: final for closes, *_, final in found.values()}
    assert finals == {1: True, 2: True, 3: None, 4: False}


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=9))
def test_averages_are_rounded_half_up_at_the_sixth_digit(cents: list[int]) -> None:
    valid = _valid(*(("a", "r", "paid", one, 0) for one in cents))

    found = tables.sales_per_region(valid, NOWHERE, without_cancelled=False)["r", 0]

    exact = Decimal(sum(cents)) / 100 / len(cents)
    assert found[3] == exact.quantize(Decimal("0.000001"), rounding="ROUND_HALF_UP")


def test_the_latest_order_is_the_newest_by_time_then_by_coordinate() -> None:
    valid = _valid(("a", "r", "paid", 1, 50), ("a", "r", "paid", 2, 40), ("a", "r", "pending", 3, 50))

    assert tables.latest_order(valid) == {"a": (2, "r", "pending", Decimal("0.03"), 50)}


def test_a_digest_notices_any_change_of_any_row() -> None:
    one, other = (("a", "r", "paid", 1, 50), ("b", "r", "paid", 2, 60))
    changed = ("b", "r", "paid", 3, 60)

    assert tables.orders_digests(_valid(one, other)) == tables.orders_digests(_valid(one, other))
    assert tables.orders_digests(_valid(one, other)) != tables.orders_digests(_valid(one, changed))
    assert tables.orders_digests(_valid(one, other)) != tables.orders_digests(_valid(one))


def test_a_comparison_names_missing_surplus_and_changed_keys() -> None:
    found = compare({"a": (1,), "b": (2,), "c": (3,)}, {"a": (1,), "b": (9,), "d": (4,)})

    assert (found.equal, found.differing) == (False, 3)
    assert found.examples == [
        {"key": "b", "expected": [2], "shown": [9]},
        {"key": "c", "expected": [3], "shown": None},
        {"key": "d", "expected": None, "shown": [4]},
    ]


def test_a_sketch_is_exact_while_it_holds_every_customer_and_near_beyond() -> None:
    def same(customers: int, estimate: int) -> bool:
        return same_sales((*SALES, customers, True), (*SALES, estimate, True))

    assert same(4095, 4095)
    assert not same(4095, 4096)
    assert same(100_000, 103_000)
    assert not same(100_000, 110_000)


def test_a_row_with_another_window_end_or_other_sales_is_different() -> None:
    closes, sales, *others = SALES

    assert same_sales((*SALES, 2, True), (closes, sales, *others, 2, True))
    assert not same_sales((*SALES, 2, True), (closes + 1, sales, *others, 2, True))
    assert not same_sales((*SALES, 2, True), (closes, sales + 1, *others, 2, True))


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        (True, True, True), (False, False, True), (None, True, True), (None, False, True),
        (False, True, False), (True, False, False),  # too early, too late
        (True, None, False), (False, None, False), (None, None, False),
    ],
)  # fmt: skip
def test_final_is_as_it_must_be_and_never_null(expected: bool | None, shown: bool | None, same: bool) -> None:
    assert same_sales((*SALES, 2, expected), (*SALES, 2, shown)) is same


def test_a_row_that_is_shown_twice_is_different() -> None:
    class Twice:
        def rows(self, sql: str) -> list[dict[str, Any]]:
            row = {"region": "r", "window": 0, "closes": MINUTE_MS, "sales": "1.00", "orders": 1}
            row |= {"average": "1.000000", "smallest": "1.00", "largest": "1.00", "customers": 1}
            return [row | {"final": True}] * 2

    (values,) = shown.sales_per_region(Twice()).values()

    assert not same_sales((MINUTE_MS, Decimal(1), 1, Decimal(1), Decimal(1), Decimal(1), 1, True), values)
