"""Owns the log of a case's topic: its records as files that the witness and Spark read, and its clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinlake.kinds.clock import LOG_APPEND_TIME, PROCESSING_TIME, advance_watermark
from twinlake.topics.topic import Topic
from twinlake.topics.verdict import VALID
from twinlake.unit_tests.records import Record
from twinlake.unit_tests.values import literal, micros
from twinlake.unit_tests.verdicts import SCHEMA_ID
from twinlake.witness.question import Field, Rows, TopicLog
from twinlake.witness.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    array,
    identifier,
    struct,
)

Copy = Callable[[str, str], None]
"""Writes the rows of a statement of DuckDB's to a file."""
Write = Callable[[Mapping[str, Type], Iterable[Mapping[str, Any]], Path], None]
"""Writes rows with these columns to a file."""
_HEADERS = array(struct(("key", STRING), ("value", BINARY)))


def by_sql(copy: Copy) -> Write:
    """For a few rows: it needs nothing but the engine."""
    return lambda types, rows, file: copy(_values(types, rows), str(file))


def topic_log(topic: Topic, records: Sequence[Record], folder: Path, write: Write) -> TopicLog:
    """The log of these records, each a batch of its own; its file is written to the folder."""
    event = {field.name: Type.parse(field.type) for field in topic.newest.fields}
    file = folder / f"{topic.name}.log.parquet"
    if records:
        columns = _columns(event)
        rows = (_row(topic, number, one) for number, one in enumerate(records, start=1))
        write(columns, rows, file)
    watermark, appended = _clocks(records)
    return TopicLog(
        contract=topic.contract.to_json(),
        fields=tuple(map(Field.of, topic.newest.fields)),
        files=(str(file),) if records else (),
        position=len(records),
        event={name: type_.spark for name, type_ in event.items()},
        met={str(SCHEMA_ID): tuple(event)},
        watermark=watermark,
        clocks={
            LOG_APPEND_TIME: appended,
            PROCESSING_TIME: max((micros(one.ingested_at) for one in records), default=None),
        },
    )


def table_rows(
    rows: Iterable[Mapping[str, Any]], types: Mapping[str, Type], file: Path, write: Write
) -> Rows:
    """Rows that a table shows, as a file; a column that a row lacks is NULL."""
    rows = list(rows)
    if rows:
        write(types, rows, file)
    columns = tuple((name, one.spark) for name, one in types.items())
    return Rows(files=(str(file),) if rows else (), columns=columns)


def _columns(event: Mapping[str, Type]) -> dict[str, Type]:
    """Those of a log, as `twinlake/lake/log/log.py` lists them."""
    return {
        "epoch": INT, "partition": INT, "offset": BIGINT, "timestamp": TIMESTAMP, "timestamp_type": INT,
        "key": BINARY, "value": BINARY, "headers": _HEADERS, "schema_id": INT,
        "event": struct(*event.items()), "verdict": STRING, "reasons": array(STRING), "late": BOOLEAN,
        "contract": STRING, "replay": BOOLEAN, "batch": BIGINT, "ingested_at": TIMESTAMP,
    }  # fmt: skip


def _row(topic: Topic, batch: int, record: Record) -> dict[str, Any]:
    return {
        "epoch": record.epoch, "partition": record.partition, "offset": record.offset,
        "timestamp": record.timestamp, "timestamp_type": 1, "key": record.key, "value": None, "headers": [],
        "schema_id": SCHEMA_ID, "event": record.event, "verdict": record.verdict,
        "reasons": list(record.reasons), "late": record.late, "contract": topic.contract.version,
        "replay": False, "batch": batch, "ingested_at": record.ingested_at,
    }  # fmt: skip


def _values(types: Mapping[str, Type], rows: Iterable[Mapping[str, Any]]) -> str:
    listed = ", ".join(
        f"({', '.join(literal(row.get(name), type_) for name, type_ in types.items())})" for row in rows
    )
    return f"SELECT * FROM (VALUES {listed}) AS given({', '.join(map(identifier, types))})"


def _clocks(records: Iterable[Record]) -> tuple[int | None, int | None]:
    """How far event time and log-append time have come, record by record as ingest counts them."""
    watermark = appended = None
    seen, counted, event_times = dict[int, int](), dict[int, int](), dict[int, int]()
    for one in records:
        at = micros(one.timestamp)
        seen[one.partition] = at
        appended = advance_watermark(appended, seen, seen)
        if one.verdict == VALID and one.event_time is not None and one.event_time <= one.timestamp:
            counted[one.partition] = at
            event_time = micros(one.event_time)
            event_times[one.partition] = max(event_time, event_times.get(one.partition, event_time))
            watermark = advance_watermark(watermark, counted, event_times)
    return watermark, appended
