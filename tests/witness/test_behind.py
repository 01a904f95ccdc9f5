"""A difference names the records behind its key: by each kind of table, at most ten, all of them counted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.witness.test_evaluate import (
    EVENT,
    EVENTS,
    FIELDS,
    LIMITS,
    PLACED,
    RIGHT,
    SHOWN,
    START,
    TIME,
    TOTALS,
    ask,
    derived,
    event,
    log_file,
    topic,
    write,
)
from twinlake.witness.answer import DIFFERS, EQUAL, MOST, MOST_RECORDS, Answer, Behind, Difference, RecordId
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Question, ReadTable, Rows

STARTED = (("window_start", "timestamp"), ("window_end", "timestamp"), ("final", "boolean"))
IDS = [("_epoch", pa.int32()), ("_partition", pa.int32()), ("_offset", pa.int64()), ("_timestamp", TIME)]
ID_COLUMNS = (("_epoch", "int"), ("_partition", "int"), ("_offset", "bigint"), ("_timestamp", "timestamp"))


def records(*offsets: int, of: str = "orders") -> tuple[RecordId, ...]:
    return tuple(RecordId(topic=of, epoch=0, partition=0, offset=offset) for offset in offsets)


def behind(*offsets: int) -> Behind:
    return Behind(records=records(*offsets), count=len(offsets))


def found(
    folder: Path, definition: Mapping[str, Any], events: Any, schema: list[Any], columns: Any, *rows: Any
) -> Answer:
    """Of rows that a version shows of these events."""
    written = [dict(zip((name for name, _ in schema), row, strict=True)) for row in rows]
    shown = Rows(files=(write(folder, written, pa.schema(schema)),), columns=columns)
    topics = {"orders": topic(log_file(folder, events), watermark=0)}
    return evaluate(Question(definition=definition, topics=topics, shown=shown), LIMITS)


def test_the_records_of_a_key_are_listed(tmp_path: Path) -> None:
    rows = (("ann", 3, "3.50"), *RIGHT[1:], ("eve", 1, None))

    answer = evaluate(ask(tmp_path, rows), LIMITS)

    assert [(one.key["customer"], one.behind) for one in answer.differences] == [
        ("ann", behind(0, 1)), ("eve", Behind()),
    ]  # fmt: skip


def test_at_most_ten_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    many = [event("ann", "1.00") for _ in range(25)]
    question = ask(tmp_path, (("ann", 24, "24.00"),))

    topics = {"orders": topic(log_file(tmp_path, many))}
    answer = evaluate(Question(**{**vars(question), "topics": topics}), LIMITS)

    (one,) = answer.differences
    assert one.behind == Behind(records=records(*range(MOST_RECORDS)), count=25)
    assert one.behind.words == (
        "orders 0/0/0, 0/0/1, 0/0/2, 0/0/3, 0/0/4, 0/0/5, 0/0/6, 0/0/7, 0/0/8, 0/0/9 and 15 more"
    )


def test_every_difference_that_is_shown_has_them(tmp_path: Path) -> None:
    many = [event(f"c{number:03}", "1.00") for number in range(50)]
    question = ask(tmp_path, [(f"c{number:03}", 1, "2.00") for number in range(50)])

    topics = {"orders": topic(log_file(tmp_path, many))}
    answer = evaluate(Question(**{**vars(question), "topics": topics}), LIMITS)

    assert [one.behind for one in answer.differences] == [behind(number) for number in range(MOST)]


def test_an_exploded_record_is_one(tmp_path: Path) -> None:
    explode = {"name": "one", "array": "sequence(1, 3)"}

    answer = evaluate(ask(tmp_path, explode=explode), LIMITS)

    assert [one.behind for one in answer.differences] == [behind(3), behind(0, 1), behind(2)]


def test_of_windows_those_in_the_window(tmp_path: Path) -> None:
    window = {"kind": "hopping", "on": "at", "size": "2 minutes", "every": "1 minute"}
    schema = [*PLACED, ("window_start", TIME), ("window_end", TIME), ("final", pa.bool_())]
    schema = [(one.name, one.type) if isinstance(one, pa.Field) else one for one in schema]
    rows = [
        ("ann", number, Decimal("1.00") * number, START + timedelta(minutes=at),
         START + timedelta(minutes=at + 2), False)
        for at, number in ((-1, 1), (0, 2), (1, 2))
    ]  # fmt: skip
    events = [event("ann", "1.00", 0), event("ann", "1.00", 60)]

    answer = found(tmp_path, {**TOTALS, "window": window}, events, schema, (*SHOWN, *STARTED), *rows)

    (one,) = answer.differences
    assert one.key == {"customer": "ann", "window_start": "2026-01-31T12:01:00Z"}
    assert one.behind == behind(1)


def test_of_sessions_all_within_what_either_side_shows(tmp_path: Path) -> None:
    """The gap is a minute: a version that closed the session too early shows two of them."""
    sessions = {
        **TOTALS, "kind": "sessions", "on": "at", "gap": "1 minute",
    }  # fmt: skip
    schema = [(one.name, one.type) for one in PLACED]
    schema += [("session_start", TIME), ("session_end", TIME), ("final", pa.bool_())]
    columns = (*SHOWN, ("session_start", "timestamp"), ("session_end", "timestamp"), ("final", "boolean"))
    times = [START + timedelta(seconds=seconds) for seconds in (0, 30, 90)]
    events = [event("ann", "1.00", seconds) for seconds in (0, 30, 90, 500)]
    rows = [
        ("ann", 2, Decimal("2.00"), times[0], times[1], False),
        ("ann", 1, Decimal("1.00"), times[2], times[2], False),
    ]

    answer = found(tmp_path, sessions, events, schema, columns, *rows)

    assert [(one.witness is None, one.behind) for one in answer.differences] == [
        (False, behind(0, 1, 2)), (True, behind(2)), (False, behind(3)),
    ]  # fmt: skip


def test_of_the_latest_row_the_newest_come_first(tmp_path: Path) -> None:
    latest = {
        **{name: TOTALS[name] for name in ("name", "inputs", "explode", "where", "columns", "keys")},
        "kind": "latest", "order": ["at"], "delete_when": None, "values": ["amount"], "snapshot": None,
        "truncate_when": None, "source_place": None,
    }  # fmt: skip
    schema = [("customer", pa.string()), ("amount", pa.decimal128(12, 2))]
    columns = (("customer", "string"), ("amount", "decimal(12,2)"))
    events = [event("ann", f"{number}.00", number) for number in range(12)]

    answer = found(tmp_path, latest, events, schema, columns, ("ann", Decimal("10.00")))

    (one,) = answer.differences
    assert one.behind == Behind(records=records(*range(11, 1, -1)), count=12)


def test_of_events_it_is_the_record_itself(tmp_path: Path) -> None:
    events = {**{name: TOTALS[name] for name in ("name", "inputs", "explode", "columns")}, "kind": "events",
              "where": "customer <> 'bob'"}  # fmt: skip
    schema = [*((one.name, one.type) for one in EVENT), *IDS]
    columns = (*FIELDS.items(), *ID_COLUMNS)
    rows = [(*one.values(), 0, 0, number, START) for number, one in enumerate((*EVENTS[:3], EVENTS[3]))]
    gone = (*EVENTS[0].values(), 0, 0, 99, START)

    answer = found(tmp_path, events, EVENTS, schema, columns, *rows[:3], gone)

    assert [one.behind for one in answer.differences] == [behind(2), Behind()]


PAIRS: dict[str, Any] = {
    "kind": "interval_join", "name": "near", "inputs": [], "left": "asks", "right": "hits",
    "on": ["customer"], "before": "0 seconds", "after": "1 minute", "how": "left",
    "columns": [["hit", "right.amount"]],
}  # fmt: skip


@pytest.mark.parametrize("how", ["left", "as_of"])
def test_of_joins_both_records_of_the_pair(tmp_path: Path, how: str) -> None:
    of = {name: TOTALS[name] for name in ("explode", "where", "columns")}
    of |= {"kind": "events", "store": {"on": "at", "cell": "1 hour"}}
    reads = {name: ReadTable(definition={**of, "name": name, "inputs": [name]}) for name in ("asks", "hits")}
    definition = PAIRS
    if how == "as_of":
        definition = {**PAIRS, "kind": "as_of_join", "delete_when": None}
    topics = {
        "asks": topic(log_file(tmp_path, [event("ann", "1.00", 30)], first=7), watermark=0),
        "hits": topic(log_file(tmp_path, [event("ann", "2.00", 30)], first=8), watermark=0),
    }
    schema = [
        ("customer", pa.string()), ("hit", pa.decimal128(12, 2)),
        *((f"_{side}{name}", type_) for side in ("left", "right") for name, type_ in IDS[:3]),
        ("_cell", TIME), ("final", pa.bool_()),
    ]  # fmt: skip
    columns = (
        ("customer", "string"), ("hit", "decimal(12,2)"),
        *((f"_{side}{name}", type_) for side in ("left", "right") for name, type_ in ID_COLUMNS[:3]),
        ("_cell", "timestamp"), ("final", "boolean"),
    )  # fmt: skip
    row = ("ann", Decimal("3.00"), 0, 0, 7, 0, 0, 8, START, False)
    written = [dict(zip((name for name, _ in schema), row, strict=True))]
    shown = Rows(files=(write(tmp_path, written, pa.schema(schema)),), columns=columns)

    answer = evaluate(Question(definition=definition, topics=topics, shown=shown, reads=reads), LIMITS)

    (one,) = answer.differences
    both = (*records(7, of="asks"), *records(8, of="hits"))
    assert one.columns == ("hit",) and one.behind == Behind(records=both, count=2)
    assert one.behind.words == "asks 0/0/7; hits 0/0/8"


def test_a_derived_says_whose_rows_it_is_made_of(tmp_path: Path) -> None:
    (one,) = derived(tmp_path, 3.5 / 3).differences

    assert one.behind == Behind(why="its SELECT makes it of rows of totals (customer)")


def test_what_keeps_records_from_being_listed_leaves_the_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlake.witness.behind.MOST_RECORDS", "'so many'")  # DuckDB refuses the statement

    answer = evaluate(ask(tmp_path, (("ann", 3, "3.50"), *RIGHT[1:])), LIMITS)

    assert answer.verdict == DIFFERS and answer.differing == 1
    (one,) = answer.differences
    assert one.behind and one.behind.why.startswith("DuckDB 2.0.0 could not list them: ")


def test_nothing_is_listed_where_nothing_differs(tmp_path: Path) -> None:
    assert evaluate(ask(tmp_path), LIMITS).verdict == EQUAL


def test_a_difference_of_before_says_nothing_of_records() -> None:
    before = {"key": {"k": "1"}, "columns": [], "witness": None, "shown": None}

    assert Difference.from_json(before).behind is None
