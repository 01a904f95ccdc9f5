"""The plain loop's tables: partials of any cut merge to the tables of the whole."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from benchmarks.loop import Seen, Sink, merge_sales, newest_orders, partial_sales

HOUR_MS = 3_600_000


def records(count: int) -> pl.DataFrame:
    """`count` judged records with many ties, in log order."""
    numbers = pl.int_range(count, eager=True)
    return pl.DataFrame(
        {
            "partition": (numbers % 4).cast(pl.Int32),
            "offset": numbers // 4,
            "timestamp_ms": numbers * 7,
            "key": [b"k"] * count,
            "value": [b"v"] * count,
            "event_id": [f"e{number}" for number in numbers],
            "order_id": numbers,
            "customer": [f"c{number * 7 % 11}" for number in numbers],
            "region": [f"r{number % 3}" for number in numbers],
            "status": ["paid"] * count,
            "cents": numbers * 13 % 101,
            "ordered_ms": numbers * 37 % 50 * 10_000,
            "verdict": ["valid"] * count,
            "late": [False] * count,
        }
    )


def test_tables_appended_in_two_commits_read_as_the_tables_of_all_records(tmp_path: Path) -> None:
    whole, sink = records(500), Sink(tmp_path)
    sink.append(whole[:123], {0: 31})
    sink.append(whole[123:], {0: 125})

    sales, latest = sink.sales_per_region(), sink.latest_order()

    assert_frame_equal(sales, merge_sales(partial_sales(whole)), check_row_order=False)
    assert_frame_equal(latest, newest_orders(whole), check_row_order=False)
    assert pl.read_delta(str(tmp_path / "archive")).height == 500


def test_an_id_counts_again_only_an_hour_after_the_record_that_counted() -> None:
    seen = Seen()

    first = seen.firsts(["a", "a", "a", "a", "b"], [0, HOUR_MS, HOUR_MS + 1, 2 * HOUR_MS, 5])
    seen.forget(5)

    assert first == [True, False, True, False, True]
    assert seen.moments == {"a": HOUR_MS + 1, "b": 5}
