"""From the whole look at a batch and what was decided to the rows of the log, in memory: the columns of
`lake.log.COLUMNS`. `log_rows` does the same in Spark for batches that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from twinlake.ingest.decide import FIXED, VALID_LATE, Decision
from twinlake.ingest.log_end import LogEnd
from twinlake.lake.log.log import BATCH, COLUMNS
from twinlake.topics.topic import Topic


def log_table(
    looked: pa.Table, topic: Topic, decision: Decision, end: LogEnd, copies_of: int | None = None
) -> pa.Table:
    """`looked` has the columns of `first_pass.selections` with the event, `end` is the log's end after it.

    `copies_of` is the epoch of records that the log has already, of which these are copies.
    """
    rows = looked.combine_chunks()
    if len(decision.order) != len(rows) or (np.diff(decision.order) != 1).any():
        rows = rows.take(decision.order)
    codes = decision.row_codes - 1
    schema_id = rows.column("schema_id").to_numpy()
    made: dict[str, Any] = {
        "epoch": _all(rows, end.epoch if copies_of is None else copies_of, pa.int32()),
        "timestamp_type": rows.column("type"),
        "schema_id": pa.array(schema_id, pa.int32(), mask=schema_id < 0),
        "verdict": pa.array([code.verdict for code in decision.codes]).take(codes),
        "reasons": pa.array([code.reasons for code in decision.codes], pa.list_(pa.string())).take(codes),
        "late": pa.array(codes == FIXED.index(VALID_LATE)),
        "contract": _all(rows, topic.contract.version, pa.string()),
        "replay": _all(rows, copies_of is not None, pa.bool_()),
        BATCH: _all(rows, end.batch, pa.int64()),
        "ingested_at": _all(rows, end.ingested_at, pa.timestamp("us", "UTC")),
    }
    columns = [made[name] if name in made else rows.column(name) for name in COLUMNS]
    return pa.table(columns, COLUMNS)


def _all(rows: pa.Table, value: Any, type_: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, type_), rows.num_rows)
