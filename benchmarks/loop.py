"""The rival: what an engineer without a platform writes. One process, one loop, one broker, one folder.

confluent-kafka hands over 200,000 records, fastavro decodes them, polars judges them, drops duplicates and
computes the partials, deltalake appends three tables: the archive with the raw bytes, `sales_per_region` and
`latest_order`. Reading merges the partials. The end offsets are in the archive's commit. It has no releases,
no certificates, no registry, no quarantine reasons, and one contract, in its code.

    python -m benchmarks.loop --bootstrap-servers HOST:PORT --schema-id N --ends '{"0": 500000}' --out FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from confluent_kafka import Consumer, KafkaException, TopicPartition
from deltalake import CommitProperties, write_deltalake

from benchmarks.decode import decode, load_schema
from benchmarks.meter import Meter

COMMIT_RECORDS = 200_000
UNIQUE_MS = 3_600_000
LATE_MS = 3 * 3_600_000
DISCARD_MS = 21 * 24 * 3_600_000
AHEAD_MS = 5 * 60_000
MINUTE_MS = 60_000
STATUSES = ("pending", "paid", "cancelled")
SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "orders.v1.avsc"
MONEY = pl.Decimal(38, 2)


@dataclass(kw_only=True)
class Seen:
    """Ids of valid records of the last hour; dictionaries keep the order in which ids came."""

    moments: dict[str, int] = field(default_factory=dict)

    def firsts(self, ids: list[str], moments: list[int]) -> list[bool]:
        """Per record in order: was its id not on a valid record of the hour before?"""
        known, first = self.moments, []
        for name, moment in zip(ids, moments, strict=True):
            before = known.get(name)
            fresh = before is None or moment - before > UNIQUE_MS
            if fresh:
                if before is not None:
                    del known[name]
                known[name] = moment
            first.append(fresh)
        return first

    def forget(self, before: int) -> None:
        """Drop the ids, oldest first, that no later record can be a duplicate of."""
        while self.moments:
            name = next(iter(self.moments))
            if self.moments[name] >= before:
                return
            del self.moments[name]


def judge(records: pl.DataFrame, events: pl.DataFrame, places: list[int], seen: Seen) -> pl.DataFrame:
    """`records` (one row per message) with the event's columns, `verdict` and `late`."""
    decoded = events.with_columns(pl.Series("place", places, dtype=pl.UInt32))
    frame = records.with_row_index("place").join(decoded, on="place", how="left", maintain_order="left")
    behind = pl.col("timestamp_ms") - pl.col("ordered_ms")
    frame = frame.with_columns(
        late=(behind > LATE_MS).fill_null(False),
        verdict=pl.when(pl.col("event_id").is_null())
        .then(pl.lit("invalid"))
        .when(
            (pl.col("cents") < 0)
            | ~pl.col("status").is_in(STATUSES)
            | (pl.col("region") == "")
            | (pl.col("customer") == "")
            | (behind < -AHEAD_MS)
        )
        .then(pl.lit("invalid"))
        .when(behind > DISCARD_MS)
        .then(pl.lit("too_late"))
        .otherwise(pl.lit("valid")),
    )
    valid = frame.filter(pl.col("verdict") == "valid").select("place", "event_id", "timestamp_ms")
    first = seen.firsts(valid["event_id"].to_list(), valid["timestamp_ms"].to_list())
    repeated = valid.filter(~pl.Series(first, dtype=pl.Boolean))["place"]
    if not repeated.is_empty():
        frame = frame.with_columns(
            verdict=pl.when(pl.col("place").is_in(repeated.implode()))
            .then(pl.lit("duplicate"))
            .otherwise("verdict")
        )
    newest = frame.group_by("partition").agg(pl.max("timestamp_ms"))["timestamp_ms"].to_list()
    seen.forget(min(newest) - UNIQUE_MS)
    return frame.drop("place")


def partial_sales(valid: pl.DataFrame) -> pl.DataFrame:
    """Per region and minute: sums, extremes and the set of customers."""
    return valid.group_by("region", window_start=pl.col("ordered_ms") // MINUTE_MS * MINUTE_MS).agg(
        sales=pl.sum("cents"),
        orders=pl.len().cast(pl.Int64),
        smallest=pl.min("cents"),
        largest=pl.max("cents"),
        customers=pl.col("customer").unique(),
    )


def merge_sales(partials: pl.DataFrame) -> pl.DataFrame:
    """The table `sales_per_region` that the partials stand for."""
    keys = ["region", "window_start"]
    totals = partials.group_by(keys).agg(
        pl.sum("sales"), pl.sum("orders"), pl.min("smallest"), pl.max("largest")
    )
    people = partials.explode("customers").group_by(keys).agg(pl.n_unique("customers").cast(pl.Int64))
    return totals.join(people, on=keys)


def newest_orders(valid: pl.DataFrame) -> pl.DataFrame:
    """Per customer the newest row by event time, then record id; also merges the partials."""
    wanted = ["customer", "order_id", "region", "status", "cents", "ordered_ms", "partition", "offset"]
    ordered = valid.select(wanted).sort("ordered_ms", "partition", "offset")
    return ordered.group_by("customer").agg(pl.all().last())


class Sink:
    """The three Delta tables, appended together; the archive goes last and holds the end offsets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, judged: pl.DataFrame, ends: dict[int, int]) -> None:
        valid = judged.filter(pl.col("verdict") == "valid")
        self._write("sales_per_region", partial_sales(valid))
        self._write("latest_order", newest_orders(valid))
        typed = judged.with_columns(
            timestamp=pl.from_epoch("timestamp_ms", time_unit="ms").dt.cast_time_unit("us"),
            amount=(pl.col("cents").cast(MONEY) / pl.lit(100).cast(MONEY)).cast(pl.Decimal(12, 2)),
            ordered_at=pl.from_epoch("ordered_ms", time_unit="ms").dt.cast_time_unit("us"),
        ).drop("timestamp_ms", "cents", "ordered_ms")
        self._write("archive", typed, {"ends": json.dumps(ends)})

    def _write(self, table: str, rows: pl.DataFrame, metadata: dict[str, str] | None = None) -> None:
        write_deltalake(
            str(self.folder / table),
            rows,
            mode="append",
            commit_properties=CommitProperties(custom_metadata=metadata),
        )

    def sales_per_region(self) -> pl.DataFrame:
        """`region, window_start, sales, orders, smallest, largest, customers`; money in cents."""
        return merge_sales(pl.read_delta(str(self.folder / "sales_per_region")))

    def latest_order(self) -> pl.DataFrame:
        """`customer, order_id, region, status, cents, ordered_ms, partition, offset`."""
        return newest_orders(pl.read_delta(str(self.folder / "latest_order")))


def run(
    *,
    bootstrap_servers: str,
    topic: str,
    starts: dict[int, int],
    ends: dict[int, int],
    schema_id: int,
    sink: Sink,
) -> dict[str, int]:
    """Consume every partition from its start to its end; the number of records per verdict."""
    schema = load_schema(SCHEMA)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "plain-loop",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "fetch.min.bytes": 1 << 20,
            "queued.max.messages.kbytes": 128 * 1024,
        }
    )
    consumer.assign([TopicPartition(topic, number, starts.get(number, 0)) for number in ends])
    remaining = sum(ends.values()) - sum(starts.get(number, 0) for number in ends)
    seen, counts, reached = Seen(), dict[str, int](), dict(starts)
    try:
        while remaining > 0:
            records, values = _take(consumer, min(COMMIT_RECORDS, remaining), ends)
            decoded = decode(values, schema_id, schema)
            judged = judge(records, decoded.events, decoded.places, seen)
            newest = records.group_by("partition").agg(pl.max("offset")).iter_rows()
            reached.update({number: offset + 1 for number, offset in newest})
            sink.append(judged, reached)
            for verdict, number in judged.group_by("verdict").len().iter_rows():
                counts[verdict] = counts.get(verdict, 0) + number
            remaining -= records.height
    finally:
        consumer.close()
    return counts


def _take(consumer: Consumer, number: int, ends: dict[int, int]) -> tuple[pl.DataFrame, list[bytes | None]]:
    """The next `number` messages before the ends as a frame, and their values once more as a list."""
    taken: list[Any] = []
    while len(taken) < number:
        messages: list[Any] = consumer.consume(number - len(taken), timeout=1.0)
        for message in messages:
            if message.error():
                raise KafkaException(message.error())
        taken += [message for message in messages if message.offset() < ends[message.partition()]]
    values = [message.value() for message in taken]
    frame = pl.DataFrame(
        {
            "partition": pl.Series([message.partition() for message in taken], dtype=pl.Int32),
            "offset": pl.Series([message.offset() for message in taken], dtype=pl.Int64),
            "timestamp_ms": pl.Series([message.timestamp()[1] for message in taken], dtype=pl.Int64),
            "key": pl.Series([message.key() for message in taken], dtype=pl.Binary),
            "value": pl.Series(values, dtype=pl.Binary),
        }
    )
    return frame, values


def _offsets(text: str) -> dict[int, int]:
    return {int(number): int(offset) for number, offset in json.loads(text).items()}


def main() -> None:
    """Run once over the given offsets and print what it cost as one line of JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", default="orders")
    parser.add_argument("--schema-id", type=int, required=True)
    parser.add_argument("--starts", type=_offsets, default={}, help="first offset per partition, as JSON")
    parser.add_argument("--ends", type=_offsets, required=True, help="offset after the last, as JSON")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with Meter([os.getpid()]) as meter:
        counts = run(
            bootstrap_servers=given.bootstrap_servers,
            topic=given.topic,
            starts=given.starts,
            ends=given.ends,
            schema_id=given.schema_id,
            sink=Sink(given.out),
        )
    print(json.dumps({"records": sum(counts.values()), "verdicts": counts, **meter.cost.to_json()}))


if __name__ == "__main__":
    main()
