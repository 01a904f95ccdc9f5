"""Evaluates the three tables and the quarantine over judged records."""

from __future__ import annotations

from decimal import Decimal
from hashlib import md5
from typing import Any

import polars as pl

from tests.oracle.judge import FIELDS, MINUTE_MS, RULES, Judged
from tests.oracle.topic import Records
from tests.oracle.watermark import Watermark

BLOCK = 5_000  # offsets per digest of `orders`
Digest = tuple[int, int, int]  # rows, sum of the first and of the second half of each row's digest


def frame(records: Records, judged: Judged, epoch: int) -> pl.DataFrame:
    """The valid events with their record ids, one row each; amount in cents, times in milliseconds."""
    return pl.DataFrame(
        {
            **{name: judged.columns[name] for name in FIELDS},
            "partition": [records.partitions[row] for row in judged.rows],
            "offset": [records.offsets[row] for row in judged.rows],
            "timestamp": [records.timestamps_ms[row] for row in judged.rows],
        },
        schema={
            "event_id": pl.String,
            "order_id": pl.Int64,
            "customer": pl.String,
            "region": pl.String,
            "status": pl.String,
            "amount": pl.Int64,
            "ordered_at": pl.Int64,
            "partition": pl.Int32,
            "offset": pl.Int64,
            "timestamp": pl.Int64,
        },
    ).with_columns(pl.lit(epoch, dtype=pl.Int32).alias("epoch"))


def sales_per_region(
    valid: pl.DataFrame, watermark: Watermark, *, without_cancelled: bool
) -> dict[tuple[str, int], tuple[Any, ...]]:
    """By (region, window start in ms): window end in ms, sales, orders, average, smallest, largest,
    customers, final (None where the watermark's bounds leave it open).
    """
    if without_cancelled:
        valid = valid.filter(pl.col("status") != "cancelled")
    grouped = (
        valid.with_columns((pl.col("ordered_at") // MINUTE_MS * MINUTE_MS).alias("window"))
        .group_by("region", "window")
        .agg(
            pl.col("amount").sum().alias("sales"),
            pl.len().alias("orders"),
            pl.col("amount").min().alias("smallest"),
            pl.col("amount").max().alias("largest"),
            pl.col("customer").n_unique().alias("customers"),
        )
    )
    return {
        (region, window): (
            window + MINUTE_MS,
            _money(sales),
            orders,
            _average(sales, orders),
            _money(smallest),
            _money(largest),
            customers,
            watermark.has_passed(window + MINUTE_MS + RULES.late_after_ms),
        )
        for region, window, sales, orders, smallest, largest, customers in grouped.iter_rows()
    }


def latest_order(valid: pl.DataFrame) -> dict[str, tuple[Any, ...]]:
    """By customer: order_id, region, status, amount, ordered_at in ms, of the newest order."""
    newest = (
        valid.sort("ordered_at", "epoch", "partition", "offset")
        .group_by("customer", maintain_order=True)
        .last()
        .select("customer", "order_id", "region", "status", "amount", "ordered_at")
    )
    return {
        customer: (order_id, region, status, _money(amount), ordered_at)
        for customer, order_id, region, status, amount, ordered_at in newest.iter_rows()
    }


def quarantine(records: Records, judged: Judged, epoch: int) -> dict[tuple[int, int, int], tuple[Any, ...]]:
    """By record id: timestamp in ms, digests of key and value, verdict, reasons in alphabetical order."""
    return {
        (epoch, records.partitions[row], records.offsets[row]): (
            records.timestamps_ms[row],
            None if records.keys[row] is None else md5(records.keys[row] or b"").hexdigest(),
            None if records.values[row] is None else md5(records.values[row] or b"").hexdigest(),
            verdict,
            tuple(sorted(reasons)),
        )
        for row, (verdict, reasons) in judged.refused.items()
    }


def orders_digests(valid: pl.DataFrame) -> dict[tuple[int, int, int], Digest]:
    """By (epoch, partition, block of offsets): the digest of all fields and record ids of its rows."""
    digests: dict[tuple[int, int, int], list[int]] = {}
    columns = [*FIELDS, "epoch", "partition", "offset", "timestamp"]
    for row in valid.select(columns).iter_rows():
        event_id, order_id, customer, region, status, cents, ordered_at, *record_id = row
        epoch, partition, offset, timestamp = record_id
        text = (
            f"{event_id}\x01{order_id}\x01{customer}\x01{region}\x01{status}\x01"
            f"{cents // 100}.{cents % 100:02d}\x01{ordered_at}\x01"
            f"{epoch}\x01{partition}\x01{offset}\x01{timestamp}"
        )
        halves = md5(text.encode()).hexdigest()
        sums = digests.setdefault((epoch, partition, offset // BLOCK), [0, 0, 0])
        sums[0] += 1
        sums[1] += int(halves[:15], 16)
        sums[2] += int(halves[16:31], 16)
    return {block: (rows, first, second) for block, (rows, first, second) in digests.items()}


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _average(cents: int, count: int) -> Decimal:
    """decimal(38,6), half up; amounts of valid orders are never negative."""
    millionths = (cents * 10_000 * 2 + count) // (2 * count)
    return Decimal(millionths).scaleb(-6)
