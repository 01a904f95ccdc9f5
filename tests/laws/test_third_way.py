"""The laws a third way: what is shown after any cut and merge is what another engine makes of all records.

The other laws compare it with oracles in Python, which state a few measures and one history at a time; the
witness (`twinlake/witness`) states every kind and measure, over all histories at once and in this process.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import joins
from tests.laws.activity import HOURLY, SLIDING, VISITS, activity
from tests.laws.entries import ENTRIES
from tests.laws.histories import START, generated, packed
from tests.laws.simple_measures import TABLE as SIMPLE
from tests.laws.simple_measures import odd_histories
from tests.laws.tables import NEWEST, THREE, TOTALS, VERSIONS, WINDOWED, WORDS, stored
from tests.laws.test_joins import kept
from tests.longer import some
from tests.witness.asking import answered, asked, differing, log_of, view_of, written
from tests.witness.test_kinds import FIRST, micros, whole
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.rolling import Rolling
from twinlake.witness.answer import DIFFERS, EQUAL, Answer
from twinlake.witness.question import TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNTED = {"n": Count(), "sizes": Histogram("amount", edges=(-1, 0, 0.005, 1))}
"""Kinds with a merge of their own, whose oracles have no histogram."""
TABLES = (
    TOTALS, WINDOWED, WORDS, NEWEST, THREE, VERSIONS, SIMPLE, ENTRIES, SLIDING, VISITS, HOURLY,
    replace(VISITS, name="sized_visits", measures=COUNTED),
    replace(SLIDING, name="sized_sliding", measures=COUNTED),
)  # fmt: skip
TOP = Rolling(name="top", of="windowed", last=("1 minute", "1 day")).bound({"windowed": WINDOWED})
AT = micros(START + timedelta(hours=3, seconds=100))


@pytest.fixture(scope="module")
def rows(spark: SparkSession, seed: int) -> DataFrame:
    return packed(spark, [*generated(100), *odd_histories(60), *activity(seed, 60)]).cache()


@pytest.fixture(scope="module")
def log(rows: DataFrame, tmp_path_factory: pytest.TempPathFactory) -> TopicLog:
    return log_of(rows, tmp_path_factory.mktemp("log"), watermark=AT)


def third(table: Any, rows: DataFrame, log: TopicLog, folder: Path) -> Answer:
    """What is said of the states of all cuts, merged; where an expression is refused Spark computes it."""
    view = view_of(table, {table.name: stored(table, rows)}, {"made": log})
    question = asked(table, view, {"made": log}, folder)
    found = answered(question)
    if found.refused:
        found = answered(replace(question, stepped=written(table.after_steps(rows), folder)))
    return found


@pytest.mark.parametrize("table", some(TABLES, 3), ids=lambda table: table.name)
def test_the_witness_finds_what_is_shown_after_every_cut_and_merge(
    table: Kind, rows: DataFrame, log: TopicLog, tmp_path: Path
) -> None:
    found = third(table, rows, log, tmp_path)

    assert found.verdict == EQUAL and found.rows > 200, differing(found)
    assert found.final is None or found.final.verdict == EQUAL


def test_it_finds_the_last_windows_of_what_was_cut_and_merged(
    rows: DataFrame, log: TopicLog, tmp_path: Path
) -> None:
    log = replace(log, watermark=micros(START + timedelta(seconds=100)))
    view = view_of(TOP, {"windowed": stored(WINDOWED, rows)}, {"made": log})

    found = answered(asked(TOP, view, {"made": log}, tmp_path, {"windowed": (WINDOWED, None)}))

    assert found.verdict == EQUAL and found.rows > 100, differing(found)


@pytest.mark.parametrize(
    "table", some((*joins.NEAR.values(), *joins.AS_OF.values()), 2), ids=lambda table: table.name
)
def test_it_finds_the_pairs_of_rows_that_were_cut_and_merged(
    spark: SparkSession, seed: int, table: Any, tmp_path: Path
) -> None:
    pairs, states = joins.pairs(60, seed), {}
    for one, side in ((joins.ASKS, [p.left for p in pairs]), (joins.HITS, [p.right for p in pairs])):
        rows = whole(packed(spark, side), "cut")
        states[one.name] = kept(one, rows)
    logs = {"made": log_of(rows, tmp_path, watermark=micros(FIRST + timedelta(hours=3)))}
    reads = {name: (one, view_of(one, {name: states[name]}, logs)) for name, one in joins.TABLES.items()}

    found = answered(asked(table, view_of(table, states, logs), logs, tmp_path, reads))

    assert found.verdict == EQUAL and found.rows > 100, differing(found)


def test_a_merge_that_forgets_is_found(
    rows: DataFrame, log: TopicLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = Count.parts

    def parts(*asked: Any) -> Any:
        return tuple(replace(part, merge=part.merge.replace("sum(", "max(")) for part in real(*asked))

    monkeypatch.setattr(Count, "parts", parts)

    found = third(TOTALS, rows, log, tmp_path)

    assert found.verdict == DIFFERS, differing(found)
    assert found.differences[0].columns[0] in ("n", "n_amount") and found.differences[0].behind


def test_every_measure_is_asked_about() -> None:
    asked = [measure for table in TABLES for measure in getattr(table, "measures", {}).values()]

    assert {type(measure) for measure in asked} == set(MEASURES.values())
