"""What two definitions show of the same records is compared as two versions of a table are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from twinlake import Aggregate, Avg, Count, Sum, Tumbling
from twinlake.releases.compare_found import compare_found, is_equal
from twinlake.releases.comparison import Comparison
from twinlake.witness.rows import Found
from twinlake.witness.types import Type

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
TABLE = Aggregate(
    name="pages",
    inputs=("visits",),
    columns={"page": "page", "cents": "cents", "seconds": "seconds", "at": "at"},
    keys=("page",),
    window=Tumbling(on="at", size="1 minute"),
    measures={"visits": Count(), "cents": Sum("cents"), "seconds": Avg("seconds")},
)
TYPES = {
    "page": "string", "window_start": "timestamp", "window_end": "timestamp", "visits": "bigint",
    "cents": "decimal(38,2)", "seconds": "double", "final": "boolean",
}  # fmt: skip


def found(*rows: Sequence[Any], sizes: Sequence[float | None] = (), **types: str) -> Found:
    """(page, visits, cents, seconds) of each row."""
    return Found(
        keys=("page", "window_start"),
        types={name: Type.parse(types.get(name, type_)) for name, type_ in TYPES.items()},
        rows=tuple((page, AT, AT, *values, True) for page, *values in rows),
        sizes={"seconds": tuple(sizes)} if sizes else {},
    )


def compared(before: Found, after: Found, table: Aggregate = TABLE) -> Comparison:
    return compare_found(("c1", TABLE, before), ("changed", table, after), {"visits": 3})


CENTS = Decimal("1.00")


def test_rows_meet_by_key_and_each_is_counted_once() -> None:
    common = ("c", 3, CENTS, None), (None, 4, CENTS, 4.0)
    before = found(("a", 1, CENTS, 1.0), ("b", 2, CENTS, 2.0), *common)
    after = found(*common, ("b", 5, Decimal("1.50"), 2.0), ("d", 1, CENTS, 1.0))

    one = compared(before, after)

    assert (one.common, one.changed, one.only_blue, one.only_green, one.equal) == (3, 1, 1, 1, False)
    assert {column.name: column.changed for column in one.columns} == {
        "window_end": 0, "visits": 1, "cents": 1, "seconds": 0,
    }  # fmt: skip
    totals = {column.name: (column.blue_total, column.green_total) for column in one.columns}
    assert totals["visits"] == ("10", "13") and totals["cents"] == ("4.00", "4.50")
    assert totals["seconds"] == (None, None)  # an average does not add up
    assert [(sample.kind, sample.key["page"], sample.columns) for sample in one.samples] == [
        ("changed", "b", ("visits", "cents")), ("only_blue", "a", ()), ("only_green", "d", ()),
    ]  # fmt: skip
    assert "final" not in (one.samples[0].blue or {})  # the watermark decides it, not the definition
    assert (one.position, one.keys, one.blue.version) == ({"visits": 3}, ("page", "window_start"), "c1")


@pytest.mark.parametrize(
    ("seconds", "size", "equal"),
    [
        (1.0 + 1e-12, 1.0, True), (1.0 + 1e-8, 1.0, False), (1.0 + 1e-8, 100.0, True),
        (1.0 + 1e-12, None, False), (float("nan"), 1.0, False), (None, 1.0, False),
    ],
)  # fmt: skip
def test_doubles_that_add_up_are_equal_within_a_billionth_of_what_was_added_up(
    seconds: float | None, size: float | None, equal: bool
) -> None:
    before = found(("a", 1, CENTS, 1.0), sizes=[size])
    after = found(("a", 1, CENTS, seconds), sizes=[size])

    assert compared(before, after).equal is equal


def test_numbers_of_other_types_compare_by_value_and_all_else_as_text() -> None:
    before = found(("a", 1, CENTS, 1.0))
    others = {"decimal(10,1)": Decimal("1.0"), "double": 1.0, "string": "1"}
    unlike = {"decimal(10,1)": Decimal("1.1"), "string": "1.0", "boolean": True}

    same = [compared(before, found(("a", one, CENTS, 1.0), visits=type_)) for type_, one in others.items()]
    other = [compared(before, found(("a", one, CENTS, 1.0), visits=type_)) for type_, one in unlike.items()]

    assert [one.equal for one in same] == [True, True, True] and [one.changed for one in other] == [1, 1, 1]
    assert same[0].columns[1].type == "bigint -> decimal(10,1)"


def test_a_time_that_became_a_text_is_compared_as_spark_casts_it() -> None:
    moments = [AT, AT.replace(microsecond=120_000)]
    before = [found(("a", one, CENTS, 1.0), visits="timestamp") for one in moments]
    texts = ["2026-01-31 12:00:00", "2026-01-31 12:00:00.12"]

    after = [found(("a", one, CENTS, 1.0), visits="string") for one in texts]

    assert all(compared(one, other).equal for one, other in zip(before, after, strict=True))


def test_definitions_with_other_keys_have_no_row_in_common() -> None:
    table = replace(TABLE, keys=("page", "cents"), measures={"visits": Count(), "seconds": Avg("seconds")})
    rows = found(("a", 1, CENTS, 1.0))

    one = compared(rows, replace(rows, keys=("page", "cents", "window_start")), table)

    assert (one.common, one.only_blue, one.only_green, one.columns) == (0, 1, 1, ())
    assert [sample.kind for sample in one.samples] == ["only_blue", "only_green"]


def test_columns_of_one_side_alone_are_named() -> None:
    fewer = replace(TABLE, measures={"visits": Count(), "clicks": Count()})
    shown = found(("a", 1, CENTS, 1.0))
    types = {("clicks" if name == "cents" else name): type_ for name, type_ in shown.types.items()}

    one = compared(shown, replace(shown, types=types), fewer)

    assert (one.columns_only_blue, one.columns_only_green) == (("cents", "seconds"), ("clicks",))


def test_of_a_key_with_several_rows_each_meets_one() -> None:
    twice = found(("a", 1, CENTS, 1.0), ("a", 2, CENTS, 1.0))

    assert compared(twice, twice).common == 2
    assert compared(twice, found(("a", 1, CENTS, 1.0))).only_blue == 1


def test_the_rows_with_the_largest_share_of_what_differs_come_first() -> None:
    many = [(f"p{number:02d}", number, CENTS, 1.0) for number in range(40)]
    moved = [(page, visits * (3 if page == "p07" else 2), *rest) for page, visits, *rest in many]

    one = compared(found(*many), found(*moved))

    pages = [sample.key["page"] for sample in one.samples]
    assert len(pages) == 20 and pages[:2] == ["p39", "p38"] and one.changed == 39


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (float("nan"), float("nan"), True), ([1, None], [1, None], True), ([1], [1, 2], False),
        ({"a": float("nan")}, {"a": float("nan")}, True), ({"a": 1}, {"b": 1}, False),
        (0.0, -0.0, True), (None, 0.0, False), (Decimal("0.1"), 0.1, True),
    ],
)  # fmt: skip
def test_values_are_equal_as_spark_says_it(left: Any, right: Any, equal: bool) -> None:
    assert is_equal(left, right) is equal
