"""Questions over files that a test has written itself, without Spark: what differs, what has no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.witness.answer import DIFFERS, EQUAL, NOT_WITNESSED, Answer, Compared
from twinlake.witness.child import witness
from twinlake.witness.evaluate import evaluate
from twinlake.witness.question import Field, Limits, Question, ReadTable, Rows, TopicLog

LIMITS = Limits(memory_mb=512, seconds=60)
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
EVENT = pa.struct([("customer", pa.string()), ("amount", pa.decimal128(12, 2)), ("at", TIME)])
FIELDS = {"customer": "string", "amount": "decimal(12,2)", "at": "timestamp"}
TOTALS: dict[str, Any] = {
    "kind": "aggregate", "name": "totals", "inputs": ["orders"], "explode": None, "where": None,
    "columns": [["customer", "customer"], ["amount", "amount"], ["at", "at"]], "keys": ["customer"],
    "window": None,
    "measures": [["n", {"kind": "count", "of": None}], ["sales", {"kind": "sum", "of": "amount"}]],
}  # fmt: skip
SHOWN = (("customer", "string"), ("n", "bigint"), ("sales", "decimal(38,2)"))
PLACED = pa.schema([("customer", pa.string()), ("n", pa.int64()), ("sales", pa.decimal128(38, 2))])
RIGHT = (("ann", 2, "3.50"), ("bob", 1, None), (None, 1, "-1.00"))


def event(customer: str | None, amount: str | None, seconds: int = 0) -> dict[str, Any]:
    return {
        "customer": customer, "amount": amount and Decimal(amount), "at": START + timedelta(seconds=seconds),
    }  # fmt: skip


EVENTS = (event("ann", "1.00"), event("ann", "2.50"), event("bob", None), event(None, "-1.00"))


def write(folder: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> str:
    file = folder / f"{uuid4().hex}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema), file)
    return str(file)


def log_file(folder: Path, events: Sequence[Any], type_: Any = EVENT, first: int = 0, **columns: Any) -> str:
    """A file of a log, of records of one partition; `columns` are the same in all of them."""
    schema = pa.schema(
        [
            ("epoch", pa.int32()), ("partition", pa.int32()), ("offset", pa.int64()), ("timestamp", TIME),
            ("key", pa.binary()), ("schema_id", pa.int32()), ("event", type_), ("verdict", pa.string()),
            ("late", pa.bool_()), ("replay", pa.bool_()), ("batch", pa.int64()), ("ingested_at", TIME),
        ]
    )  # fmt: skip
    usual = {
        "epoch": 0, "partition": 0, "timestamp": START, "key": b"k", "schema_id": 1, "verdict": "valid",
        "late": False, "replay": False, "batch": 1, "ingested_at": START, **columns,
    }  # fmt: skip
    rows = [{**usual, "offset": first + number, "event": one} for number, one in enumerate(events)]
    return write(folder, rows, schema)


def topic(*files: str, fields: Mapping[str, str] | tuple[Field, ...] = FIELDS, **more: Any) -> TopicLog:
    """By types of fields, or by the fields themselves, which need `event` and `met` beside them."""
    if isinstance(fields, tuple):
        more, fields = {"fields": fields, **more}, {}
    known: dict[str, Any] = {
        "contract": {"columns": [], "late_after": "1 minute", "null_values": "invalid", "key_format": None},
        "fields": tuple(Field(name=name, type=type_) for name, type_ in fields.items()),
        "files": files, "position": 1, "event": dict(fields), "met": {"1": tuple(fields)}, **more,
    }  # fmt: skip
    return TopicLog(**known)


def totals(folder: Path, *rows: tuple[Any, ...]) -> Rows:
    written = [{"customer": c, "n": n, "sales": s and Decimal(s)} for c, n, s in rows]
    return Rows(files=(write(folder, written, PLACED),), columns=SHOWN)


def ask(folder: Path, rows: Sequence[tuple[Any, ...]] = RIGHT, **changed: Any) -> Question:
    """Whether these are the totals of EVENTS; with fields of the definition that are changed."""
    return Question(
        definition={**TOTALS, **changed}, topics={"orders": topic(log_file(folder, EVENTS))},
        shown=totals(folder, *rows),
    )  # fmt: skip


def test_a_child_finds_what_is_shown(tmp_path: Path) -> None:
    found = witness(ask(tmp_path), LIMITS)

    assert (found.verdict, found.rows, found.engine, found.why) == (EQUAL, 3, "DuckDB 2.0.0", "")
    assert found.cpu_s > 0 and len(found.sql_hash) == 64


def test_the_hash_is_that_of_the_statements_and_not_of_the_files(tmp_path: Path) -> None:
    first, again = (evaluate(ask(tmp_path), LIMITS).sql_hash for _ in range(2))

    assert first == again != evaluate(ask(tmp_path, where="amount > 1.00"), LIMITS).sql_hash


def test_a_wrong_value_differs_with_its_key_and_both_sides(tmp_path: Path) -> None:
    found = evaluate(ask(tmp_path, (("ann", 2, "3.51"), *RIGHT[1:])), LIMITS)

    assert (found.verdict, found.rows, found.differing) == (DIFFERS, 3, 1)
    (one,) = found.differences
    assert (one.key, one.columns) == ({"customer": "ann"}, ("sales",))
    assert (one.witness, one.shown) == ({"n": "2", "sales": "3.50"}, {"n": "2", "sales": "3.51"})


def test_a_row_too_few_or_too_many_differs(tmp_path: Path) -> None:
    found = evaluate(ask(tmp_path, (*RIGHT[:2], ("eve", 0, None))), LIMITS)

    assert (found.verdict, found.differing) == (DIFFERS, 2)
    first, second = found.differences
    assert (first.key, first.witness, first.shown) == ({"customer": None}, {"n": "1", "sales": "-1.00"}, None)
    assert (second.key, second.witness, second.shown) == (
        {"customer": "eve"},
        None,
        {"n": "0", "sales": None},
    )


def test_a_key_that_is_shown_twice_differs(tmp_path: Path) -> None:
    found = evaluate(ask(tmp_path, (*RIGHT, RIGHT[0])), LIMITS)

    assert (found.verdict, found.rows, found.differing) == (DIFFERS, 4, 1)


def test_only_valid_records_up_to_the_position_count(tmp_path: Path) -> None:
    odd, others = (event("ann", "100.00"),), ("invalid", "duplicate", "too_late", "ignored")
    files = (
        log_file(tmp_path, EVENTS), log_file(tmp_path, odd, first=10, batch=2),
        *(log_file(tmp_path, odd, first=20, verdict=one) for one in others),
    )  # fmt: skip
    question = replace(ask(tmp_path), topics={"orders": topic(*files)})

    assert evaluate(question, LIMITS).verdict == EQUAL
    later = replace(question, topics={"orders": topic(*files, position=2)})
    assert evaluate(later, LIMITS).verdict == DIFFERS


def test_no_files_are_no_rows(tmp_path: Path) -> None:
    question = replace(ask(tmp_path), topics={"orders": topic()}, shown=Rows(files=(), columns=SHOWN))

    found = evaluate(question, LIMITS)

    assert (found.verdict, found.rows) == (EQUAL, 0)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kind": "graph"}, "kind graph (the witness does not know this kind)"),
        ({"measures": [["n", {"kind": "log_sum", "of": "amount"}]]}, "measure log_sum (the witness"),
        ({"where": "odd_function(customer)"}, "odd_function(customer) ("),
    ],
)  # fmt: skip
def test_what_the_witness_does_not_know_has_no_answer(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    found = evaluate(ask(tmp_path, **changed), LIMITS)

    assert found.verdict == NOT_WITNESSED and found.why.startswith(why), found


def test_what_needs_more_memory_has_no_answer(tmp_path: Path) -> None:
    many = [event(f"{'c' * 200}{number}", "1.00") for number in range(200_000)]
    question = replace(ask(tmp_path), topics={"orders": topic(log_file(tmp_path, many))})

    found = witness(question, replace(LIMITS, memory_mb=40))

    assert (found.verdict, found.why) == (NOT_WITNESSED, "it needs more than 40 MB")


def test_a_file_that_is_gone_is_no_failure(tmp_path: Path) -> None:
    """A clean-up of the log has replaced it by others."""
    gone = topic(log_file(tmp_path, EVENTS), str(tmp_path / "gone.parquet"))

    found = evaluate(replace(ask(tmp_path), topics={"orders": gone}), LIMITS)

    assert (found.verdict, found.why, found.is_gone) == (NOT_WITNESSED, "a file of the log is gone", True)


def test_a_file_that_cannot_be_read_is_not_gone(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("no Parquet")

    found = evaluate(replace(ask(tmp_path), topics={"orders": topic(str(broken))}), LIMITS)

    assert found.verdict != EQUAL and not found.is_gone


def test_other_types_than_spark_has_are_not_compared(tmp_path: Path) -> None:
    question = ask(tmp_path)
    other = replace(question.shown, columns=(*SHOWN[:2], ("sales", "decimal(38,3)")))

    found = evaluate(replace(question, shown=other), LIMITS)

    assert found.verdict == NOT_WITNESSED and found.why.startswith("column sales (decimal(38,3) in Spark")


def test_columns_may_have_the_names_that_statements_have(tmp_path: Path) -> None:
    event = pa.struct([("item", pa.string()), ("weight", pa.int32()), ("rows", pa.string())])
    names = {"item": "string", "weight": "int", "rows": "string"}
    made = [{"item": "a", "weight": 2, "rows": "x"}, {"item": "a", "weight": 3, "rows": "y"}]
    top = pa.list_(pa.struct([("item", pa.string()), ("weight", pa.decimal128(38, 0))]))
    schema = pa.schema([("item", pa.string()), ("main", top)])
    listed = [{"item": "y", "weight": Decimal(3)}, {"item": "x", "weight": Decimal(2)}]
    shown = [{"item": "a", "main": listed}]
    measures = [["main", {"kind": "top_k", "of": "rows", "most": 3, "by": "weight"}]]
    question = Question(
        definition={
            **TOTALS,
            "columns": [[name, name] for name in names],
            "keys": ["item"],
            "measures": measures,
        },
        topics={"orders": topic(log_file(tmp_path, made, event), fields=names)},
        shown=Rows(
            files=(write(tmp_path, shown, schema),),
            columns=(("item", "string"), ("main", "array<struct<item:string,weight:decimal(38,0)>>")),
        ),
    )

    found = evaluate(question, LIMITS)

    assert found.verdict == EQUAL, found


def test_a_column_may_hide_the_field_that_others_are_made_of(tmp_path: Path) -> None:
    """What an expression names is the topic's, whatever the definition calls its columns."""
    columns = [["customer", "'all'"], ["amount", "IF(customer = 'ann', 1.00, 0.00)"]]
    shown = ({"customer": "all", "n": 3, "sales": Decimal("2.00")},)
    rows = Rows(files=(write(tmp_path, shown, PLACED),), columns=SHOWN)
    question = replace(ask(tmp_path, columns=columns, where="customer IN ('ann', 'bob')"), shown=rows)

    found = evaluate(question, LIMITS)

    assert found.verdict == EQUAL, found


@pytest.mark.parametrize("records", [0, 2])
def test_no_rows_are_no_group_without_keys_too(tmp_path: Path, records: int) -> None:
    window = {"kind": "tumbling", "on": "at", "size": "1 minute"}
    of = {**TOTALS, "name": "of", "keys": [], "window": window}
    end = START + timedelta(minutes=1)
    rolled = {"kind": "rolling", "name": "last", "inputs": [], "of": "of", "last": ["1 minute"]}
    schema = pa.schema(
        [("window_start", TIME), ("window_end", TIME), ("last", pa.string()), PLACED.field("n"),
         PLACED.field("sales")]
    )  # fmt: skip
    row = {"window_start": START, "window_end": end, "last": "1 minute", "n": 2, "sales": Decimal("3.50")}
    shown = Rows(
        files=(write(tmp_path, [row] if records else [], schema),),
        columns=(("window_start", "timestamp"), ("window_end", "timestamp"), ("last", "string"), *SHOWN[1:]),
    )
    log = topic(log_file(tmp_path, EVENTS[:records]), watermark=int(end.timestamp()) * 1_000_000)

    reads = {"of": ReadTable(definition=of)}

    found = evaluate(Question(definition=rolled, topics={"orders": log}, shown=shown, reads=reads), LIMITS)

    assert (found.verdict, found.rows) == (EQUAL, int(records > 0)), found


def test_a_lake_whose_path_is_a_pattern_is_read_alone(tmp_path: Path) -> None:
    for name in ("lake b*[c]?", "lake bb[c]x", "lake b*cx"):
        (tmp_path / name).mkdir()
    log_file(tmp_path / "lake bb[c]x", EVENTS), log_file(tmp_path / "lake b*cx", EVENTS)

    assert evaluate(ask(tmp_path / "lake b*[c]?"), LIMITS).verdict == EQUAL
    assert witness(ask(tmp_path / "lake b*[c]?"), LIMITS).verdict == EQUAL


def test_a_pattern_with_a_backslash_has_no_answer(tmp_path: Path) -> None:
    question = replace(ask(tmp_path), topics={"orders": topic("/lake/a\\b*.parquet")})

    assert evaluate(question, LIMITS).why.startswith("file /lake/a\\b*.parquet (its name is a pattern")


def test_folders_are_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "verdict=invalid" / "amount=7"
    folder.mkdir(parents=True)
    question = replace(ask(tmp_path), topics={"orders": topic(log_file(folder, EVENTS))})

    assert evaluate(question, LIMITS).verdict == EQUAL


def test_windows_are_final_by_the_clock_at_the_pin(tmp_path: Path) -> None:
    """A line of its own: the verdict is about the rest."""
    window = {"kind": "tumbling", "on": "at", "size": "1 minute"}
    schema = pa.schema([*PLACED, ("window_start", TIME), ("window_end", TIME), ("final", pa.bool_())])
    rows = [
        {"customer": "ann", "n": 1, "sales": Decimal("1.00"), "window_start": START + at,
         "window_end": START + at + timedelta(minutes=1), "final": not at}
        for at in (timedelta(0), timedelta(minutes=1))
    ]  # fmt: skip
    shown = Rows(
        files=(write(tmp_path, rows, schema),),
        columns=(*SHOWN, ("window_start", "timestamp"), ("window_end", "timestamp"), ("final", "boolean")),
    )
    file = log_file(tmp_path, [event("ann", "1.00", 0), event("ann", "1.00", 119)])

    def found(minutes: int) -> Answer:
        at = int((START + timedelta(minutes=minutes)).timestamp()) * 1_000_000
        topics = {"orders": topic(file, watermark=at)}
        return evaluate(Question(definition={**TOTALS, "window": window}, topics=topics, shown=shown), LIMITS)

    first, second = found(2), found(3)
    assert (first.verdict, second.verdict) == (EQUAL, EQUAL)
    assert first.final and (first.final.verdict, first.final.rows) == (EQUAL, 2)
    assert second.final and (second.final.verdict, second.final.differing) == (DIFFERS, 1)
    assert second.final.differences[0].columns == ("final",)


def test_what_came_late_is_a_line_of_its_own(tmp_path: Path) -> None:
    """Each record counts once per window; one that was validated again is not discarded any more."""
    window = {"kind": "hopping", "on": "at", "size": "2 minutes", "every": "1 minute"}
    ann, too, again = [event("ann", "1.00", 30)], {"verdict": "too_late", "late": True}, {"replay": True}
    files = (
        log_file(tmp_path, ann, late=True),
        log_file(tmp_path, ann, first=1, **too),
        *(log_file(tmp_path, ann, first=2, **one) for one in (too, {**again, "batch": 2, "late": True})),
        *(log_file(tmp_path, ann, first=3, **one) for one in (too, {**again, "batch": 3})),
        log_file(tmp_path, ann, first=4, late=False),
        log_file(tmp_path, [event("x", None, 90)], first=5, late=True),
    )
    schema = pa.schema(
        [("window_start", TIME), ("window_end", TIME), ("late", pa.int64()), ("discarded", pa.int64()),
         ("first_arrived", TIME), ("last_arrived", TIME)]
    )  # fmt: skip

    def found(*counts: tuple[int, int, int]) -> Compared:
        rows = [
            {"window_start": START + timedelta(minutes=at), "window_end": START + timedelta(minutes=at + 2),
             "late": late, "discarded": discarded, "first_arrived": START, "last_arrived": START}
            for at, late, discarded in counts
        ]  # fmt: skip
        types = {"timestamp[us, tz=UTC]": "timestamp", "int64": "bigint"}
        columns = tuple((one.name, types[str(one.type)]) for one in schema)
        question = replace(
            ask(tmp_path, window=window, where="customer <> 'x'"),
            topics={"orders": topic(*files, position=2)},
            late=Rows(files=(write(tmp_path, rows, schema),), columns=columns),
        )
        answer = evaluate(question, LIMITS).late
        assert answer
        return answer

    assert found((-1, 2, 2), (0, 2, 2)).verdict == EQUAL
    assert found((-1, 2, 2), (0, 2, 1)).verdict == DIFFERS


DERIVED: dict[str, Any] = {
    "kind": "derived", "name": "ranked", "inputs": [], "reads": ["totals"], "by": [], "broadcast": [],
    "columns": ["place", "n", "share"], "keys": ["place"],
    "sql": "SELECT row_number() OVER (ORDER BY n DESC, customer) AS place, n,"
    " CAST(sales AS DOUBLE) / 3 AS share FROM totals WHERE customer IS NOT NULL",
}  # fmt: skip


def derived(folder: Path, *shares: float | None, **changed: Any) -> Answer:
    schema = pa.schema([("place", pa.int32()), ("n", pa.int64()), ("share", pa.float64())])
    rows = [{"place": place, "n": 3 - place, "share": share} for place, share in enumerate(shares, 1)]
    shown = Rows(
        files=(write(folder, rows, schema),), columns=(("place", "int"), ("n", "bigint"), ("share", "double"))
    )
    read = ReadTable(definition=TOTALS, shown=totals(folder, *RIGHT))
    question = Question(definition={**DERIVED, **changed}, topics={}, shown=shown, reads={"totals": read})
    return evaluate(question, LIMITS)


def test_a_derived_is_its_select_over_the_rows_that_tables_show(tmp_path: Path) -> None:
    assert derived(tmp_path, 3.5 / 3, None).verdict == EQUAL
    assert derived(tmp_path, 3.5 / 3 * (1 + 1e-10), None).verdict == EQUAL
    assert derived(tmp_path, 3.5 / 3 * (1 + 1e-8), None).verdict == DIFFERS
    assert derived(tmp_path, 3.5 / 3).verdict == DIFFERS


def test_a_derived_with_a_sum_of_doubles_may_differ_by_its_order(tmp_path: Path) -> None:
    total = "sum(CAST(sales AS DOUBLE))"
    sql = f"SELECT 1 AS place, CAST(2 AS BIGINT) AS n, {total} - {total} AS share FROM totals"

    assert derived(tmp_path, 0.0, sql=sql).verdict == EQUAL
    assert derived(tmp_path, 1e-17, sql=sql).verdict == EQUAL
    assert derived(tmp_path, 1e-7, sql=sql).verdict == DIFFERS


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"sql": "SELECT customer AS place, n, 1 AS share FROM totals LIMIT 1"}, "LIMIT"),
        (
            {"columns": ["place", "n", "part"]},
            "its SELECT (the witness reads its columns as place, n, share)",
        ),
    ],
)
def test_a_derived_that_is_not_listed_has_no_answer(
    tmp_path: Path, changed: dict[str, Any], why: str
) -> None:
    found = derived(tmp_path, **changed)

    assert found.verdict == NOT_WITNESSED and why in found.why, found


def test_rows_that_spark_has_stepped_replace_expressions_that_are_refused(tmp_path: Path) -> None:
    """The definition's columns and the record ids; a row that `where` leaves out is not among them."""
    schema = pa.schema(
        [
            *EVENT,
            ("_epoch", pa.int32()),
            ("_partition", pa.int32()),
            ("_offset", pa.int64()),
            ("_timestamp", TIME),
        ]
    )
    rows = [
        {**one, "_epoch": 0, "_partition": 0, "_offset": number, "_timestamp": START}
        for number, one in enumerate(EVENTS)
    ]
    ids = (("_epoch", "int"), ("_partition", "int"), ("_offset", "bigint"), ("_timestamp", "timestamp"))
    by_spark = Rows(files=(write(tmp_path, rows, schema),), columns=(*FIELDS.items(), *ids))
    columns = [["customer", "odd_function(customer)"], ["amount", "amount"], ["at", "at"]]
    question = ask(tmp_path, columns=columns, where="odd_function(at) > 0")

    refused, found = (evaluate(one, LIMITS) for one in (question, replace(question, stepped=by_spark)))

    assert (refused.verdict, found.verdict) == (NOT_WITNESSED, EQUAL), found
    assert found.expressions_by_spark and found.words.endswith("; expressions by Spark)")
