"""The witness of ingest decides about raw records by contract and schema alone, without Spark and a log."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.envelopes import AT_MS, SOURCES, as_json, contract
from tests.ingest.change_cases import ALIKE, REFUSED, SOUND
from tests.ingest.fed import contract_of
from tests.ingest.json_cases import BROKEN, PROPERTIES
from tests.ingest.json_cases import SOUND as SOUND_JSON
from tests.ingest.stage import frame, order
from tests.ingest.test_avro_types import AVRO, made, promised
from tests.ingest.test_verdicts import with_amount
from tests.project import OURS
from tests.witness.raw_records import NOW, micros, raw, rules_of
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic, json_topic, load_topic
from twinlake.witness.ingest.judge import judge
from twinlake.witness.ingest.record import Judged, Rules

ID = 7
ORDERS = load_topic("orders", OURS)
SCHEMA = dict(ORDERS.newest.avro)
THINGS = json_topic("things", contract_of("things", PROPERTIES, format="json"))
AT = datetime(2026, 2, 1, tzinfo=UTC)


def orders(**changes: Any) -> Rules:
    """The contract of orders with these changes."""
    topic = replace(ORDERS, contract=replace(ORDERS.contract, **changes))
    return rules_of(topic, {ID: SCHEMA})


def sent(event_id: str = "a", **changes: Any) -> bytes:
    return frame(ID, SCHEMA, order(event_id, **{"ordered_at": AT, **changes}))


def one(value: bytes | None, rules: Rules, key: bytes | None = None) -> Judged:
    (found,) = judge([raw(value, key)], rules)
    return found


def plain(value: Any) -> Any:
    """A value in the witness's form."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime):
        return micros(value)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


@pytest.mark.parametrize(("text", "fields"), SOUND_JSON)
def test_json_of_the_contract_s_shape_has_exact_values(text: bytes, fields: dict[str, Any]) -> None:
    found = one(text, rules_of(THINGS))

    assert (found.verdict, found.event) == ("valid", found.fields)
    assert found.fields is not None and {name: found.fields[name] for name in fields} == plain(fields)


@pytest.mark.parametrize(("text", "reason"), BROKEN)
def test_json_of_another_shape_says_where(text: bytes, reason: str) -> None:
    found = one(text, rules_of(THINGS))

    assert (found.verdict, found.reasons, found.event) == ("invalid", (reason,), None)


@pytest.mark.parametrize("zero", ["-0", "-0.0", "-0.00"])
def test_a_decimal_has_one_zero(zero: str) -> None:
    found = one(b'{"at": "2026-01-31T12:00:00Z", "price": %s}' % zero.encode(), rules_of(THINGS, {}))

    assert found.verdict == "valid" and str((found.fields or {})["price"]) == "0.00"


@pytest.mark.parametrize("left_out", [{}, {"address": None}])
def test_a_required_object_is_missing_where_it_is_null_and_where_it_is_left_out(left_out: Any) -> None:
    needed = [{**found, "required": True} if found["name"] == "address" else found for found in PROPERTIES]
    topic = json_topic("things", contract_of("things", needed, format="json"))
    text = b'{"at": "2026-01-31T12:00:00Z"' + (b', "address": null}' if left_out else b"}")

    assert one(text, rules_of(topic)).reasons == ("missing:address",)


def test_a_value_of_every_type_of_avro_is_read_exactly() -> None:
    schema = parse_schema(AVRO, topic="things", number=1, file="things.v1.avsc")
    promises = contract_of("things", [promised(field.name, field.type) for field in schema.fields])
    rules = rules_of(Topic(name="things", contract=promises, schemas=(schema,)), {ID: AVRO})

    found = one(frame(ID, AVRO, made("a")), rules)
    broken = one(frame(ID, AVRO, made("c")).replace("Köln".encode(), b"\xff\xffln\xff"), rules)

    home = {"city": "Bonn", "moved": plain(date(2024, 2, 29)), "rent": Decimal("700.50")}
    assert found.fields == found.event == {
        "at": 1_769_860_800_123_456, "id": "a", "address": home,
        "before": [{**home, "city": "Köln", "moved": None}], "scores": {"x": 1, "y": None}, "sort": "B",
        "day": -719_162, "millis": 1000, "micros": 7, "local": 1_769_860_800_000_000,
        "worth": Decimal("-1234567890.1234"), "number": "00000000-0000-0000-0000-000000000007",
        "took": bytes(range(12)), "maybe": None,
    }  # fmt: skip
    assert (broken.verdict, broken.reasons) == ("invalid", ("invalid_utf8:before",))


GOOD = sent()
MALFORMED = ("malformed_body",)


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        (None, ("null_value",)),
        (b"", ("bad_header",)),
        (b"\0\0\0", ("bad_header",)),
        (b'{"event_id": "a"}', ("bad_header",)),
        (b"\0" * 40, ("unknown_schema",)),
        (GOOD[:1] + b"\xff\xff\xff\xff" + GOOD[5:], ("unknown_schema",)),
        (GOOD[:5], MALFORMED),
        (GOOD[:-1], MALFORMED),
        (GOOD + b"\0", MALFORMED),
        (GOOD[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", MALFORMED),
        (GOOD[:5] + b"\x80\x80\x80\x80\x08aa", MALFORMED),
        (GOOD[:5] + b"\xff" * 11, MALFORMED),
        (GOOD.replace(b"anna", b"a\xff\xfea"), ("invalid_utf8:customer",)),
        (with_amount(GOOD, 10**12), ("decimal_out_of_range:amount",)),
        (with_amount(GOOD, -(2**64) - 5), ("decimal_out_of_range:amount",)),
        (sent(amount=Decimal("-0.01")), ("below_minimum:amount",)),
        (
            sent(amount=Decimal("-1"), region="", customer="", status="lost"),
            ("below_minimum:amount", "empty:customer", "empty:region", "not_allowed:status"),
        ),
        (sent(ordered_at=AT + timedelta(minutes=20)), ("ahead_of_kafka:ordered_at",)),
    ],
)
def test_an_order_that_is_none_or_breaks_its_contract_says_why(
    value: bytes | None, reasons: tuple[str, ...]
) -> None:
    found = one(value, orders())

    assert (found.verdict, sorted(found.reasons)) == ("invalid", sorted(reasons))


@pytest.mark.parametrize(
    ("length", "more", "verdict", "late"),
    [
        ("late_after", 0, "valid", False),
        ("late_after", 1, "valid", True),
        ("discard_after", 0, "valid", True),
        ("discard_after", 1, "too_late", False),
        ("future_tolerance", 0, "valid", False),
        ("future_tolerance", 1, "invalid", False),
    ],
)
def test_lateness_counts_to_the_microsecond(length: str, more: int, verdict: str, late: bool) -> None:
    found: timedelta = getattr(ORDERS.contract, length)
    by = found // timedelta(microseconds=1) + more
    at = NOW - by if length == "future_tolerance" else NOW + by

    (judged,) = judge([raw(sent(), timestamp=at)], orders())

    assert (judged.verdict, judged.late) == (verdict, late)


def test_a_duplicate_is_one_of_a_valid_record_within_the_window_to_the_microsecond() -> None:
    hour = 3_600_000_000
    invalid = sent("b", amount=Decimal(-1))
    records = [(GOOD, 0), (GOOD, hour), (GOOD, hour + 1), (invalid, hour), (sent("b"), hour), (GOOD, hour)]

    found = judge([raw(value, timestamp=NOW + at) for value, at in records], orders())

    assert [judged.verdict for judged in found] == [
        "valid", "duplicate", "valid", "invalid", "valid", "duplicate",
    ]  # fmt: skip


def test_the_writer_s_schema_decides_what_was_sent_and_the_newest_what_is_read() -> None:
    note = {"name": "note", "type": ["null", "string"], "default": None}
    fields = [*SCHEMA["fields"][:-1], {**SCHEMA["fields"][-1]}]
    newer = {**SCHEMA, "fields": [*fields, note, {"name": "rank", "type": "int", "default": 3}]}
    schema = parse_schema(newer, topic="orders", number=2, file="orders.v2.avsc")
    topic = replace(ORDERS, schemas=(*ORDERS.schemas, schema))
    rules = rules_of(topic, {ID: SCHEMA, 8: newer})

    old = one(sent(), rules)
    new = one(frame(8, newer, order("b", ordered_at=AT, note="hi", rank=9)), rules)

    assert old.event is not None and old.fields is not None and "rank" not in old.event
    assert (old.fields["note"], old.fields["rank"]) == (None, 3)
    assert new.event is not None and (new.event["note"], new.event["rank"]) == ("hi", 9)


def test_a_schema_that_the_newest_cannot_read_leaves_its_records_waiting() -> None:
    number = [
        {**found, "type": "long"} if found["name"] == "customer" else found for found in SCHEMA["fields"]
    ]
    lacking = [found for found in SCHEMA["fields"] if found["name"] != "region"]
    rules = rules_of(ORDERS, {8: {**SCHEMA, "fields": number}, 9: {**SCHEMA, "fields": lacking}})

    reasons = [one(b"\0" + id_.to_bytes(4, "big") + b"x", rules).reasons for id_ in (8, 9)]

    assert reasons == [("unreadable_by_schema:customer",), ("unreadable_by_schema:region",)]


@pytest.mark.parametrize(
    ("means", "key", "verdict", "reasons"),
    [
        ("invalid", b"a", "invalid", ("null_value",)),
        ("ignore", b"a", "ignored", ("null_value",)),
        ("delete", b"a", "valid", ()),
        ("delete", None, "invalid", ("null_value",)),
        ("delete", b"\xff", "invalid", ("bad_key",)),
    ],
)
def test_a_record_without_a_value_is_what_the_contract_says(
    means: str, key: bytes | None, verdict: str, reasons: tuple[str, ...]
) -> None:
    found = one(None, orders(null_values=means, key_format="string"), key)

    assert (found.verdict, found.reasons, found.event) == (verdict, reasons, None)


KEY = b'{"order_id": 7, "customer": "anna", "more": [1]}'


@pytest.mark.parametrize(
    ("key", "is_bad"),
    [
        (KEY, False), (None, False), (b"", True), (b"anna", True), (b'{"order_id": "7"}', True),
        (KEY + b"x", True), (b"[" + KEY + b"]", True), (b"null", True), (b"\xff", True),
    ],
)  # fmt: skip
def test_a_key_in_json_has_the_types_of_the_primary_key(key: bytes | None, is_bad: bool) -> None:
    columns = tuple(
        replace(column, key=column.name in ("customer", "order_id")) for column in ORDERS.contract.columns
    )

    found = one(GOOD, orders(columns=columns, key_format="json"), key)

    assert found.reasons == (("bad_key",) if is_bad else ())


PEOPLE = {
    name: rules_of(json_topic("people", contract("people", name, format="json"))) for name in SOURCES
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", [*SOUND, *REFUSED])
def test_an_envelope_of_a_change_says_what_it_lacks(name: str, wrapped: bool) -> None:
    value = as_json({**SOUND, **REFUSED}[name], wrapped=wrapped)

    (found,) = judge([raw(value, b"{}", AT_MS * 1000)], PEOPLE["postgresql"])

    assert name in found.reasons if name in REFUSED else found.verdict == "valid"


@pytest.mark.parametrize("name", ALIKE)
def test_a_redelivery_is_a_duplicate_and_no_other_change_is(name: str) -> None:
    first, second, is_one = ALIKE[name]

    found = judge([raw(as_json(change), b"{}") for change in (first, second)], PEOPLE["postgresql"])

    assert found[1].verdict == ("duplicate" if is_one else "valid")


def test_a_few_records_take_milliseconds() -> None:
    records = [raw(sent(f"e{number}")) for number in range(20)]
    rules = orders()
    judge(records, rules)
    began = time.perf_counter()

    judge(records, rules)

    assert time.perf_counter() - began < 0.5
