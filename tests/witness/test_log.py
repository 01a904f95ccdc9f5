"""What the witness reads of a topic: fields by the records' schemas, keys, tombstones, defaults, replays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.witness.test_evaluate import LIMITS, START, TIME, log_file, topic
from twinlake.witness.database import opened
from twinlake.witness.log import topic_rows
from twinlake.witness.question import Field, Question, Rows, TopicLog
from twinlake.witness.refused import Refused


def read(found: TopicLog, *columns: str) -> list[Any]:
    """These columns of the valid rows in the order of record ids; one column alone as its values."""
    question = Question(definition={}, topics={"t": found}, shown=Rows(files=(), columns=()))
    with opened(question, LIMITS) as database:
        topic_rows(database, "rows", found)
        rows = database.run(f"SELECT {', '.join(columns)} FROM rows ORDER BY _record")
    return [row[0] for row in rows] if len(columns) == 1 else rows


def logical(type_: str, meaning: str, **more: int) -> dict[str, Any]:
    return {"type": type_, "logicalType": meaning, **more}


def contract(**custom: Any) -> dict[str, Any]:
    return {"columns": [], "late_after": "1 minute", "null_values": "invalid", "key_format": None, **custom}


def primary(**types: str) -> list[dict[str, Any]]:
    return [{"name": name, "type": type_, "required": True, "key": True} for name, type_ in types.items()]


OLD = pa.struct([("name", pa.string()), ("n", pa.int32())])
NEW = pa.struct([("name", pa.string()), ("n", pa.int32()), ("title", pa.string()), ("n:bigint", pa.int64())])


def two_schemas(folder: Path, **more: Any) -> TopicLog:
    """`name` became `title`, `n` became long, `note` has come with a default; one file lacks what is new."""
    first = log_file(folder, [{"name": "a", "n": 1}, {"name": None, "n": None}], OLD, schema_id=1)
    second = log_file(
        folder, [{"title": "b", "n:bigint": 2**40}, {"title": None, "n:bigint": 7}], NEW, first=2, schema_id=2
    )
    fields = (
        Field(name="title", type="string", aliases=("name",), avro="string"),
        Field(name="n", type="bigint", avro="long"),
        Field(name="note", type="string", avro="string", has_default=True, default="none"),
    )
    known: dict[str, Any] = {
        "fields": fields, "event": {"name": "string", "n": "int", "title": "string", "n:bigint": "bigint"},
        "met": {"1": ("name", "n"), "2": ("title", "n:bigint")},
    }  # fmt: skip
    return topic(first, second, **{**known, **more})


def test_a_field_is_what_the_records_writer_sent_under_one_of_its_names(tmp_path: Path) -> None:
    rows = read(two_schemas(tmp_path), "title", "n", "note")

    assert rows == [("a", 1, "none"), (None, None, "none"), ("b", 2**40, "none"), (None, 7, "none")]


def test_a_value_that_an_earlier_schema_cannot_hold_is_not_read_as_another(tmp_path: Path) -> None:
    """Spark raises for it where it is read, and only there."""
    earlier = (Field(name="name", type="string", aliases=("title",)), Field(name="n", type="int"))
    found = two_schemas(tmp_path, fields=earlier)

    assert read(found, "name") == ["a", None, "b", None]
    with pytest.raises(duckdb.Error, match=r"not witnessed: field n \(because a value does not fit into int"):
        read(found, "n")


def test_records_of_a_topic_in_json_have_their_value_in_one_place(tmp_path: Path) -> None:
    files = two_schemas(tmp_path).files
    fields = (Field(name="name", type="string"), Field(name="n", type="bigint"))
    event = {"name": "string", "n": "int", "title": "string", "n:bigint": "bigint", "later": "string"}

    rows = read(topic(*files, fields=fields, event=event, met={}), "name", "n")

    assert rows == [("a", 1), (None, None), (None, 2**40), (None, 7)]


def test_a_record_within_a_record_is_read_by_the_names_of_its_fields(tmp_path: Path) -> None:
    first = log_file(
        tmp_path, [{"row": {"id": 1}}, {"row": None}], pa.struct([("row", pa.struct([("id", pa.int32())]))])
    )
    wider = pa.struct([("row", pa.struct([("id", pa.int32()), ("city", pa.string())]))])
    second = log_file(tmp_path, [{"row": {"id": 2, "city": "x"}}], wider, first=2)
    field = Field(name="row", type="struct<city:string,id:int,more:bigint>")
    found = topic(
        first, second, fields=(field,), event={"row": "struct<id:int,city:string>"}, met={"1": ("row",)}
    )

    assert read(found, '"row"') == [
        {"city": None, "id": 1, "more": None}, None, {"city": "x", "id": 2, "more": None},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "avro", "default", "expected"),
    [
        ("string", "string", "it's", "it's"),
        ("string", {"type": "enum", "name": "e", "symbols": ["A"]}, "A", "A"),
        ("int", ["null", "int"], None, None),
        ("bigint", "long", -(2**63), -(2**63)),
        ("boolean", "boolean", False, False),
        ("double", "double", 0.1, 0.1),
        ("float", "float", 1, 1.0),
        ("binary", "bytes", "\u0000\u00ff", b"\x00\xff"),
        ("decimal(6,2)", logical("bytes", "decimal", precision=6, scale=2), "\u00ff\u0085", Decimal("-1.23")),
        ("decimal(4,0)", logical("bytes", "decimal", precision=4), "\u0005", Decimal(5)),
        ("date", {"type": "int", "logicalType": "date"}, -1, date(1969, 12, 31)),
        ("timestamp", logical("long", "timestamp-millis"), 1_500, datetime(1970, 1, 1, 0, 0, 1, 500_000)),
        ("timestamp", ["null", logical("long", "timestamp-micros")], 7, datetime(1970, 1, 1, 0, 0, 0, 7)),
        ("array<int>", {"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ("map<string,double>", {"type": "map", "values": "double"}, {"a": 1}, {"a": 1.0}),
        (
            "struct<a:int,b:string>",
            {"type": "record", "name": "r", "fields": [
                {"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"},
            ]},
            {"a": 1}, {"a": 1, "b": "x"},
        ),
    ],
)  # fmt: skip
def test_a_field_that_the_writer_had_not_shows_its_default(
    tmp_path: Path, type_: str, avro: Any, default: Any, expected: Any
) -> None:
    file = log_file(tmp_path, [{"name": "a", "n": 1}], OLD)
    field = Field(name="new", type=type_, avro=avro, has_default=True, default=default)
    event = {"name": "string", "n": "int"}

    found = read(topic(file, fields=(field,), event=event, met={"1": ("name", "n")}), "new")

    assert found == [expected]


def test_a_default_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    file = log_file(tmp_path, [{"name": "a", "n": 1}], OLD)
    field = Field(name="new", type="timestamp", avro="named.elsewhere", has_default=True, default=7)

    with pytest.raises(Refused, match="default of field new"):
        read(topic(file, fields=(field,), event={}, met={"1": ("name",)}), "new")


@pytest.mark.parametrize(
    ("key_format", "key", "expected"),
    [
        ("string", "k\u00e9".encode(), "k\u00e9"), ("string", None, None), ("bytes", b"\xff", b"\xff"),
        ("json", b'{"id": 12, "of": "a\\u00e9", "x": 1}', {"id": 12, "of": "a\u00e9"}),
        ("json", b'{"of": null}', {"id": None, "of": None}), ("json", None, None),
    ],
)  # fmt: skip
def test_the_key_is_what_the_contract_says_that_it_is(
    tmp_path: Path, key_format: str, key: bytes | None, expected: Any
) -> None:
    file = log_file(tmp_path, [{"name": "a", "n": 1}], OLD, key=key)
    said = contract(key_format=key_format, columns=primary(id="bigint", of="string"))

    assert read(topic(file, contract=said, event={"name": "string"}, met={"1": ("name",)}), "_key") == [
        expected
    ]


@pytest.mark.parametrize(
    ("key_format", "key", "expected"), [("string", b"gone", "gone"), ("json", b'{"name": "g"}', "g")]
)
def test_a_tombstone_has_the_primary_key_alone(
    tmp_path: Path, key_format: str, key: bytes, expected: str
) -> None:
    file = log_file(tmp_path, [{"name": "a", "n": 1}, None], OLD, key=key, schema_id=1)
    said = contract(key_format=key_format, null_values="delete", columns=primary(name="string"))
    fields = (
        Field(name="name", type="string"),
        Field(name="n", type="int", has_default=True, default=5, avro="int"),
    )
    event: Mapping[str, str] = {"name": "string", "n": "int"}

    rows = read(topic(file, contract=said, fields=fields, event=event, met={}), "name", "n", "_tombstone")

    assert rows == [("a", 1, False), (expected, None, True)]


def test_a_replayed_copy_counts_and_its_original_does_not(tmp_path: Path) -> None:
    event = [{"name": "a", "n": 1}]
    files = (
        log_file(tmp_path, event, OLD, verdict="invalid"),
        log_file(tmp_path, event, OLD, replay=True, batch=2, timestamp=START),
    )
    found = topic(*files, fields={"n": "int"}, event={"n": "int"}, met={"1": ("n",)}, position=2)

    assert read(found, "n", "_offset", "_timestamp") == [(1, 0, START.replace(tzinfo=None))]


def test_a_log_of_before_has_no_time_of_processing(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    file = log_file(tmp_path, [{"name": "a", "n": 1}], OLD)
    pq.write_table(pq.read_table(file).drop(["ingested_at"]), file)

    assert read(topic(file, fields={"n": "int"}, event={"n": "int"}, met={"1": ("n",)}), "_ingested_at") == [
        None
    ]


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_are_in_utc_however_a_file_has_them(tmp_path: Path, unit: Any, zone: str | None) -> None:
    moment = datetime(1999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    event = pa.struct([("at", pa.timestamp(unit, zone))])
    value = moment if zone else moment.replace(tzinfo=None)
    file = log_file(tmp_path, [{"at": value}], event)

    found = topic(file, fields={"at": "timestamp"}, event={"at": "timestamp"}, met={"1": ("at",)})

    assert TIME.tz == "UTC" and read(found, '"at"') == [moment.replace(tzinfo=None)]
