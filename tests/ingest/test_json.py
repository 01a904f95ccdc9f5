"""A topic in JSON: its contract is its shape, and no registry is asked."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from tests.ingest.fed import Fed, contract_of
from tests.ingest.json_cases import AT, BROKEN, PROPERTIES, SOUND
from tests.ingest.stage import Stage
from tests.ingest.test_verdicts import KAFKA
from twinlake.ingest import first_pass
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.totals import Sum
from twinlake.topics.contract import Contract
from twinlake.topics.topic import Topic, json_topic
from twinlake.topics.values import dumps

MARK = b"\1\2\3\4\5\6\7\x08"
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def contract(name: str = "things", *more: dict[str, Any], **custom: str) -> Contract:
    return contract_of(name, [*PROPERTIES, *more], format="json", **custom)


def topic(name: str = "things", *more: dict[str, Any], **custom: str) -> Topic:
    return json_topic(name, contract(name, *more, **custom))


@pytest.fixture(scope="module")
def looked(spark: SparkSession) -> dict[bytes, Row]:
    """Every case as ingest's first look finds it, with the event that the log would have."""
    values = [text for text, _ in (*SOUND, *BROKEN)]
    rows = [(None, text, "things", 0, at, NOW, 1, None) for at, text in enumerate(values)]
    found = spark.createDataFrame(rows, KAFKA)
    shape = topic()
    event = {field.name: field.type for field in shape.newest.fields}
    for expressions in first_pass.selections(shape, [], MARK, event, closely=True):
        found = found.selectExpr(*expressions)
    return {row.value: row for row in found.collect()}


@pytest.mark.parametrize(("text", "fields"), SOUND)
def test_what_has_the_shape_is_an_event_with_exact_values(
    looked: dict[bytes, Row], text: bytes, fields: dict[str, Any]
) -> None:
    row = looked[text]

    assert row.reasons is None
    assert {name: _plain(row.event[name]) for name in fields} == fields


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_what_has_not_the_shape_says_where(looked: dict[bytes, Row], text: bytes, reason: str) -> None:
    assert (looked[text].reasons, looked[text].event) == (reason, None)


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.asDict(recursive=True)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def test_json_is_ingested_without_a_registry_and_read_by_a_table_in_both_layers(
    faked: Stage, way: str
) -> None:
    faked.create(partitions=2)
    faked.registry.down = True  # type: ignore[union-attr]
    faked.topic = topic(faked.topic.name)
    name = faked.topic.name
    by_city = Aggregate(
        name="by_city", inputs=(name,),
        columns={
            "city": "address.city", "price": "price",
            "worth": "aggregate(items, CAST(0 AS decimal(20,2)), "
            "(sum, one) -> CAST(sum + coalesce(one.price, 0) AS decimal(20,2)))",
        },
        keys=("city",), measures={"things": Count(), "price": Sum("price"), "worth": Sum("worth")},
    )  # fmt: skip
    fed = Fed(faked, by_city)
    at = datetime(2026, 1, 31, 12, tzinfo=UTC)
    for number in range(20):
        thing = {
            "at": at, "price": number, "address": {"city": "Bonn" if number % 2 else "Kraków"},
            "items": [{"price": 1.25}, {"price": 2}], "day": date(2026, 1, 31),
        }  # fmt: skip
        faked.produce(dumps(thing).encode(), b'{"at": "then"}', partition=number % 2)

    log = fed.run()

    assert {tuple(map(str, row)) for row in fed.shows()} == {
        ("Bonn", "10", "100.00", "32.50"), ("Kraków", "10", "90.00", "32.50"),
    }  # fmt: skip
    assert set(fed.fresh) == {way == "small"}
    assert log.metadata()["counts"]["invalid"] == 20
    assert {row[4] for row in faked.verdicts(log)} == {(), ("wrong_type:at",)}


def test_a_field_that_the_contract_gains_is_shown_from_then_on_and_rules_are_asked(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    name = faked.topic.name
    note = {"name": "note", "logicalType": "string", "physicalType": "string", "required": True}
    faked.topic = topic(name)
    early = b'{"at": "2026-01-31T12:00:00Z", "note": "early"}'
    faked.produce(early)
    faked.run()
    faked.topic = topic(name, note)
    faked.produce(early, b'{"at": "2026-01-31T12:00:00Z"}')

    log = faked.run()

    assert [row[3:] for row in faked.verdicts(log)] == [
        ("valid", ()), ("valid", ()), ("invalid", ("missing:note",)),
    ]  # fmt: skip
    rows = log.rows(0, 9).orderBy("_offset").collect()
    assert [row.note for row in rows] == [None, "early"]
    assert [bytes(row.value) for row in log.all(0, 9).where("offset = 0").collect()] == [early]


@pytest.mark.usefixtures("way")
def test_a_required_object_array_or_map_that_is_left_out_is_missing(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    nested = ("address", "items", "scores")
    needed = [{**one, "required": True} if one["name"] in nested else one for one in PROPERTIES]
    faked.topic = json_topic(faked.topic.name, contract_of(faked.topic.name, needed, format="json"))
    whole = {"at": NOW, "address": {}, "items": [], "scores": {}}
    faked.produce(dumps(whole).encode())
    for name in nested:
        left_out = {key: one for key, one in whole.items() if key != name}
        faked.produce(dumps(left_out).encode(), dumps({**whole, name: None}).encode())

    log = faked.run()

    assert [row[3:] for row in faked.verdicts(log)] == [
        ("valid", ()), *(("invalid", (f"missing:{name}",)) for name in nested for _ in range(2)),
    ]  # fmt: skip


def test_an_object_that_is_left_out_is_kept_as_null(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    faked.topic = topic(faked.topic.name)
    beside = (b"", b', "address": null', b', "address": {}')
    faked.produce(*(b"{" + AT + one + b"}" for one in beside))

    log = faked.run()

    rows = log.rows(0, 9).orderBy("_offset").collect()
    assert [row.address for row in rows] == [None, None, Row(city=None, zip=None)]


def test_a_field_that_gets_a_wider_type_is_shown_of_records_before_and_after(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    name = faked.topic.name
    written = b'{"at": "2026-01-31T12:00:00Z", "n": 7}'
    for kind in ("int", "bigint"):
        faked.topic = topic(name, {"name": "n", "logicalType": "integer", "physicalType": kind})
        faked.produce(written)
        log = faked.run()

    assert [row.n for row in log.rows(0, 9).collect()] == [7, 7]
    assert log.rows(0, 9).schema["n"].dataType.simpleString() == "bigint"


@pytest.mark.usefixtures("way")
def test_what_is_nested_too_deeply_is_in_quarantine_and_holds_up_nothing(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    faked.topic = topic(faked.topic.name)
    depths = (500, 998, 999, 5_000, 100_000)
    for name, (first, last) in {"more": ("[", "]"), "text": ('{"a":', "}")}.items():
        nested = (f"{first * depth}1{last * depth}" for depth in depths)
        faked.produce(*(f'{{"at": "2026-01-31T12:00:00Z", "{name}": {one}}}'.encode() for one in nested))
    faked.produce(b'{"at": "2026-01-31T12:00:00Z"}')

    log = faked.run()

    told = [(verdict, *reasons) for *_, verdict, reasons in faked.verdicts(log)]
    deep = ("invalid", "malformed_body")
    assert told == [
        *2 * [("valid",)], *3 * [deep], *2 * [("invalid", "wrong_type:text")], *3 * [deep], ("valid",)
    ]  # fmt: skip


@pytest.mark.usefixtures("way")
def test_a_number_of_many_digits_is_named_beside_values_of_another_type(faked: Stage) -> None:
    faked.create(partitions=1)
    faked.registry.down = True  # type: ignore[union-attr]
    faked.topic = topic(faked.topic.name)
    prices = ("1", "1" + "0" * 38, "-" + "9" * 400, '"7.00"', "7e2", "1e40")
    faked.produce(*(f'{{"at": "2026-01-31T12:00:00Z", "price": {one}}}'.encode() for one in prices))

    log = faked.run()

    beyond, wrong = ("invalid", "decimal_out_of_range:price"), ("invalid", "wrong_type:price")
    told = [(verdict, *reasons) for *_, verdict, reasons in faked.verdicts(log)]
    assert told == [("valid",), beyond, beyond, wrong, wrong, beyond]
