"""Every kind over generated histories: the witness finds what Spark's kind shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.history import MemoryLog, Orders
from tests.laws import activity, joins, trailing
from tests.laws.derived import BALANCE, ORDERS, PAID, RANKED, RETURNED, RETURNS, SPENT
from tests.laws.entries import ENTRIES
from tests.laws.histories import START, generated, packed
from tests.laws.simple_measures import TABLE as SIMPLE
from tests.laws.simple_measures import odd_histories
from tests.laws.tables import NEWEST, THREE, TOTALS, VERSIONS, WINDOWED
from tests.laws.test_history import stamped
from tests.witness.asking import answered, asked, differing, log_of, shown, view_of
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.union import Union
from twinlake.witness.answer import EQUAL, NOT_WITNESSED, Answer
from twinlake.witness.question import TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WATERMARK = START + timedelta(hours=3, seconds=60)
"""Windows of 12:00 are final by the contract's lateness, those of 12:01 are not."""
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN = Events(
    name="plain", inputs=("made",), where="key <> '' OR amount > 0",
    columns={name: name for name in ("history", "key", "at", "amount", "ratio", "words")},
)  # fmt: skip
FOLLOWS = replace(NEWEST, name="follows", order=())
BY_TWO = replace(
    NEWEST, name="by_two", order=("ratio", "words"), delete_when="words = 'x'", values=("words", "ratio")
)
VERSIONS_BY_TWO = replace(
    VERSIONS, name="versions_by_two", order=("at", "ratio", "words"), delete_when="words = 'x'",
    values=("words", "ratio"),
)  # fmt: skip
"""Doubles among its values, NULL among what decides between rows of one time, deletes that may be NULL."""
WHOLE_NUMBERS = Aggregate(
    name="plain_entries", inputs=("made",), keys=ENTRIES.keys, window=ENTRIES.window,
    columns={name: sql for name, sql in ENTRIES.columns.items() if name != "odd"} | {"odd": "ratio"},
    measures=ENTRIES.measures,
)  # fmt: skip
PICKS = replace(
    trailing.ODD, name="picks",
    last={"74 seconds": {
        name: one for name, one in trailing.SPREADS.items() if name not in ("variance", "deviation")
    }},
)  # fmt: skip
OF_ONE_TOPIC = (
    PLAIN, TOTALS, WINDOWED, SIMPLE, WHOLE_NUMBERS, activity.SLIDING, NEWEST, FOLLOWS, BY_TWO, THREE,
    VERSIONS, VERSIONS_BY_TWO, trailing.BEFORE, trailing.WITH_ITSELF, PICKS,
)  # fmt: skip


def micros(moment: datetime) -> int:
    return (moment - FIRST) // timedelta(microseconds=1)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    return whole(packed(spark, [*generated(150), *odd_histories(150)])).cache()


@pytest.fixture(scope="module")
def log(rows: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> TopicLog:
    return log_of(rows, tmp_path_factory.mktemp("log"), watermark=micros(WATERMARK))


def whole(packed: DataFrame, side: str = "whole") -> DataFrame:
    """Each history once, as it was cut or not, with record ids of its own."""
    offset = "CAST(_offset + 1000 * CAST(split(history, '/')[0] AS int) AS bigint) AS _offset"
    columns = (offset if name == "_offset" else name for name in packed.columns)
    return packed.where(f"history LIKE '%{side}'").selectExpr(*columns)


def answer(table: Kind, rows: DataFrame, log: TopicLog, folder: Path) -> Answer:
    return answered(asked(table, shown(table, rows, log), {"made": log}, folder))


@pytest.mark.parametrize(
    "table",
    OF_ONE_TOPIC,
    ids=lambda table: table.name,
)
def test_the_witness_finds_what_a_table_of_one_topic_shows(
    table: Kind, rows: DataFrame, log: TopicLog, tmp_path: Path
) -> None:
    found = answer(table, rows, log, tmp_path)

    assert found.verdict == EQUAL and found.rows > 300, differing(found)
    assert found.final is None or (found.final.verdict, found.final.rows) == (EQUAL, found.rows)


def test_a_spread_of_doubles_in_a_trailing_window_is_not_witnessed(
    rows: DataFrame, log: TopicLog, tmp_path: Path
) -> None:
    found = answer(trailing.ODD, rows, log, tmp_path)

    assert found.verdict == NOT_WITNESSED and "measure variance in a trailing window" in found.why, found.why


def test_the_witness_finds_the_versions_of_a_history_that_follows_the_log(
    rows: DataFrame, tmp_path: Path
) -> None:
    """Kafka's times are in part equal, and go back."""
    stamps = stamped(rows)
    table = replace(VERSIONS, name="followed", order=(), values=("words", "ratio"))

    found = answer(table, stamps, log_of(stamps, tmp_path, watermark=micros(WATERMARK)), tmp_path)

    assert found.verdict == EQUAL and found.rows > 300, differing(found)


def test_the_witness_finds_sessions_and_their_windows(spark: SparkSession, seed: int, tmp_path: Path) -> None:
    rows = whole(packed(spark, activity.activity(seed, 100))).cache()
    log = log_of(rows, tmp_path, watermark=micros(WATERMARK))

    for table in (activity.VISITS, activity.SLIDING):
        found = answer(table, rows, log, tmp_path)
        assert found.verdict == EQUAL and found.rows > 200, differing(found)
        assert found.final and found.final.verdict == EQUAL


@pytest.mark.parametrize("watermark", [START + timedelta(seconds=100), None], ids=str)
def test_the_witness_finds_the_last_windows(
    rows: DataFrame, log: TopicLog, watermark: datetime | None, tmp_path: Path
) -> None:
    log = replace(log, watermark=None if watermark is None else micros(watermark))
    top = Rolling(name="top", of="windowed", last=("1 minute", "3 minutes", "1 day"))
    top = top.bound({"windowed": WINDOWED})
    view = view_of(top, {"windowed": WINDOWED.partial(rows)}, {"made": log})

    found = answered(asked(top, view, {"made": log}, tmp_path, {"windowed": (WINDOWED, None)}))

    assert found.verdict == EQUAL and (found.rows > 0) is (watermark is not None), differing(found)
    assert found.final and found.final.verdict == EQUAL


@pytest.mark.parametrize("table", [*joins.NEAR.values(), *joins.AS_OF.values()], ids=lambda table: table.name)
def test_the_witness_finds_what_a_join_shows(
    spark: SparkSession, seed: int, table: Any, tmp_path: Path
) -> None:
    """Its tables as they show their rows, and as their logs give them; each is of a topic of its own."""
    pairs = joins.pairs(60, seed)
    logs, states, tables = {}, {}, {}
    for one, histories in ((joins.ASKS, [p.left for p in pairs]), (joins.HITS, [p.right for p in pairs])):
        moved = f"{one.columns['at']} AS at"
        rows = whole(packed(spark, histories))
        rows = rows.selectExpr(*(moved if name == "at" else name for name in rows.columns))
        tables[one.name] = replace(one, inputs=(f"all_{one.name}",), columns={**one.columns, "at": "at"})
        logs[f"all_{one.name}"] = log_of(
            rows, tmp_path, watermark=micros(FIRST + timedelta(hours=3, seconds=30 + 60 * len(logs)))
        )
        states[one.name] = tables[one.name].partial(rows)
    view = view_of(table.bound(tables), states, logs)
    shown = {name: (one, view_of(one, {name: states[name]}, logs)) for name, one in tables.items()}
    given = {name: (one, None) for name, one in tables.items()}

    for reads in (shown, given):
        found = answered(asked(table, view, logs, tmp_path, reads))
        assert found.verdict == EQUAL and found.rows > 100, differing(found)
        assert found.final and found.final.verdict == EQUAL


@pytest.mark.parametrize("table", [TOTALS, WINDOWED, NEWEST, THREE], ids=lambda table: table.name)
def test_the_witness_finds_two_topics_shown_as_one(table: Any, rows: DataFrame, tmp_path: Path) -> None:
    union, states, logs = two_topics(table, rows, tmp_path)
    read = {name: (union.table(name), None) for name in union.of}

    found = answered(asked(union, view_of(union, states, logs), logs, tmp_path, read))

    assert found.verdict == EQUAL and found.rows > 300, differing(found)
    assert found.final is None or (found.final.verdict, found.final.rows) == (EQUAL, found.rows)


def two_topics(
    table: Any, rows: DataFrame, folder: Path
) -> tuple[Union, dict[str, DataFrame], dict[str, TopicLog]]:
    """A union of two tables like this one, what they keep, and the logs of their topics, which have come to
    different times."""
    one, other = replace(table, name="one"), replace(table, name="other", inputs=("more",))
    parts = [rows.where(f"pmod(hash(_epoch, _partition, _offset), 2) = {number}") for number in (0, 1)]
    states = {"one": one.partial(parts[0]), "other": other.partial(parts[1])}
    logs = {
        name: log_of(part, folder, watermark=micros(WATERMARK) + number * 60_000_000)
        for number, (name, part) in enumerate(zip(("made", "more"), parts, strict=True))
    }
    return Union(name="both", of=("one", "other")).bound({"one": one, "other": other}), states, logs


def test_the_witness_finds_what_is_derived_from_tables(
    spark: SparkSession, seed: int, tmp_path: Path
) -> None:
    rows = {}
    for number, topic in enumerate((ORDERS, RETURNS)):
        log: Any = MemoryLog(spark, tmp_path, topic)
        log.append(Orders(seed + number).batch(60 - 40 * number))
        rows[topic.name] = log.rows(0, 1)
    views = {
        SPENT.name: view_of(SPENT, {SPENT.name: SPENT.partial(rows["orders"])}, {}),
        RETURNED.name: view_of(RETURNED, {RETURNED.name: RETURNED.partial(rows["returns"])}, {}),
        PAID.name: view_of(PAID, rows, {}),
    }
    for table in (BALANCE, RANKED):
        reads = {name: (table, views[name]) for name in table.reads}
        views[table.name] = view_of(table, {name: views[name] for name in table.reads}, {})
        found = answered(asked(table, views[table.name], {}, tmp_path, reads))
        assert found.verdict == EQUAL and found.rows > 5, differing(found)
