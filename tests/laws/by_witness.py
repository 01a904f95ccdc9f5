"""What oracles say of generated histories as the rows of a version: a question to the witness, no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tests.laws.histories import LEVELS, SCHEMA, START, History, Record, made_topic
from twinlake.kinds.kind import Kind
from twinlake.witness.answer import Answer
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Field, Limits, Question, Rows, TopicLog
from twinlake.witness.types import Type

LIMITS = Limits(memory_mb=1_024, seconds=120)
Rowed = Mapping[str, Any]
_FIELDS = {one.name: one.type for one in SCHEMA.fields}
_ARROW = {
    "string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
    "boolean": pa.bool_(), "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip
_LOG = {
    "epoch": "int", "partition": "int", "offset": "bigint", "timestamp": "timestamp", "schema_id": "int",
    "verdict": "string", "late": "boolean", "replay": "boolean", "batch": "bigint",
    "ingested_at": "timestamp",
}  # fmt: skip


def said_by_oracle(
    table: Kind,
    many: Sequence[History],
    oracle: Callable[[Iterable[Record]], Iterable[Rowed]],
    types: Mapping[str, str],
    folder: Path,
) -> Answer:
    """What the witness says of the oracle's rows of all histories; `types` are those of its columns."""
    rows = [
        {"history": str(number), **row}
        for number, history in enumerate(many)
        for row in oracle(history.records)
    ]
    columns = {"history": "string", **types}
    shown = Rows(files=(_written(rows, columns, folder),), columns=tuple(columns.items()))
    topics = {"made": _log(many, folder)}
    return evaluate(Question(definition=table.to_json(), topics=topics, shown=shown), LIMITS)


def _log(many: Sequence[History], folder: Path) -> TopicLog:
    own = {one.name for one in fields(Record)} - {"record_id"}
    rows = []
    for number, history in enumerate(many):
        for one in history.records:
            values = {name: getattr(one, name) for name in own}
            event = {"history": str(number), **dict.fromkeys(LEVELS, 0), **values}
            at = dict(zip(("epoch", "partition", "offset"), one.record_id, strict=True))
            rows.append({
                **at, "timestamp": START, "schema_id": 1, "verdict": "valid", "late": False, "replay": False,
                "batch": 1, "ingested_at": START, "event": event,
            })  # fmt: skip
    event = f"struct<{','.join(f'{name}:{type_}' for name, type_ in _FIELDS.items())}>"
    return TopicLog(
        contract=made_topic().contract.to_json(),
        fields=tuple(Field(name=name, type=type_) for name, type_ in _FIELDS.items()),
        files=(_written(rows, {**_LOG, "event": event}, folder),), position=1, event=_FIELDS,
        met={"1": tuple(_FIELDS)},
    )  # fmt: skip


def _written(rows: Sequence[Rowed], types: Mapping[str, str], folder: Path) -> str:
    schema = pa.schema([(name, _arrow(Type.parse(type_))) for name, type_ in types.items()])
    file = folder / f"{uuid4().hex}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema), file)
    return str(file)


def _arrow(type_: Type) -> Any:
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.name == "array":
        return pa.list_(_arrow(type_.element))
    if type_.name == "struct":
        return pa.struct([(name, _arrow(inner)) for name, inner in type_.fields])
    return _ARROW[type_.name]
