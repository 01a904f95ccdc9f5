"""The oracle's tables over hand-written events, and its comparison."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from infra.oracle import tables
from infra.oracle.compare import compare, same_sales
from infra.oracle.judge import MINUTE_MS, Judged
from infra.oracle.topic import Records


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

    assert tables.sales_per_region(valid, without_cancelled=True) == {
        ("north", 0): (Decimal("3.01"), 2, Decimal("1.505000"), Decimal("1.00"), Decimal("2.01"), 2),
        ("north", MINUTE_MS): (Decimal("0.07"), 1, Decimal("0.070000"), Decimal("0.07"), Decimal("0.07"), 1),
        ("south", -MINUTE_MS): (Decimal("0.09"), 1, Decimal("0.090000"), Decimal("0.09"), Decimal("0.09"), 1),
    }
    assert tables.sales_per_region(valid, without_cancelled=False)["north", 0][:2] == (Decimal("13.01"), 3)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=9))
def test_averages_are_rounded_half_up_at_the_sixth_digit(cents: list[int]) -> None:
    valid = _valid(*(("a", "r", "paid", one, 0) for one in cents))
    found = tables.sales_per_region(valid, without_cancelled=False)["r", 0][2]

    exact = Decimal(sum(cents)) / 100 / len(cents)
    assert found == exact.quantize(Decimal("0.000001"), rounding="ROUND_HALF_UP")


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
    assert same_sales((1, 4095), (1, 4095))
    assert not same_sales((1, 4095), (1, 4096))
    assert same_sales((1, 100_000), (1, 103_000))
    assert not same_sales((1, 100_000), (1, 110_000))
    assert not same_sales((1, 100_000), (2, 100_000))
