"""Bounds of the log's watermark: how far event time has come, which decides what windows are final.

After each batch of records the watermark rises, if it does, to the newest event time of that partition which
is furthest behind, idle partitions left out; it never goes back. Where it stands so depends on how records
were cut into batches, which the topic does not tell. But it is not below what the last batch alone makes of
it, and never beyond the newest event time of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from tests.oracle.judge import MINUTE_MS

IDLE_MS = MINUTE_MS
"""A partition whose newest record that counts is so much older than another's holds nothing back."""


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """Where the watermark is, in milliseconds: somewhere from `low` to `high`. None: perhaps nowhere yet."""

    low: int | None
    high: int | None

    def has_passed(self, moment_ms: int) -> bool | None:
        """Whether it is at the moment or beyond; None where the bounds leave that open."""
        if self.low is not None and moment_ms <= self.low:
            return True
        if self.high is None or moment_ms > self.high:
            return False
        return None


def watermark(valid: pl.DataFrame) -> Watermark:
    """The bounds after all records. One with an event time later than its own timestamp does not count."""
    counting = valid.filter(pl.col("ordered_at") <= pl.col("timestamp"))
    awake = (
        counting.group_by("partition")
        .agg(pl.col("timestamp").max())
        .filter(pl.col("timestamp") >= pl.col("timestamp").max() - IDLE_MS)
    )
    newest = counting.group_by("partition").agg(pl.col("ordered_at").max())
    held = newest.join(awake, on="partition", how="semi")
    return Watermark(
        low=min(held["ordered_at"].to_list(), default=None),
        high=max(newest["ordered_at"].to_list(), default=None),
    )
