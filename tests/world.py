"""One version over a log in memory, driven step by step without threads: what it does and shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.history import SALES, MemoryLog, Orders, latest, sales, version_of
from twinlake.base.job import Run
from twinlake.batch.due import WHOLE, Scope
from twinlake.batch.merge import merge_small
from twinlake.batch.rebuild import Rebuilt, rebuild
from twinlake.batch.verify import verify
from twinlake.kinds.kind import StoredKind, ViewClock
from twinlake.kinds.latest import Latest
from twinlake.kinds.windows import ALL
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta import delta
from twinlake.speed.advance import Standing, advance, close, standing


class Killed(BaseException):
    """The process ends here."""


@dataclass
class World:
    spark: SparkSession
    lake: Path
    table: StoredKind = SALES
    seed: int = 1
    build: int = 1
    runs: int = 0
    log: MemoryLog = field(init=False)
    orders: Orders = field(init=False)
    feed: MaintainedVersion = field(init=False)
    at: Standing = field(init=False)

    def __post_init__(self) -> None:
        self.log, self.orders = MemoryLog(self.spark, self.lake), Orders(self.seed)
        self.restart()

    def restart(self) -> None:
        """What a new process does: read where the version stands, close what is open."""
        opened = open_version(self.lake, version_of(self.table, self.build), {self.log.topic.name: self.log})
        assert isinstance(opened, MaintainedVersion)
        self.feed = opened
        self.at = standing(self.feed)
        if self.at.steps_open:
            self.close()

    def produce(self, count: int = 20) -> None:
        self.log.append(self.orders.batch(count))

    def step(self, to: int | None = None) -> None:
        self.at = advance(self.feed, self.at, self.log.end() if to is None else to)

    def fill(self, segments: int) -> None:
        """So many closed segments more, of one step each."""
        for _ in range(segments):
            self.produce()
            self.step()
            self.close()

    def close(self) -> None:
        self.at = close(self.feed, self.at)

    def merge(self) -> Any:
        return merge_small(self.feed, self.at.segment)

    def pin(self) -> Pin:
        return Pin(
            version=self.feed.version, delta_version=delta.newest_version(self.feed.path),
            position={"orders": self.at.position}, watermarks={"orders": self.at.watermark},
            clocks={"orders": self.at.clocks},
            step=self.at.step, segment=self.at.segment,
        )  # fmt: skip

    def closed(self) -> Closed:
        if self.at.steps_open:
            self.close()
        return Closed(pin=self.pin(), through=self.at.segment - 1, records=self.at.records)

    def rebuild(
        self, closed: Closed | None = None, windows: Any = ALL, job: str = "", **more: Any
    ) -> Rebuilt:
        """As the job of this name, or as a new one; of these windows, or of what a function says is due."""
        self.runs += 1
        run = Run(id=job or f"run-{self.runs}")
        staging = self.lake / "staging" / run.id
        return rebuild(
            self.feed, closed or self.closed(), lambda: self.at.segment, run, staging, "2026", windows, **more
        )

    def verify(self, scope: Scope = WHOLE) -> Certificate:
        return verify(self.feed, self.pin(), Run(id="verify"), "2026", scope)

    def shows(self) -> Any:
        """What a reader of the view sees, in the oracle's form."""
        text = self.table.view({self.table.name: f"delta.`{self.feed.path}`"}, ViewClock())
        rows = self.spark.sql(text).collect()
        if isinstance(self.table, Latest):
            return {row["customer"]: (row["order_id"], row["status"]) for row in rows}
        return {
            (row["region"], row["window_start"].astimezone(UTC)): (
                row["sales"], row["orders"], row["smallest"], row["largest"], row["customers"]
            )
            for row in rows
        }  # fmt: skip

    def expected(self) -> Any:
        records = [record for batch in self.log.batches[: self.at.position] for record in batch]
        return latest(records) if isinstance(self.table, Latest) else sales(records)
