"""A mistake that is made in ingest is found by the witness, which names the record and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.envelopes import as_json, contract
from tests.ingest.asking import differing
from tests.ingest.change_cases import ANNA, P7, change
from tests.ingest.fed import contract_of
from tests.ingest.json_cases import AT, PROPERTIES
from tests.ingest.mistaken import NOW, Sent, Written
from tests.ingest.stage import frame, order
from tests.project import OURS
from twinlake.ingest import decode_avro, decoding, duplicates, first_pass
from twinlake.topics import change_data, json_sql, record_key
from twinlake.topics.contract import Rule
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic, json_topic, load_topic

ID, OLDER = 8, 7
ORDERS = load_topic("orders", OURS)
OLD = dict(ORDERS.newest.avro)
SORT = {"name": "sort", "type": {"type": "enum", "name": "Sort", "symbols": ["A", "B"]}, "default": "A"}
MORE = [
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "rank", "type": "int", "default": 3},
    SORT,
]
NEW = {**OLD, "fields": [*OLD["fields"], *MORE]}
LATE, WINDOW = ORDERS.contract.late_after or timedelta(), ORDERS.contract.unique_within or timedelta()
MICROSECOND = timedelta(microseconds=1)
Patch = Callable[[pytest.MonkeyPatch], None]


def orders(**changes: Any) -> Topic:
    """A second schema, with a rule on a field that the first has not, and on one that may be NULL."""
    schema = parse_schema(NEW, topic="orders", number=2, file="orders.v2.avsc")
    rules = (
        *ORDERS.contract.rules, Rule(column="rank", code="below_minimum", value=Decimal(2)),
        Rule(column="note", code="not_allowed", value=("hi", "ho")),
    )  # fmt: skip
    promises = replace(ORDERS.contract, rules=rules, **changes)
    return replace(ORDERS, schemas=(*ORDERS.schemas, schema), contract=promises)


def new(event_id: str, **changes: Any) -> bytes:
    made = {"ordered_at": NOW, "note": "hi", "rank": 9, "sort": "B", **changes}
    return frame(ID, NEW, order(event_id, **made))


def old(event_id: str, **changes: Any) -> bytes:
    return frame(OLDER, OLD, order(event_id, **{"ordered_at": NOW, **changes}))


SENT: list[Sent] = [
    (b"k", new("a"), NOW),  # 0
    (b"k", old("b"), NOW),
    (b"k", new("c", note=None), NOW),
    (b"k", new("d"), NOW + LATE + MICROSECOND),
    (b"k", new("a"), NOW + WINDOW),
    (b"k", new("e")[:-1] + b"\x04", NOW),  # 5: the third of two symbols
    (b"k", new("f") + b"\0", NOW),
    (b"k", new("g").replace(b"anna", b"\xff\xffna"), NOW),
    (None, None, NOW),
    (b"k", None, NOW),
    (b"\xff", new("h"), NOW),  # 10
    (b"k", new("i", customer=""), NOW),
]
VERDICTS = (
    "valid", "valid", "valid", "valid", "duplicate", "invalid", "invalid", "invalid", "invalid", "valid",
    "invalid", "invalid",
)  # fmt: skip


@pytest.fixture
def topic() -> Topic:
    return orders(null_values="delete", key_format="string")


def written(spark: SparkSession, topic: Topic) -> Written:
    return Written(spark, topic, SENT, {OLDER: OLD, ID: NEW})


def test_without_a_mistake_nothing_differs(spark: SparkSession, topic: Topic, tmp_path: Path) -> None:
    log = written(spark, topic)

    found = log.asked(tmp_path)

    assert tuple(log.rows.column("verdict").to_pylist()) == VERDICTS
    assert log.rows.column("late").to_pylist().index(True) == 3
    assert (found.verdict, found.compared, found.differences) == ("equal", len(SENT), ())


def patched(owner: Any, name: str, make: Callable[[Any], Any]) -> Patch:
    return lambda monkeypatch: monkeypatch.setattr(owner, name, make(getattr(owner, name)))


def rule(broken: Callable[[Rule, str], str]) -> Patch:
    return patched(Rule, "broken_sql", lambda real: lambda self, sql: broken(self, real(self, sql)))


IN_CODE: dict[str, tuple[Patch, set[int]]] = {
    "the default of a field that the writer has not": (
        patched(decode_avro, "default_sql", lambda _: lambda field: f"CAST(1 AS {field.type})"), {1},
    ),
    "lateness from a microsecond later": (
        patched(first_pass, "micros", lambda real: lambda length: real(length) + 1), {3},
    ),
    "an id that is looked for in half of the window": (
        patched(duplicates.Duplicates, "__init__", lambda real: lambda self, window, load: real(
            self, window // 2, load
        )), {4},
    ),
    "a rule that NULL breaks": (rule(lambda _, sql: sql.replace(", false)", ", true)")), {1, 2}),
    "a rule that is not asked": (rule(lambda one, sql: "false" if one.code == "empty" else sql), {11}),
    "milliseconds that are taken for microseconds": (
        patched(decode_avro, "event_micros", lambda real: lambda *given: f"({real(*given)}) DIV 1000"),
        {0, 1, 2, 3, 4},
    ),
    "a body that goes on after its end": (
        patched(decode_avro, "_unlike", lambda _: lambda end, mark: f"{end} IS NULL"), {6},
    ),
    "a delete of no key": (
        patched(decoding, "_or_null", lambda _: lambda _, sql: f"CASE WHEN value IS NOT NULL THEN {sql} END"),
        {8},
    ),
    "a key that nobody looks at": (patched(record_key, "bad", lambda _: lambda _: None), {10}),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_CODE)
def test_a_mistake_in_its_code_is_found_in_the_records_that_it_is_about(
    spark: SparkSession, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    patch, records = IN_CODE[name]
    patch(monkeypatch)
    log = written(spark, topic)
    monkeypatch.undo()

    found = log.asked(tmp_path)

    assert found.verdict == "differs" and found.differing == len(records)
    assert {record: "verdict" in what for record, what in differing(found).items()} == {
        f"0/0/{at}": True for at in records
    }
    assert f"record 0/0/{min(records)} has verdict" in found.words


def test_a_text_in_the_log_that_is_none_ends_the_witness(
    spark: SparkSession, topic: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decode_avro, "_bad", lambda *_: "CAST(NULL AS string)")
    log = written(spark, topic)

    found = log.asked(tmp_path)

    assert found.verdict == "failed" and "encoding" in found.why


IN_ROWS: dict[str, tuple[int, str, Any]] = {
    "the branch of a union": (0, "event.note", None),
    "a value where the branch is null": (2, "event.note", "hi"),
    "the unit of a timestamp": (0, "event.ordered_at", NOW - timedelta(days=20_000)),
    "the scale of a decimal": (0, "event.amount", Decimal("125.00")),
    "the symbol of an enum": (0, "event.sort", "A"),
    "a number one too high": (1, "event.order_id", 2),
    "a default that was stored": (1, "event.rank", 3),
    "a flag of lateness": (3, "late", False),
    "a reason": (11, "reasons", ["empty:region"]),
    "an event of what is none": (5, "event", {"event_id": "e"}),
    "no event of what is one": (1, "event", None),
    "a verdict": (5, "verdict", "valid"),
}


@pytest.fixture(scope="module")
def sound(spark: SparkSession) -> Written:
    return written(spark, orders(null_values="delete", key_format="string"))


@pytest.mark.parametrize("name", IN_ROWS)
def test_another_value_in_the_log_is_found_by_name(sound: Written, tmp_path: Path, name: str) -> None:
    at, column, value = IN_ROWS[name]
    rows = sound.rows
    try:
        sound.change(at, column, value)
        found = sound.asked(tmp_path)
    finally:
        sound.rows = rows

    named = column if column.startswith("event") else "verdict"
    assert differing(found) == {f"0/0/{at}": {named}}


def test_a_number_that_passes_for_text_in_json_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = json_sql._plain_doubts

    def lenient(doc: str, type_: Any, closely: bool) -> Any:
        return [] if type_.name == "string" else real(doc, type_, closely)

    things = json_topic("things", contract_of("things", PROPERTIES, format="json"))
    texts = (b"", b', "text": 7', b', "text": "7"', b', "number": "7"')
    sent: list[Sent] = [(None, b"{" + AT + one + b"}", NOW) for one in texts]
    monkeypatch.setattr(json_sql, "_plain_doubts", lenient)

    found = Written(spark, things, sent).asked(tmp_path)

    assert differing(found) == {"0/0/1": {"verdict", "event"}}


def test_two_changes_that_are_taken_for_one_are_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = change_data.identity
    people = json_topic("people", contract("people", "postgresql", format="json"))
    value = as_json(change("u", P7, after=ANNA))
    sent: list[Sent] = [(b"1", value, NOW), (b"2", value, NOW), (b"1", value, NOW)]
    right = Written(spark, people, sent).asked(tmp_path)
    monkeypatch.setattr(change_data, "identity", lambda contract, column, _: real(contract, column, "NULL"))

    found = Written(spark, people, sent).asked(tmp_path)

    assert (right.verdict, right.compared) == ("equal", 3)
    assert differing(found) == {"0/0/1": {"verdict"}}
