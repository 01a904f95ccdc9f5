"""A log in memory with the seams of the real one, and a plain-Python oracle of what tables must show."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from tests.frames import frame
from tests.project import OURS
from twinlake.base.times import EPOCH
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.grid import micros
from twinlake.kinds.kind import Kind
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.windows import Tumbling
from twinlake.lake.catalog.version import Version
from twinlake.topics.record_id import INGESTED_AT
from twinlake.topics.topic import Topic, load_topic

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

SALES = Aggregate(
    name="sales_per_region",
    inputs=("orders",),
    columns={"region": "region", "ordered_at": "ordered_at", "amount": "amount", "customer": "customer"},
    keys=("region",),
    window=Tumbling(on="ordered_at", size="1 minute"),
    measures={
        "sales": Sum("amount"), "orders": Count(), "average": Avg("amount"), "smallest": Min("amount"),
        "largest": Max("amount"), "customers": CountDistinct("customer"),
    },
)  # fmt: skip
LATEST = Latest(
    name="latest_order",
    inputs=("orders",),
    columns={"customer": "customer", "order_id": "order_id", "status": "status", "ordered_at": "ordered_at"},
    keys=("customer",),
    order=("ordered_at",),
    values=("order_id", "status", "ordered_at"),
)


class MemoryLog:
    """Batches are lists of valid records. Positions, ranges and metadata are like the real log's."""

    def __init__(self, spark: SparkSession, lake: Path, topic: Topic | None = None) -> None:
        self.spark = spark
        self.topic = topic or load_topic("orders", OURS)
        self.path = lake / "logs" / self.topic.name
        self.batches: list[list[dict[str, Any]]] = []
        self._frames: dict[int, DataFrame] = {}

    def append(self, records: list[dict[str, Any]]) -> int:
        self.batches.append(records)
        return len(self.batches)

    def end(self) -> int:
        return len(self.batches)

    def metadata(self, batch: int | None = None) -> dict[str, Any]:
        at = self.end() if batch is None else batch
        if not at:
            return {}
        records = self.records(at)
        return {
            "kind": "batch", "batch": at, "records": len(self.batches[at - 1]), "watermark": at,
            "clocks": {"log_append_time": at, "processing_time": micros(self.ingested_at(at) - EPOCH)},
            "counts": {"valid": records, "invalid": 0, "duplicate": 0, "too_late": 0, "late": 0},
        }  # fmt: skip

    def ingested_at(self, batch: int) -> datetime:
        """When a batch was added."""
        return START + batch * MINUTE

    def records(self, to: int) -> int:
        return sum(len(held) for held in self.batches[:to])

    @property
    def start(self) -> None:
        """It holds all that it has read."""

    def started(self) -> tuple[int, None]:
        return self.end(), None

    def rows(self, after: int, to: int, at: int | None = None) -> DataFrame:
        return self._frame(after, to).drop("batch")

    def no_rows(self) -> DataFrame:
        return self.rows(0, 0)

    def rows_sql(self, to: int | None = None) -> str:
        view = f"memory_{uuid4().hex}"
        self.rows(0, self.end() if to is None else to).createOrReplaceTempView(view)
        return f"SELECT * FROM {view}"

    def all(self, after: int, to: int) -> DataFrame:
        return self._frame(after, to)

    def _frame(self, after: int, to: int) -> DataFrame:
        schema = ", ".join(f"{name} {type_}" for name, type_ in self.topic.columns) + ", batch bigint"
        names = [name for name, _ in self.topic.columns]
        rows = [
            (*({INGESTED_AT: self.ingested_at(number), **record}[name] for name in names), number)
            for number, held in enumerate(self.batches, start=1)
            if after < number <= to
            for record in held
        ]
        return frame(self.spark, rows, schema)


class Orders:
    """Draws records with a few regions, customers and minutes, so that keys meet; offsets count up."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._offsets: dict[int, int] = defaultdict(int)

    def batch(self, count: int) -> list[dict[str, Any]]:
        return [self.record() for _ in range(count)]

    def record(self) -> dict[str, Any]:
        draw = self._random
        partition = draw.randrange(4)
        offset = self._offsets[partition]
        self._offsets[partition] += 1
        at = START + timedelta(seconds=draw.randrange(600), milliseconds=draw.randrange(1000))
        return {
            "event_id": f"{partition}-{offset}", "order_id": draw.randrange(10**6),
            "customer": f"c{draw.randrange(8)}", "region": draw.choice(("north", "south", "east")),
            "status": draw.choice(("pending", "paid", "cancelled")),
            "amount": Decimal(draw.randrange(10**6)).scaleb(-2), "ordered_at": at,
            "_epoch": 0, "_partition": partition, "_offset": offset, "_timestamp": at + timedelta(seconds=1),
        }  # fmt: skip


def version_of(table: Kind, build: int = 1) -> Version:
    return Version(
        table=table.name, fingerprint=f"{table.name:0<12}"[:12], build=build, definition=table.to_json(),
        topics=table.inputs, contracts={}, created_at="2026-01-31T12:00:00Z",
    )  # fmt: skip


def sales(records: list[dict[str, Any]]) -> dict[tuple[str, datetime], tuple[Any, ...]]:
    """(region, minute) -> sales, orders, smallest, largest, customers."""
    groups: dict[tuple[str, datetime], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        groups[record["region"], record["ordered_at"].replace(second=0, microsecond=0)].append(record)
    return {
        key: (
            sum(one["amount"] for one in held), len(held), min(one["amount"] for one in held),
            max(one["amount"] for one in held), len({one["customer"] for one in held}),
        )
        for key, held in groups.items()
    }  # fmt: skip


def latest(records: list[dict[str, Any]]) -> dict[str, tuple[int, str]]:
    """customer -> order_id and status of the newest record by (ordered_at, record id)."""
    ordered = sorted(
        records, key=lambda one: (one["ordered_at"], one["_epoch"], one["_partition"], one["_offset"])
    )
    return {one["customer"]: (one["order_id"], one["status"]) for one in ordered}
