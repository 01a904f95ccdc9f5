"""The ids of a log's valid records, as readers of the newest schema see them: who was seen when."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pyarrow as pa

from twinlake.base import quote
from twinlake.ingest.duplicates import Seen
from twinlake.ingest.first_pass import id_hash, identity
from twinlake.ingest.kept_ids import DIGEST
from twinlake.ingest.log_end import LogEnd
from twinlake.lake.log.log import Log
from twinlake.spark.prepared_plan import computed
from twinlake.topics.record_key import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def way(log: Log) -> bytes | None:
    """Names the log, and how the ids of its records are computed; None where they have none."""
    if (known := _identity(log)) is None:
        return None
    asked = (column for column in log.columns() if column.rpartition(" AS ")[2] in known)
    said = "\n".join((log.appender.table_id, *_hashes(known), *asked))
    return hashlib.sha256(said.encode()).digest()[:DIGEST]


def state(end: LogEnd) -> bytes:
    """Names the log's end at a batch: another one than any other log, or the same log restored, has there."""
    said = json.dumps(end.metadata("", 0), sort_keys=True)
    return hashlib.sha256(said.encode()).digest()[:DIGEST]


def since(log: Log, micros: int) -> Seen:
    """Everybody who was seen from then on."""
    rows = log.rows_of(log.files_since(micros))
    return _seen(_ids(log, rows.where(f"_timestamp >= timestamp_micros({micros}L)")))


def of(log: Log, after: int, to: int) -> Seen:
    """Everybody in the batches (after, to]."""
    return _seen(_ids(log, log.rows(after, to)))


def among(log: Log, asked: Seen, window: int, after: int, to: int) -> Seen:
    """Of the batches in (after, to], those who have one of these ids, and when; none that was seen longer
    than `window` microseconds before the first of them, or after the last."""
    from pyspark.sql import functions as F

    first, last = int(asked.times.min()) - window, int(asked.times.max()) + window
    around = f"_timestamp BETWEEN timestamp_micros({first}L) AND timestamp_micros({last}L)"
    wanted = log.spark.createDataFrame(pa.table({"high": asked.high, "low": asked.low}))
    ids = _ids(log, log.rows(after, to).where(around))
    return _seen(ids.join(F.broadcast(wanted), ["high", "low"], "left_semi"))


def _identity(log: Log) -> str | None:
    return identity(log.topic.contract, quote.name, quote.name(KEY))


def _ids(log: Log, rows: DataFrame) -> DataFrame:
    known = _identity(log) or "NULL"
    return rows.where(f"{known} IS NOT NULL").selectExpr(*_hashes(known), "unix_micros(_timestamp) AS times")


def _hashes(known: str) -> tuple[str, ...]:
    return tuple(f"{id_hash(known, half)} AS {column}" for half, column in enumerate(("high", "low")))


def _seen(ids: DataFrame) -> Seen:
    found = computed(ids)
    high, low, times = (found.column(name).to_numpy() for name in ("high", "low", "times"))
    return Seen(high=high, low=low, times=times)
