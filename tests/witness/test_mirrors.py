"""A mirrored table: the witness finds what snapshots and truncates hide, over generated change topics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest

from tests.laws.change_data import Mirror, delayed, first_of_each, history
from tests.witness.asking import LIMITS, differing
from tests.witness.test_evaluate import log_file, topic, write
from twinlake.kinds.barriers import Snapshot, SourcePlace
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.latest import Latest
from twinlake.witness.answer import DIFFERS, EQUAL, Answer
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Question, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "key": "int", "value": "int", "op": "string", "of": "string", "last": "boolean", "position": "bigint",
    "spot": "struct<file:int,row:bigint>",
}  # fmt: skip
SPOT = pa.struct([("file", pa.int32()), ("row", pa.int64())])
EVENT = pa.struct([
    ("key", pa.int32()), ("value", pa.int32()), ("op", pa.string()), ("of", pa.string()),
    ("last", pa.bool_()), ("position", pa.int64()), ("spot", SPOT),
])  # fmt: skip
RECORD = [("_epoch", pa.int32()), ("_partition", pa.int32()), ("_offset", pa.int64())]
TABLE = Latest(
    name="mirror", inputs=("changes",), columns={"key": "key", "value": "value", "gone": "op = 'd'"},
    keys=("key",), values=("value",), delete_when="gone",
    where="op <> 'r' OR value % 7 <> 0 OR value IS NULL",
    snapshot=Snapshot(of="of", last="last"), truncate_when="op = 't'",
    source_place=SourcePlace(of="'the log'", at="position"),
)  # fmt: skip
TABLES = {
    "by place": TABLE,
    "by time alone": replace(TABLE, source_place=None),
    "truncates alone": replace(TABLE, snapshot=None),
    "places of a struct": replace(
        TABLE,
        source_place=SourcePlace(of="if(position % 5 = 0, NULL, 'x')", at="spot"),
    ),
}
SEEDS = (0, 2, 4, 5, 7, 11)


def events(mirror: Mirror) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The event of each record and how it came; some are of a second epoch."""
    found = []
    for number, one in enumerate(first_of_each(mirror.sent)):
        change, snapshot = one.change, one.change.snapshot
        event = {
            "key": change.key, "value": change.value, "op": change.op, "position": change.position,
            "of": str(change.position) if snapshot in ("first", "true", "last") else None,
            "last": snapshot == "last",
            "spot": {"file": change.position // 30 or None, "row": change.position % 30 or None},
        }  # fmt: skip
        epoch = int(number > 60)
        came = {"epoch": epoch, "partition": one.partition, "offset": one.offset, "timestamp": one.at}
        found.append((event, came))
    return found


@pytest.fixture(scope="module")
def mirrors() -> list[list[tuple[dict[str, Any], dict[str, Any]]]]:
    return [events(delayed(history(seed, 24), seed)) for seed in SEEDS]


def views(spark: SparkSession, table: Latest, mirrors: Any) -> list[list[dict[str, Any]]]:
    """What Spark's kind shows of each history, all in one job."""
    schema = pa.schema([*EVENT, *RECORD, ("_timestamp", pa.timestamp("us", "UTC"))])
    texts = []
    for number, records in enumerate(mirrors):
        rows = [{**event, **{f"_{name}": value for name, value in came.items()}} for event, came in records]
        states = table.partial(spark.createDataFrame(pa.Table.from_pylist(rows, schema)).coalesce(1))
        name = f"mirror_{uuid4().hex}"
        states.createOrReplaceTempView(name)
        texts.append(f"SELECT {number} AS which, * FROM ({table.view({table.name: name}, ViewClock())})")
    found: list[list[dict[str, Any]]] = [[] for _ in mirrors]
    for row in spark.sql("\nUNION ALL\n".join(texts)).collect():
        values = row.asDict()
        found[values.pop("which")].append(values)
    return found


def answers(folder: Path, table: Latest, mirrors: Any, shown: list[list[dict[str, Any]]]) -> list[Answer]:
    schema = pa.schema([("key", pa.int32()), ("value", pa.int32())])
    found = []
    for records, rows in zip(mirrors, shown, strict=True):
        files = [
            log_file(folder, [event], EVENT, first=came["offset"], **{
                name: value for name, value in came.items() if name != "offset"
            })
            for event, came in records
        ]  # fmt: skip
        question = Question(
            definition=table.to_json(), topics={"changes": topic(*files, fields=COLUMNS)},
            shown=Rows(files=(write(folder, rows, schema),), columns=(("key", "int"), ("value", "int"))),
        )  # fmt: skip
        found.append(evaluate(question, LIMITS))
    return found


@pytest.mark.parametrize("which", TABLES)
def test_the_witness_finds_what_barriers_leave(
    spark: SparkSession, mirrors: Any, tmp_path: Path, which: str
) -> None:
    table = TABLES[which]
    shown = views(spark, table, mirrors)

    found = answers(tmp_path, table, mirrors, shown)

    assert [answer.verdict for answer in found] == [EQUAL] * len(found), list(map(differing, found))
    assert sum(answer.rows for answer in found) > 5


def test_a_table_that_forgets_its_barriers_differs(spark: SparkSession, mirrors: Any, tmp_path: Path) -> None:
    forgets = replace(TABLE, snapshot=None, truncate_when=None, source_place=None, where="op <> 't'")

    found = answers(tmp_path, TABLE, mirrors, views(spark, forgets, mirrors))

    assert DIFFERS in [answer.verdict for answer in found]
