"""Batches of valid orders in a real log, written as ingest writes them, without a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME
from twinlake.lake.delta import delta
from twinlake.lake.log.log import BATCH, COLUMNS, Log

SCHEMA_ID = 1
NO_HEADERS = "cast(array() as array<struct<key string, value binary>>)"


def write_batch(
    log: Log, records: int, beside: Mapping[str, str] = {}, watermark: int | None = None, **fields: str
) -> delta.Commit:
    """One more batch of so many orders; `fields` are SQL over `id`, the record's number in the batch, as
    are `beside`, the log's columns beside the event.

    Offsets count on over the batches, all in partition 0; the watermark is the batch number unless
    one is given, in microseconds.
    """
    before = log.metadata() if delta.exists(log.path) else {}
    batch = int(before.get("batch", 0)) + 1
    held = before.get("counts", {}).get("valid", 0)
    order = {
        "event_id": f"concat('e', {held} + id)",
        "order_id": f"{held} + id",
        "customer": "concat('c', id % 8)",
        "region": "element_at(array('north', 'south', 'east'), cast(id % 3 + 1 as int))",
        "status": "'paid'",
        "amount": "cast(id + 1 as decimal(12, 2))",
        "ordered_at": f"timestamp_seconds(1769860800 + 60 * {batch})",
        **fields,
    }
    known = {field.name: field.type for field in log.topic.newest.fields}
    event = ", ".join(f"'{name}', cast({order[name]} as {type_})" for name, type_ in known.items())
    columns = {
        "epoch": "0", "partition": "0", "offset": f"{held} + id",
        "timestamp": f"timestamp_seconds(1769860801 + 60 * {batch})", "timestamp_type": "1",
        "key": "X'00'", "value": "X'00'", "headers": NO_HEADERS, "schema_id": str(SCHEMA_ID),
        "event": f"named_struct({event})", "verdict": "'valid'", "reasons": "cast(array() as array<string>)",
        "late": "false", "contract": "'1.0.0'", "replay": "false", "batch": f"{batch}L",
        "ingested_at": f"timestamp_seconds(1769860802 + 60 * {batch})",
    }  # fmt: skip
    columns |= beside
    rows = log.spark.range(0, records, 1, 1).selectExpr(*(f"{columns[name]} AS {name}" for name in COLUMNS))
    told: dict[str, Any] = {
        "kind": BATCH, "batch": batch, "records": records, "watermark": watermark or batch,
        "counts": {"valid": held + records, "invalid": 0, "duplicate": 0, "too_late": 0, "late": 0},
        "schemas": {str(SCHEMA_ID): list(known)},
        "clocks": {LOG_APPEND_TIME: batch, PROCESSING_TIME: (1769860802 + 60 * batch) * 1_000_000},
    }  # fmt: skip
    app_id = "log:" + log.open()
    return delta.append(rows, log.path, app_id, batch, told)
