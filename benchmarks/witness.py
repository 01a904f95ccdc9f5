"""`make bench-witness`: CPU-seconds that the witness takes per million records, by kind and measure.

Records as those of `make bench-kinds`, made up by DuckDB, lie in one Parquet file as in a log; what a version
shows of them is what the witness itself finds, so that each is compared, too. It takes no Spark, no service.
One key for all of them is another case: joins of it must not become a product.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.subjects import ITEMS, KEYS, MEASURED, STORED, VIEWS
from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings
from twinlake.kinds.kind import Kind
from twinlake.topics.topic import load_topic
from twinlake.witness.child import witness
from twinlake.witness.database import Database, connect
from twinlake.witness.ingest.evaluate import sampled
from twinlake.witness.ingest.question import Era, TopicQuestion
from twinlake.witness.kinds.all import KINDS
from twinlake.witness.question import Field, Limits, Question, ReadTable, Rows, TopicLog
from twinlake.witness.result import Asked
from twinlake.witness.types import identifier

LIMITS = Limits(memory_mb=4_096, seconds=1_800)
FIELDS = {
    "key": "string", "hot": "string", "item": "string", "at": "timestamp", "amount": "decimal(12,2)",
    "ratio": "double",
}  # fmt: skip
END = 1_767_312_000_000_000
"""The watermark: the end of the records' day."""
HOT = 100_000
"""Records that have one key."""
INGESTED, SAMPLED = 1_000_000, 10_000
"""Records of a topic's log, and how many of them are drawn."""
console = Console(highlight=False)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.witness", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="tables to measure, by comma")
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "witness"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    only = set(filter(None, asked.only.split(",")))
    found = {}
    hot = (replace(VIEWS[0], before="10 seconds"), VIEWS[1])  # type: ignore[type-var]
    for count, key, tables in ((asked.records, "key", (*STORED, *VIEWS)), (HOT, "'one'", hot)):
        log = _log(folder, count, key)
        for table in tables:
            name = table.name if key == "key" else f"{table.name}_of_one_key"
            if table.kind in KINDS and (not only or table.name in only):
                found[name] = _measured(folder, table, log, count)
                console.print(f"{name:24} {found[name]:.2f}")
    replace_file(folder / "witness.json", json.dumps(found, indent=2))
    shown = Table("table", "CPU-s per million records")
    for name, seconds in found.items():
        shown.add_row(f"{name} (a measure)" if name in MEASURED else name, f"{seconds:.2f}")
    console.print(shown)
    if not only:
        seconds, whole = _of_ingest(folder)
        console.print(f"ingest: {seconds:.2f} CPU-s per 1,000 sampled records, beside {whole:.2f} for a log")
    return 0


def _of_ingest(folder: Path) -> tuple[float, float]:
    """CPU-seconds per 1,000 records of a drawn sample of a million orders in Avro, and without any."""
    topic = load_topic("orders", load_settings().project)
    avro, contract = dict(topic.newest.avro), topic.contract.to_json()
    rows = folder / "orders.parquet"
    pq.write_table(_orders(avro, INGESTED), rows)
    event = {field.name: field.type for field in topic.newest.fields}
    took = {}
    for size in (SAMPLED, 1):
        asked = TopicQuestion(
            topic="orders",
            eras=(Era(after=0, contract=contract, fields=tuple(map(Field.of, topic.newest.fields))),),
            schemas={"1": avro}, files=(str(rows),), position=1, event=event, met={"1": tuple(event)}, seed=7,
            size=size,
        )  # fmt: skip
        answer = sampled(asked, LIMITS)
        if not answer.is_equal:
            raise SystemExit(f"orders: {answer.words}")
        took[size] = answer.cpu_s
    return (took[SAMPLED] - took[1]) / SAMPLED * 1_000, took[1]


def _orders(avro: dict[str, Any], count: int) -> pa.Table:
    """So many valid orders, as ingest writes them into a log."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    times = [at + timedelta(milliseconds=number) for number in range(count)]
    events = [
        {
            "event_id": f"e{number}", "order_id": number, "customer": f"c{number % 8}", "region": "north",
            "status": "paid", "amount": Decimal(number % 9_999).scaleb(-2), "ordered_at": times[number],
        }
        for number in range(count)
    ]  # fmt: skip
    schema = fastavro.parse_schema(avro, named_schemas={})
    values = []
    for event in events:
        out = io.BytesIO(b"\0\0\0\0\1")
        out.seek(5)
        fastavro.schemaless_writer(out, schema, event)
        values.append(out.getvalue())
    texts, time = pa.string(), pa.timestamp("us", "UTC")
    kept = pa.struct(
        [(name, texts) for name in ("event_id", "customer", "region", "status")]
        + [("order_id", pa.int64()), ("amount", pa.decimal128(12, 2)), ("ordered_at", time)]
    )
    same = {
        "epoch": pa.scalar(0, pa.int32()), "partition": pa.scalar(0, pa.int32()), "key": pa.scalar(b"k"),
        "schema_id": pa.scalar(1, pa.int32()), "verdict": pa.scalar("valid"), "late": pa.scalar(False),
        "reasons": pa.scalar([], pa.list_(texts)), "replay": pa.scalar(False), "batch": pa.scalar(1),
    }  # fmt: skip
    columns = {name: pa.repeat(one, count) for name, one in same.items()}
    columns |= {"offset": pa.array(range(count), pa.int64()), "timestamp": pa.array(times, time)}
    return pa.table({**columns, "value": pa.array(values, pa.binary()), "event": pa.array(events, kept)})


def _log(folder: Path, count: int, key: str) -> TopicLog:
    """So many records of a day; `key` is SQL over the columns before it."""
    file = folder / f"log_{count}.parquet"
    drawn = "(hash(range, {0}) % {1})"
    rows = (
        f"SELECT range AS id, 'k' || {drawn.format(0, KEYS)} AS key,"
        f" 'item' || {drawn.format(2, ITEMS)} AS item,"
        f" make_timestamp(1767225600000000 + range * (86400000000 // {count})) AS time,"
        f" CAST({drawn.format(3, 1_000_000)} / 100 AS DECIMAL(12,2)) AS amount,"
        f" {drawn.format(4, 1_000_000)} / 7.0 AS ratio FROM range({count})"
    )
    is_hot = f"{drawn.format(1, 10).replace('range', 'id')} < 3"
    event = (
        f"struct_pack(key := {key}, hot := CASE WHEN {is_hot} THEN 'hot'"
        ' ELSE key END, item := item, "at" := time, amount := amount, ratio := CAST(ratio AS DOUBLE))'
    )
    columns = (
        "0 AS epoch, CAST(id % 4 AS INTEGER) AS partition, id AS offset, TIMESTAMP '2026-01-01' AS timestamp,"
        f" 1 AS schema_id, {event} AS event, 'valid' AS verdict, CAST(1 AS BIGINT) AS batch,"
        " TIMESTAMP '2026-01-01' AS ingested_at"
    )
    duckdb.sql(f"COPY (SELECT {columns} FROM ({rows})) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    return TopicLog(
        contract={"columns": [], "late_after": "1 minute", "null_values": "invalid", "key_format": None},
        fields=tuple(Field(name=name, type=type_) for name, type_ in FIELDS.items()),
        files=(str(file),), position=1, event=FIELDS, met={"1": tuple(FIELDS)}, watermark=END,
    )  # fmt: skip


def _measured(folder: Path, table: Kind, log: TopicLog, count: int) -> float:
    """CPU-seconds of a question whose answer is `equal`, per million records."""
    tables = {one.name: one for one in (*STORED, *VIEWS)}
    reads = {name: _read(folder, tables[name], log, count) for name in table.reads}
    question = _shown(folder, table, log, reads, count)
    answer = witness(question, LIMITS)
    if not answer.is_equal:
        raise SystemExit(f"{table.name}: {answer.words}")
    return answer.cpu_s / count * 1_000_000


def _read(folder: Path, table: Kind, log: TopicLog, count: int) -> ReadTable:
    return ReadTable(definition=table.to_json(), shown=_shown(folder, table, log, {}, count).shown)


def _shown(folder: Path, table: Kind, log: TopicLog, reads: Mapping[str, ReadTable], count: int) -> Question:
    """The question whether a version shows what the witness finds."""
    question = Question(
        definition=table.to_json(), topics={"made": log}, reads=reads, shown=Rows(files=(), columns=())
    )
    file = folder / f"{table.name}_{count}.parquet"
    connection = connect(memory_mb=LIMITS.memory_mb)
    database = Database(connection)
    result = KINDS[table.kind](Asked(database, question, question.definition))
    types = {name: one.type for name, one in {**result.columns, **result.by_clocks}.items()}
    columns = ", ".join(map(identifier, types))
    database.run(f"COPY (SELECT {columns} FROM ({result.sql})) TO '{file}' (FORMAT parquet)")
    connection.close()
    shown = Rows(files=(str(file),), columns=tuple((name, type_.spark) for name, type_ in types.items()))
    return replace(question, shown=shown)


if __name__ == "__main__":
    sys.exit(main())
