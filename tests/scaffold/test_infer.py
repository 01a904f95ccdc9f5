"""What a sample says of a topic: every record of it is valid by the contract that is made of it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft201909Validator

from tests.ingest.test_verdicts import KAFKA
from tests.oracle.gallery.json_value import event
from twinlake.base.errors import UsageError
from twinlake.ingest import first_pass
from twinlake.scaffold.infer import inferred
from twinlake.scaffold.new_topic import Chosen, of_sample
from twinlake.scaffold.sample import record_of, records_in
from twinlake.topics.contract import Column, Contract
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.contract_schema import contract_schema
from twinlake.topics.topic import json_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EDITOR = Draft201909Validator(contract_schema())
AT = "2026-01-31T12:00:00Z"
ENVELOPE = {"op": "c", "before": None, "after": {}, "source": {}}
NOW = datetime(2026, 2, 1, tzinfo=UTC)
NAMES = ("id", "ID", "name", "on", "a_b", "a__b", "select", "final", "user-id", "@t", "", "ü", "x.y", "_x")
MOMENTS = st.datetimes(
    datetime(1, 1, 2), datetime(9999, 12, 30),
    timezones=st.integers(-18 * 60, 18 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)  # fmt: skip
NEARLY = st.sampled_from([
    AT, "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:00:60Z",
    "2026-01-31T12:00:00+19:00", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-02-30",
    "2026-01-31", "2026-01-31T12:00:00.1234567Z", "2026-01-31T12:00Z", "", "now", f"{AT}\n", "٢٠٢٦-01-31",
])  # fmt: skip
NUMBERS = (
    st.integers() | st.integers(-(10**40), 10**40) | st.sampled_from([2**63, -(2**63) - 1, 10**38, 10**400])
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
PLAIN = (
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | NEARLY
    | MOMENTS.map(lambda at: at.isoformat()) | st.dates().map(str)
)  # fmt: skip
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), min_size=1, max_size=6).map(
    lambda records: [{"at": AT, **one} for one in records]
)


def document_of(records: Sequence[Any]) -> Any:
    return yaml.safe_load(of_sample("things", records, "a test", Chosen(event_time="at")).contract)


def contract_of(document: Any) -> Contract:
    return parse_contract(document, name="things", file="contracts/things.yaml")


def column(*values: Any) -> Column | None:
    """What becomes of a field that has these values in as many records."""
    found = inferred([{"x": value} for value in values]).columns
    return found[0] if found else None


@settings(max_examples=30)
@given(RECORDS)
@example([{"at": AT, "x": 1e308}, {"at": AT, "x": 10**400}])
def test_every_record_of_a_sample_is_valid_by_another_reading_of_its_contract(records: list[Any]) -> None:
    document = document_of(records)
    properties = document["schema"][0]["properties"]

    assert EDITOR.is_valid(document)
    for record in records:
        found = event(json.dumps(record).encode(), properties)
        assert [one["name"] for one in properties if one.get("required") and found[one["name"]] is None] == []


def test_every_record_of_a_sample_is_valid_by_what_ingest_does(spark: SparkSession, seed: int) -> None:
    """A few samples as one topic, each below a field of its own: one plan for Spark."""
    drawn: list[list[Any]] = []

    @given(RECORDS)
    def draw(records: list[Any]) -> None:
        drawn.append(records)

    draw()
    drawn = random.Random(seed).sample(drawn, 3)
    records = [{"at": AT, f"s{number}": record} for number, sample in enumerate(drawn) for record in sample]
    topic = json_topic("things", contract_of(document_of(records)))
    rows = [(None, json.dumps(one).encode(), "things", 0, at, NOW, 1, None) for at, one in enumerate(records)]
    found = spark.createDataFrame(rows, KAFKA)
    shape = {field.name: field.type for field in topic.newest.fields}
    for expressions in first_pass.selections(topic, [], b"\1\2\3\4\5\6\7\x08", shape, closely=True):
        found = found.selectExpr(*expressions)

    refused = [(bytes(row.value), row.reasons) for row in found.where("reasons IS NOT NULL").collect()]

    assert refused == []


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ((1, -(2**63)), "bigint"),
        ((1, 2**63), "decimal(38,0)"),
        ((1, 10**38), "double"),
        ((1, 2.5), "double"),
        ((1, 1.0), "double"),
        ((True, False), "boolean"),
        ((AT, "2026-01-31T13:30:00.123456+01:30"), "timestamp"),
        (("2026-01-31", "2024-02-29"), "date"),
        ((AT, "2026-01-31"), "string"),
        ((AT, "soon"), "string"),
        (("2026-01-31T12:00:00", "2026-01-31T12:00:00"), "string"),
        (([1, None], [2.5], []), "array<double>"),
        (({"a": 1}, {"b": "x", "c": None}), "struct<a:bigint,b:string>"),
        (({"a": {"b": [{"c": AT}]}},), "struct<a:struct<b:array<struct<c:timestamp>>>>"),
        (({"a b": 1}, {"a b": 2.5, "": 1}), "map<string,double>"),
        (({"a-b": 1, "c": "x"},), "struct<c:string>"),
    ],
)
def test_values_have_the_narrowest_type_that_holds_them_all(values: tuple[Any, ...], type_: str) -> None:
    assert column(*values) == Column(name="x", type=type_, required=True)


@pytest.mark.parametrize(
    ("values", "path", "why"),
    [
        ((1, "a"), "x", "it has numbers and texts, and a column has one of them"),
        ((1, True), "x", "it has numbers and true or false, and a column has one of them"),
        (({"a": 1}, [1]), "x", "it has arrays and objects, and a column has one of them"),
        (([1], ["a"]), "x[]", "it has numbers and texts, and a column has one of them"),
        ((None, None), "x", "only null was seen"),
        (([], []), "x[]", "only empty arrays were seen"),
        (({}, {}), "x", "only objects without usable fields were seen"),
        ((10**400,), "x", "a number in it is beyond those of a double"),
    ],
)
def test_what_no_type_holds_is_left_out_and_said(values: tuple[Any, ...], path: str, why: str) -> None:
    found = inferred([{"x": value} for value in values])

    assert (found.columns, [(one.path, one.why) for one in found.left_out]) == ((), [(path, why)])


def test_a_field_that_a_record_lacks_or_has_as_null_is_optional() -> None:
    found = inferred([{"a": 1, "b": 1, "c": 1}, {"a": 2, "b": None}])

    assert {one.name: one.required for one in found.columns} == {"a": True, "b": False, "c": False}


def test_of_names_that_differ_in_case_alone_the_more_frequent_one_stays() -> None:
    found = inferred([{"Id": 1}, {"id": "a"}, {"id": "b"}])

    assert [one.name for one in found.columns] == ["id"]
    assert [(one.path, one.why) for one in found.left_out] == [
        ("Id", "its name differs from id in case alone")
    ]


def test_what_is_nested_for_ever_is_left_out() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}

    assert inferred([{"x": deep, "y": 1}]).columns == (Column(name="y", type="bigint", required=True),)


@pytest.mark.parametrize(
    "text", ['{"a": 1}\n{"a": 2}\n', '[{"a": 1}, {"a": 2}]', '{\n "a": 1\n}\n{"a": 2}', ' {"a": 1} {"a": 2}']
)
def test_a_sample_has_a_record_a_line_or_an_array(text: str) -> None:
    assert records_in(text, "s") == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        ("", "s has no records", "there is nothing to make a contract of"),
        ('{"a": 1}\n{"a": ', "s:2: this is not JSON", "Expecting value"),
        ('{"a": 1}\n7', "s:2: this is not a record", "a record is a JSON object, and this is 7"),
        ('{"a": 1, "a": 2}', "s:1: this is not a record", "the name 'a' is there twice in one object"),
        ('\n{"a": NaN}', "s:2: this is not a record", "NaN is not JSON"),
        (
            '{"a": "\\ud800"}', "s:1: this is not a record",
            "a text has half a character in it (a lone surrogate), which no record may have",
        ),
        ("[" * 100_000, "s:1: this is not a record", None),
    ],
)  # fmt: skip
def test_what_no_topic_would_take_is_refused_with_its_line(text: str, what: str, why: str | None) -> None:
    with pytest.raises(UsageError) as refused:
        records_in(text, "s")

    assert refused.value.what == what and refused.value.why == (why or refused.value.why)


@pytest.mark.parametrize(
    "value", [b"", b"7", b"\0\0\0\0\1x", b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff", b"[" * 9999]
)
def test_bytes_that_are_no_record_in_json_are_none(value: bytes) -> None:
    assert record_of(value) is None


def asked(records: Sequence[Any], event_time: str | None = None, id: str | None = None) -> Contract:
    made = of_sample("things", records, "a test", Chosen(event_time=event_time, id=id))
    return contract_of(yaml.safe_load(made.contract))


@pytest.mark.parametrize(
    ("times", "chosen"),
    [
        ({"seen": AT}, "seen"),
        ({"seen": AT, "day": "2026-01-31", "n": 1}, "seen"),
        ({"seen": AT, "eventTime": AT}, "eventTime"),
        ({"ingested": AT, "timestamp": AT, "sent": AT}, "timestamp"),
    ],
)
def test_the_event_time_is_the_only_time_or_what_is_called_so(times: dict[str, Any], chosen: str) -> None:
    assert asked([times]).event_time == chosen


@pytest.mark.parametrize(
    ("records", "event_time", "said"),
    [
        ([{"seen": AT, "sent": AT}], None, "candidates: seen, sent"),
        ([{"timestamp": AT, "event_time": AT}], None, "candidates: timestamp, event_time"),
        ([{"ts": 1_770_000_000_000}], None, "ts looks like milliseconds since 1970"),
        ([{"seen": AT}, {}], None, "seen is missing or null in 1 records"),
        ([{"seen": "2026-01-31 12:00:00"}], None, "seen is like '2026-01-31 12:00:00'"),
        ([{"day": "2026-01-31"}], None, "day is a date"),
        ([{"seen": AT, "n": 1}], "n", "it is bigint; it is a timestamp of every record"),
        ([{"seen": AT, "n": 1}], "when", "there is no such column; it is a timestamp of every record"),
        ([{"seen": AT, "sent": AT}, {"seen": AT}], "sent", "some records have none"),
        ([ENVELOPE], None, "the records are change data"),
    ],
)  # fmt: skip
def test_without_a_clear_event_time_the_error_says_what_there_is(
    records: list[Any], event_time: str | None, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        asked(records, event_time)

    assert said in refused.value.why and refused.value.remedy


def test_an_id_is_what_is_called_an_event_s_and_is_never_there_twice() -> None:
    once = [{"at": AT, "event_id": "a", "id": 1}, {"at": AT, "event_id": "b", "id": 2}]

    assert asked(once).unique == "event_id"
    assert asked(once, id="id").unique == "id"
    assert asked([*once, once[0]]).unique is None
    assert asked([*once, once[0]], id="event_id").unique == "event_id"
    assert asked([{"at": AT, "id": 1}]).unique is None
    assert asked([{"at": AT}]).unique_within is None


@pytest.mark.parametrize("name", ["nothing", "inside"])
def test_what_cannot_be_an_id_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} cannot be the id"):
        asked([{"at": AT, "inside": {"a": 1}}], id=name)


def test_a_contract_tolerates_twice_the_lateness_that_kafka_has_of_the_sample() -> None:
    millis = int(datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp() * 1000)
    day = 86_400_000
    records = [{"at": AT}, {"at": AT}]

    late = of_sample("things", records, "a test", Chosen(), (millis, millis + 10 * day))
    ahead = of_sample("things", records, "a test", Chosen(), (millis, millis - day))

    assert contract_of(yaml.safe_load(late.contract)).discard_after == timedelta(days=20)
    assert contract_of(yaml.safe_load(ahead.contract)).future_tolerance == timedelta(days=2)
