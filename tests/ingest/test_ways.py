"""A batch is taken in memory by a kept plan, by threads that share a large one, or in two passes where it is
too large for memory: the same rows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from tests.ingest.stage import Stage, frame, order
from tests.ingest.test_verdicts import with_amount
from twinlake.ingest import ingest
from twinlake.ingest.scan import Scan
from twinlake.lake.log.log import BATCH, COLUMNS, Log
from twinlake.spark.prepared_plan import TooLargeError

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NESTED = {"type": "map", "values": {"type": "array", "items": ["null", {
    "type": "record", "name": "Item", "fields": [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}]}}  # fmt: skip


def logged(log: Log) -> list[dict[str, Any]]:
    """Every column of every record but the number of its batch, in order."""
    names = [name for name in COLUMNS if name != BATCH]
    rows = log.all(0, log.end()).select(*names).orderBy("partition", "offset").collect()
    return [row.asDict(recursive=True) for row in rows]


def test_the_log_has_the_same_rows_and_columns_either_way(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.create(partitions=3)
    stage.clock = lambda: NOW
    good = stage.framed(order("a"))
    field = {"name": "items", "type": NESTED, "default": {}}
    richer = {**stage.schema, "fields": [*stage.schema["fields"], field]}
    number = stage.registry.register(stage.subject, richer)
    item = {"price": Decimal("1.25"), "at": order("x")["ordered_at"]}
    rich = frame(number, richer, {**order("rich"), "items": {"a": [item, None], "b": []}})
    for partition in range(2):
        stage.orders(*(f"{partition}-{n % 9}" for n in range(12)), partition=partition)
        stage.produce(good, None, b"", rich, good[:-1], with_amount(good, 10**12), partition=partition)
        stage.produce(
            stage.framed(order("c", amount=Decimal("-1"), region="")), partition=partition, key=None
        )
    producer = Producer({"bootstrap.servers": stage.broker.bootstrap})
    headers = [("trace", b"\1\2"), ("trace", b""), ("none", None)]
    producer.produce(stage.topic.name, good, b"k", partition=0, headers=headers)
    assert producer.flush(30) == 0

    in_two_passes = []

    def bare(self: Scan, *arguments: Any) -> pa.Table:
        in_two_passes.append(self)
        return look_bare(self, *arguments)

    def too_large(*_: Any) -> pa.Table:
        raise TooLargeError

    look_bare = Scan.bare
    monkeypatch.setattr(Scan, "bare", bare)
    small = stage.run(stage.lake_of(tmp_path / "small"))
    assert not in_two_passes
    with monkeypatch.context() as changed:
        changed.setattr(ingest, "IN_MEMORY_BYTES", 0)
        large = stage.run(stage.lake_of(tmp_path / "large"))
    assert len(in_two_passes) >= large.end() > 0
    with monkeypatch.context() as changed:
        changed.setattr(ingest, "LARGE_RECORDS", 1)
        shared = stage.run(stage.lake_of(tmp_path / "shared"))
    assert len(list(shared.path.glob("*.parquet"))) == shared.end()
    monkeypatch.setattr(Scan, "whole", too_large)
    refused = stage.run(stage.lake_of(tmp_path / "refused"))

    assert len(logged(small)) == 39
    for other in (large, shared, refused):
        assert logged(small) == logged(other)
        schemas = [log.spark.read.format("delta").load(str(log.path)).schema for log in (small, other)]
        assert schemas[0] == schemas[1]
        assert small.metadata()["counts"] == other.metadata()["counts"]
    assert {one["ingested_at"].astimezone(UTC) for one in logged(small)} == {NOW}
    found = small.all(0, small.end()).where("event.items IS NOT NULL").select("event.items").first()
    assert found is not None and found["items"]["a"][0]["price"] == Decimal("1.25")
