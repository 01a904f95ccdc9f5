"""How far a log's clocks have come after some of its batches, and what the next batch goes on from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME, advance_watermark


@dataclass(frozen=True, kw_only=True)
class LogClock:
    """The watermark and the log's own clocks, in microseconds; None for one that has not come anywhere."""

    watermark: int | None
    clocks: dict[str, int | None]


@dataclass(kw_only=True)
class Fold:
    """How far the clocks of a log have come after some of its batches, and what the next batch goes on from:
    by partition of the epoch, the latest times of records, in microseconds."""

    epoch: int = 0
    watermark: int | None = None
    appended: int | None = None
    ingested: int | None = None
    seen: dict[int, int] = field(default_factory=dict)
    event_times: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)

    def take(self, rows: Iterable[Mapping[str, Any]]) -> Fold:
        """Goes on by rows of `by_batch`, as the commits had them batch by batch; itself.

        The log's commits alone say that a topic was accepted again before the first record of the new epoch:
        a replay of older records in between counts here as one before it.
        """
        for _, parts in groupby(rows, lambda row: row["batch"]):
            self._batch(list(parts))
        return self

    def _batch(self, batch: Sequence[Mapping[str, Any]]) -> None:
        read = [row for row in batch if row["seen"] is not None]  # copies say nothing of Kafka's clock
        if read and read[0]["epoch"] != self.epoch:
            self.epoch, self.seen, self.event_times, self.counted = read[0]["epoch"], {}, {}, {}
        self.seen |= {row["partition"]: row["seen"] for row in read}
        for row in batch:
            if row["epoch"] == self.epoch and (time := row["event_time"]) is not None:
                partition, at = row["partition"], row["counted"]
                self.event_times[partition] = max(time, self.event_times.get(partition, time))
                # copies count as if they had been valid at first
                before = self.counted.get(partition, at)
                self.counted[partition] = at if row["seen"] is not None else max(at, before)
        self.watermark = advance_watermark(self.watermark, self.counted, self.event_times)
        if read:
            self.appended = advance_watermark(self.appended, self.seen, self.seen)
        ingested = (row["ingested"] for row in batch if row["ingested"] is not None)
        self.ingested = max(ingested, default=self.ingested)

    @property
    def clock(self) -> LogClock:
        clocks = {LOG_APPEND_TIME: self.appended, PROCESSING_TIME: self.ingested}
        return LogClock(watermark=self.watermark, clocks=clocks)
