"""Questions made of what Spark's kinds show of rows that a test has made up, over files as a log has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.laws.histories import made_topic
from twinlake.base.times import parse_duration
from twinlake.kinds.kind import Kind, ViewClock, is_stored
from twinlake.lake.log.log_clock import moment_sql
from twinlake.topics import record_id
from twinlake.witness.answer import Answer
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Field, Limits, Question, ReadTable, Rows, TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LIMITS = Limits(memory_mb=1_024, seconds=120)
CONTRACT = made_topic().contract.to_json()
_RECORD = tuple(name for name, _ in record_id.READ)
_NOTHING: Mapping[str, Any] = {}


def log_of(
    rows: DataFrame, folder: Path, contract: Mapping[str, Any] = CONTRACT, watermark: int | None = None
) -> TopicLog:
    """A log of these rows, which have a topic's columns; others in it are invalid or after the position."""
    fields = {name: type_ for name, type_ in rows.dtypes if name not in _RECORD}
    event = ", ".join(f"'{name}', `{name}`" for name in fields)
    ingested_at = "_ingested_at" if "_ingested_at" in rows.columns else "_timestamp"
    copies = rows.selectExpr("*", "explode(array(1, 2, 3)) AS copy").selectExpr(
        "_epoch AS epoch", "_partition AS partition", "_offset + 1000000 * (copy - 1) AS offset",
        "_timestamp AS timestamp", "X'00' AS key", "X'00' AS value", "1 AS schema_id",
        f"named_struct({event}) AS event", "element_at(array('valid', 'invalid', 'valid'), copy) AS verdict",
        "false AS late", "CAST(if(copy = 3, 2, 1) AS bigint) AS batch", f"{ingested_at} AS ingested_at",
        "false AS replay",
    )  # fmt: skip
    return TopicLog(
        contract=contract,
        fields=tuple(Field(name=name, type=type_) for name, type_ in fields.items()),
        files=files_of(copies, folder),
        position=1,
        event=fields,
        met={"1": tuple(fields)},
        watermark=watermark,
    )


def files_of(rows: DataFrame, folder: Path) -> tuple[str, ...]:
    """The rows as Spark writes them."""
    place = folder / uuid4().hex
    rows.coalesce(1).write.parquet(str(place))
    return tuple(sorted(map(str, place.glob("*.parquet"))))


def written(rows: DataFrame, folder: Path) -> Rows:
    return Rows(files=files_of(rows, folder), columns=tuple(rows.dtypes))


def view_of(table: Any, relations: Mapping[str, DataFrame], logs: Mapping[str, TopicLog]) -> DataFrame:
    """What readers see: a stored kind's relation is its states, a view kind's are those that it reads."""
    clock = ViewClock(
        watermarks={name: moment_sql(log.watermark) for name, log in logs.items()},
        late_after={name: parse_duration(str(log.contract["late_after"])) for name, log in logs.items()},
    )
    names = {}
    for name, rows in relations.items():
        names[name] = f"asked_{uuid4().hex}"
        rows.createOrReplaceTempView(names[name])
    spark = next(iter(relations.values())).sparkSession
    return spark.sql(table.view(names, clock))


def shown(table: Any, rows: DataFrame, log: TopicLog) -> DataFrame:
    """What a table of one topic shows of all rows at once."""
    (topic,) = table.inputs
    relations = {table.name: table.partial(rows)} if is_stored(table) else {topic: rows}
    return view_of(table, relations, {topic: log})


def asked(
    table: Kind,
    view: DataFrame,
    logs: Mapping[str, TopicLog],
    folder: Path,
    reads: Mapping[str, tuple[Kind, DataFrame | None]] = _NOTHING,
) -> Question:
    """Whether the witness finds this view; of each table that it reads the definition, and what it shows."""
    return Question(
        definition=table.to_json(),
        topics=logs,
        shown=written(view, folder),
        reads={
            name: ReadTable(definition=read.to_json(), shown=None if rows is None else written(rows, folder))
            for name, (read, rows) in reads.items()
        },
    )


def answered(question: Question, limits: Limits = LIMITS) -> Answer:
    """In this process: a child per question would take most of the time."""
    return evaluate(question, limits)


def differing(answer: Answer) -> Sequence[Any]:
    """For messages of tests: the first differences, and why there is no answer."""
    return [answer.verdict, answer.why, *answer.differences[:3]]
