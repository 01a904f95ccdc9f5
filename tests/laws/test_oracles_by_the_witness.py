"""The laws a third way: what their oracles in Python say of generated histories is what the witness finds.

The laws compare Spark's kinds, after any cut and merge, with these oracles. Here a third statement of the
same kinds and measures meets them: DuckDB, over the records of all histories at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.laws import activity, entries, oracle, simple_measures, trailing
from tests.laws.by_witness import Rowed, said_by_oracle
from tests.laws.histories import START, History, Record, generated
from tests.laws.tables import NEWEST, THREE, TOTALS, VERSIONS, WINDOWED, WORDS
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.trailing import Trailing
from twinlake.kinds.windows import Hopping
from twinlake.witness.answer import DIFFERS, EQUAL

MINUTE = timedelta(minutes=1)
Oracle = Callable[[Iterable[Record]], Iterable[Rowed]]
Case = tuple[Kind, Oracle, dict[str, str]]
_KEY, _SIZES = {"key": "string"}, ("ratio_size", "ratio_average_size")
_MEASURED = {
    "n": "bigint", "n_amount": "bigint", "sales": "decimal(38,2)", "average": "decimal(38,6)",
    "smallest": "decimal(12,2)", "largest": "decimal(12,2)", "wide": "decimal(38,2)",
    "wide_average": "decimal(38,6)", "ratio": "double", "ratio_average": "double", "first_word": "string",
    "distinct": "bigint",
}  # fmt: skip
_RECORD = {"_epoch": "int", "_partition": "int", "_offset": "bigint", "_timestamp": "timestamp"}
_TRAILED = {
    "key": "string", "at": "timestamp", "amount": "decimal(12,2)", "wide": "decimal(38,2)",
    "ratio": "double", "words": "string",
}  # fmt: skip
_WINDOW = {"window_start": "timestamp", "window_end": "timestamp", "final": "boolean"}
_SESSION = {"session_start": "timestamp", "session_end": "timestamp", "final": "boolean"}
_SET = "struct<items:array<{0}>,more:boolean>"
_SIMPLE = {
    **dict.fromkeys(("total", "average", "least", "most", "variance", "deviation", "amounts"), "double"),
    **dict.fromkeys(("amounts_deviation", "wides", "ratio_of_most"), "double"),
    **dict.fromkeys(("first", "last", "first_at", "last_at", "word_of_least"), "string"),
    "amount_of_word": "decimal(12,2)", "items": _SET.format("string"), "numbers": _SET.format("double"),
    **dict.fromkeys(simple_measures.COUNTS, "array<struct<low:double,high:double,count:bigint>>"),
}  # fmt: skip
_ENTRIES = {
    "n": "bigint", "middle": "double", "sales": "decimal(38,2)", "spread": "array<double>",
    "odd_spread": "array<double>", "often": "array<struct<item:string,count:bigint>>",
    "sold": "array<struct<item:string,weight:decimal(38,2)>>",
    "odd_often": "array<struct<item:double,count:bigint>>", "exact": "bigint", "sketched": "bigint",
    "odds": "bigint", "first": "array<struct<item:timestamp,count:bigint>>",
}  # fmt: skip


def keyed(found: dict[tuple[Any, ...], dict[str, Any]], *names: str, **more: Any) -> list[Rowed]:
    """The rows of an oracle that says them by key; nothing is final where no clock is known."""
    return [
        {**dict(zip(names, key, strict=True)), **{n: v for n, v in row.items() if n not in _SIZES}, **more}
        for key, row in found.items()
    ]


def windowed(records: Iterable[Record]) -> list[Rowed]:
    rows = keyed(oracle.aggregate(records, windowed=True), "key", "window_start", final=False)
    return [{**row, "window_end": row["window_start"] + MINUTE} for row in rows]


def simple(records: Iterable[Record]) -> list[Rowed]:
    rows = []
    for key, group in simple_measures.groups(records).items():
        row: dict[str, Any] = {name: value for name, (value, _) in simple_measures.shown(group).items()}
        for name in ("items", "numbers"):
            row[name] = dict(zip(("items", "more"), row[name], strict=True))
        for name in simple_measures.COUNTS:
            row[name] = [dict(zip(("low", "high", "count"), one, strict=True)) for one in row[name]]
        rows.append({"key": key, **row})
    return rows


def with_entries(minutes: int) -> Oracle:
    def rows(records: Iterable[Record]) -> list[Rowed]:
        found = keyed(entries.expected(records, windowed=True, minutes=minutes), "key", "window_start")
        end = timedelta(minutes=minutes)
        return [
            {**{name: entry(name, value) for name, value in row.items()},
             "window_end": row["window_start"] + end, "final": False}
            for row in found
        ]  # fmt: skip

    return rows


def entry(name: str, value: Any) -> Any:
    """In the view's form: the oracle has items as texts, and numbers with how near to them is right."""
    if isinstance(value, entries.Near):
        return value.exact
    if not isinstance(value, list) or name in ("spread", "odd_spread"):
        return [one.exact for one in value] if isinstance(value, list) else value
    made = {"odd_often": float, "first": lambda text: datetime.fromtimestamp(float(text), UTC)}.get(name, str)
    size = "weight" if name == "sold" else "count"
    return [{"item": made(item), size: count} for item, count in value]


def trailed(table: Trailing) -> Case:
    """The rows of records, of which each has an id of its own here."""
    told = replace(table, columns={name: name for name in ("history", *_TRAILED)})
    cell = timedelta(minutes=2) if table is trailing.BEFORE else timedelta(days=1)

    def rows(records: Iterable[Record]) -> list[Rowed]:
        found, of = trailing.expected(table)(records), {one.record_id: one for one in records}
        return [
            {**{name: getattr(of[key], name) for name in _TRAILED}, "_timestamp": START, "final": False,
             **{name: value for name, value in row.items() if not name.endswith("_size")},
             "_cell": START + (row["at"] - START) // cell * cell,
             **dict(zip(("_epoch", "_partition", "_offset"), key, strict=True))}
            for key, row in found.items()
        ]  # fmt: skip

    shown = {f"{length}_{name}": type_ for length in ("short", "long") for name, type_ in _MEASURED.items()}
    return told, rows, {**_TRAILED, **_RECORD, **shown, "_cell": "timestamp", "final": "boolean"}


ODD = {**entries.ENTRIES.columns, "odd": "ratio"}
ENTRIES = replace(entries.ENTRIES, columns=ODD)
SLIDING = replace(ENTRIES, name="sliding", window=Hopping(on="at", size="3 minutes", every="1 minute"))
CASES: dict[str, Case] = {
    "totals": (TOTALS, lambda of: keyed(oracle.aggregate(of, windowed=False), "key"), _KEY | _MEASURED),
    "windowed": (WINDOWED, windowed, _KEY | _MEASURED | _WINDOW),
    "words": (WORDS, lambda of: keyed(oracle.words(of), "word"), {"word": "string", "n": "bigint"}),
    "newest": (
        NEWEST, lambda of: keyed(oracle.latest(of), "key"),
        _KEY | {"at": "timestamp", "amount": "decimal(12,2)", "words": "string"},
    ),
    "three": (
        THREE, lambda of: keyed(oracle.top_rows(of, rows=3), "key", "place"),
        _KEY | {"place": "int", "at": "timestamp", "amount": "decimal(12,2)", "words": "string"},
    ),
    "versions": (
        VERSIONS, lambda of: keyed(oracle.versions(of), "key", "valid_from"),
        _KEY | dict.fromkeys(("valid_from", "valid_to"), "timestamp")
        | {"is_current": "boolean", "words": "string"},
    ),
    "sessions": (
        activity.VISITS, lambda of: keyed(activity.sessions(of), "key", "session_start", final=False),
        _KEY | _MEASURED | _SESSION,
    ),
    "hopping": (
        activity.SLIDING, lambda of: keyed(activity.windows(of), "key", "window_start", final=False),
        _KEY | _MEASURED | _WINDOW,
    ),
    "before": trailed(trailing.BEFORE),
    "with itself": trailed(trailing.WITH_ITSELF),
    "uneven hopping": (
        activity.UNEVEN, lambda of: keyed(activity.uneven_windows(of), "key", "window_start", final=False),
        _KEY | _MEASURED | _WINDOW,
    ),
    "simple": (simple_measures.TABLE, simple, _KEY | _SIMPLE),
    "entries": (ENTRIES, with_entries(1), _KEY | _ENTRIES | _WINDOW),
    "sliding entries": (SLIDING, with_entries(3), _KEY | _ENTRIES | _WINDOW),
}  # fmt: skip


@pytest.fixture(scope="module")
def histories(seed: int) -> dict[str, list[History]]:
    """By case; those without one have plain ones. Odd doubles are a field of the topic here."""
    plain, close = generated(250), activity.activity(seed, 250)
    odd = [
        replace(one, records=tuple(replace(r, ratio=entries.odd_of(r)) for r in one.records)) for one in plain
    ]
    apart = [
        replace(one, records=tuple(
            replace(r, record_id=(*r.record_id[:2], r.record_id[2] + 1_000 * number)) for r in one.records
        ))
        for number, one in enumerate(plain)
    ]  # fmt: skip
    return {
        **dict.fromkeys(CASES, plain), "before": apart, "with itself": apart, "sessions": close,
        "hopping": close, "uneven hopping": close, "entries": odd,
        "sliding entries": odd, "simple": simple_measures.odd_histories(250),
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_witness_finds_what_the_oracle_says(
    histories: dict[str, list[History]], case: str, tmp_path: Path
) -> None:
    table, said, types = CASES[case]

    found = said_by_oracle(table, histories[case], said, types, tmp_path)

    assert found.verdict == EQUAL and found.rows > 300, (found.why, found.differences[:3])
    assert found.final is None or found.final.verdict == EQUAL


@pytest.mark.parametrize("case", CASES)
def test_an_oracle_that_loses_a_record_is_found_to_differ(
    histories: dict[str, list[History]], case: str, tmp_path: Path
) -> None:
    """What the law says when it is broken: else it could not fail."""
    table, said, types = CASES[case]

    def forgetful(records: Iterable[Record]) -> Iterable[Rowed]:
        return said(tuple(records)[1:])

    found = said_by_oracle(table, histories[case], forgetful, types, tmp_path)

    assert found.verdict == DIFFERS and found.differing > 20
    assert all(one.behind is not None and not one.behind.why for one in found.differences)


def test_a_cent_too_much_is_found(histories: dict[str, list[History]], tmp_path: Path) -> None:
    table, said, types = CASES["totals"]

    def rounded(records: Iterable[Record]) -> Iterable[Rowed]:
        return [{**row, "sales": (row["sales"] or 0) + Decimal("0.01")} for row in said(records)]

    assert said_by_oracle(table, histories["totals"], rounded, types, tmp_path).verdict == DIFFERS


def test_every_measure_is_asked_about() -> None:
    asked = [one for table, _, _ in CASES.values() for one in getattr(table, "measures", {}).values()]

    assert {type(one) for one in asked} == set(MEASURES.values())
