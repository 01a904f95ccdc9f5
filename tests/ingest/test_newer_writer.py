"""A producer's schema may be newer than the project's: what it sent is kept, and shown once it is known."""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row

from tests.ingest.stage import Stage, frame, order


def with_fields(schema: dict[str, Any], *fields: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": [*schema["fields"], *fields]}


NOTE = {"name": "note", "type": "string", "default": "-"}


def test_what_was_sent_before_the_project_knew_its_field_is_shown_once_it_does(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("old")
    before = stage.run().rows_sql(1)
    newer = with_fields(stage.schema, NOTE)
    newer_id = stage.registry.register(stage.subject, newer)
    stage.produce(frame(newer_id, newer, order("early", note="hi")))
    assert stage.run().rows_sql(1) == before  # the project's newest schema decides what is shown
    stage.adopt(newer)
    stage.orders("still old")
    stage.produce(frame(newer_id, newer, order("later", note="ho")))

    log = stage.run()

    expected = {"old": "-", "early": "hi", "still old": "-", "later": "ho"}
    assert {row.event_id: row.note for row in log.rows(0, log.end()).collect()} == expected
    assert {row.event_id: row.note for row in stage.spark.sql(log.rows_sql(9)).collect()} == expected


def test_nested_fields_are_kept_as_sent_and_judged_like_others(stage: Stage) -> None:
    stage.create(partitions=1)
    price = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
    at = {"type": "long", "logicalType": "timestamp-millis"}
    parts = {"name": "string", "price": price, "at": at}
    inside = [{"name": name, "type": avro} for name, avro in parts.items()]
    item = {"type": "record", "name": "Item", "fields": inside}
    newer = with_fields(
        stage.schema,
        {"name": "items", "type": {"type": "array", "items": item}, "default": []},
        {"name": "best", "type": ["null", "Item"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "sort", "type": {"type": "enum", "name": "Sort", "symbols": ["A", "B"]}, "default": "A"},
        {"name": "_took", "type": {"type": "int", "logicalType": "time-millis"}, "default": 0},
        {"name": "either", "type": ["null", "int", "string"], "default": None},
        {"name": "nothing", "type": "null", "default": None},
    )
    newer_id = stage.registry.register(stage.subject, newer)
    when = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)

    def sent(event_id: str, name: str = "tea", price: str = "12.50", **more: Any) -> bytes:
        one = {"name": name, "price": Decimal(price), "at": when}
        values = {
            "items": [one],
            "best": one,
            "tags": {"k": "v"},
            "sort": "B",
            "_took": time(0, 0, 1),
            "either": "x",
        }
        return frame(newer_id, newer, order(event_id, **{**values, "nothing": None, **more}))

    wrong = sent("d").replace(b"\x04" + (1250).to_bytes(2, "big"), b"\x12" + (2**64 + 5).to_bytes(9, "big"))
    stage.produce(
        sent("a"), sent("b", best=None, either=7), sent("c", "t\0a").replace(b"t\0a", b"t\xffa"), wrong
    )

    log = stage.run()

    assert [(row[3], row[4]) for row in stage.verdicts(log)] == [
        ("valid", ()), ("valid", ()), ("invalid", ("invalid_utf8:items", "invalid_utf8:best")),
        ("invalid", tuple(f"decimal_out_of_range:{name}" for name in ("amount", "items", "best"))),
    ]  # fmt: skip
    found = log.all(0, 9).where("offset < 2").select("event.*").orderBy("event_id").collect()
    one = Row(name="tea", price=Decimal("12.50"), at=found[0]["items"][0]["at"])
    assert one["at"].astimezone(UTC) == when
    names = ("items", "best", "tags", "sort", "_took", "either")
    assert [tuple(row[name] for name in names) for row in found] == [
        ([one], one, {"k": "v"}, "B", 1000, Row(member0=None, member1="x")),
        ([one], None, {"k": "v"}, "B", 1000, Row(member0=7, member1=None)),
    ]
    assert "nothing" not in log.event() and log.rows(0, 9).count() == 2


def test_a_field_that_the_project_adds_with_another_type_than_was_sent_stops_the_topic(faked: Stage) -> None:
    faked.create(partitions=1)
    newer = with_fields(faked.schema, NOTE)
    faked.registry.add(faked.subject, 8, newer)  # type: ignore[union-attr]
    faked.produce(frame(8, newer, order("early", note="7")))
    faked.run()
    faked.registry.subjects[faked.subject].pop()  # type: ignore[union-attr]
    sent_as = faked.topic
    faked.adopt(with_fields(faked.schema, {"name": "note", "type": "long", "default": 0}))

    refused = faked.stopped()

    assert refused.error is not None
    assert "'note' is bigint, and the log has it as string" in refused.error.why
    assert "orders.v2.avsc" in refused.error.what and "give the field that type" in refused.error.remedy
    faked.registry.add(faked.subject, 8, newer)  # type: ignore[union-attr]
    faked.topic = sent_as
    faked.adopt(newer)
    assert [row.note for row in faked.run().rows(0, 9).collect()] == ["7"]


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"name": "note", "type": "long"}, "'note' is bigint, and the log has it as string"),
        ({"name": "Note", "type": "string"}, "'Note' and 'note', which the log has, differ in case only"),
    ],
)
def test_of_producers_that_disagree_on_a_field_the_first_one_settles_it_and_the_other_waits(
    faked: Stage, field: dict[str, Any], why: str
) -> None:
    faked.create(partitions=1)
    newer, other = with_fields(faked.schema, NOTE), with_fields(faked.schema, field)
    faked.registry.add(faked.subject, 8, newer)  # type: ignore[union-attr]
    faked.registry.add(faked.subject, 9, other)  # type: ignore[union-attr]
    faked.produce(frame(8, newer, order("first", note="hi")))
    faked.run()
    faked.produce(frame(9, other, order("second", **{field["name"]: 7 if field["type"] == "long" else "x"})))
    faked.produce(frame(8, newer, order("third", note="ho")))

    log = faked.run()

    reason = f"unreadable_by_schema:{field['name']}"
    assert [row[3:] for row in faked.verdicts(log)] == [("valid", ()), ("invalid", (reason,)), ("valid", ())]
    (waiting,) = faked.ingests[-1].unreadable()
    assert waiting["schema"] == 9 and why in waiting["why"] and "under another name" in waiting["remedy"]


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"name": "Amount", "type": "int"}, "names differ in case only"),
        (
            {"name": "tree", "type": {"type": "record", "name": "Tree", "fields": [
                {"name": "below", "type": ["null", "Tree"]}]}},
            "Spark cannot decode it",
        ),
        ({"name": "many", "type": {"type": "array", "items": "null"}}, "a type without values: array<void>"),
    ],
)  # fmt: skip
def test_records_of_a_schema_that_cannot_be_kept_wait_and_status_says_why(
    faked: Stage, field: dict[str, Any], why: str
) -> None:
    faked.create(partitions=1)
    faked.registry.add(faked.subject, 8, with_fields(faked.schema, field))  # type: ignore[union-attr]
    faked.produce(b"\0" + (8).to_bytes(4, "big") + b"whatever it is")
    faked.orders("good")

    log = faked.run()

    assert [row[3] for row in faked.verdicts(log)] == ["invalid", "valid"]
    (waiting,) = faked.ingests[-1].unreadable()
    assert why in waiting["why"] and waiting["records"] == 1


def test_what_was_made_to_read_before_the_log_gained_a_field_still_reads(stage: Stage) -> None:
    stage.create(partitions=1)
    stage.orders("a")
    log = stage.run()
    rows, sql = log.rows(0, 9), stage.spark.sql(log.rows_sql(1))
    log.keep({"note": "string"}, "a test", "")

    assert [row.event_id for row in rows.collect()] == [row.event_id for row in sql.collect()] == ["a"]


@pytest.mark.parametrize("name", ["twinlake_end", "Twinlake_End"])
def test_a_field_may_be_called_like_the_mark_at_the_end_of_a_body(stage: Stage, name: str) -> None:
    stage.create(partitions=1)
    inner = {"type": "record", "name": "twinlake_end_", "fields": [{"name": "x", "type": "int"}]}
    newer = with_fields(
        stage.schema,
        {"name": name, "type": ["null", "string"], "default": None},
        {"name": "inner", "type": ["null", inner], "default": None},
    )
    newer_id = stage.registry.register(stage.subject, newer)
    stage.orders("old")
    stage.produce(frame(newer_id, newer, order("new", **{name: "kept", "inner": {"x": 7}})))

    log = stage.run()

    assert [row[3] for row in stage.verdicts(log)] == ["valid", "valid"]
    found = log.all(0, 9).where("event.event_id = 'new'").select(f"event.{name}", "event.inner.x").collect()
    assert [tuple(row) for row in found] == [("kept", 7)]
