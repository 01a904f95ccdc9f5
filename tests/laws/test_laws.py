"""The laws: any cut of history, in any order, merged in any way, shows what the oracle shows."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import oracle, simple_measures
from tests.laws.entries import ENTRIES
from tests.laws.histories import History, generated, packed
from tests.laws.tables import NEWEST, PLAIN, TOTALS, WINDOWED, WORDS, stored, view_text
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.all import MEASURES

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession


@pytest.fixture(scope="module")
def many() -> list[History]:
    return generated(250)


def _shown(
    rows: list[Row], keys: tuple[str, ...]
) -> dict[tuple[int, str], dict[tuple[Any, ...], dict[str, Any]]]:
    found: dict[tuple[int, str], dict[tuple[Any, ...], dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        values = row.asDict()
        index, side = values.pop("history").split("/")
        key = tuple(_plain(values.pop(name)) for name in keys)
        assert key not in found[int(index), side], f"two rows for {key}"
        found[int(index), side][key] = {name: _plain(value) for name, value in values.items()}
    return found


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if hasattr(value, "astimezone") else value


def _differing(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The measures that differ, with both sides; doubles may differ by 1e-9 of the sum of sizes."""
    differing = {n: (found[n], expected[n]) for n in found if found[n] != expected[n]}
    for name in ("ratio", "ratio_average"):
        sides = differing.get(name, (None, None))
        if None not in sides and abs(sides[0] - sides[1]) <= 1e-9 * expected[f"{name}_size"]:
            del differing[name]
    return differing


def _view(spark: SparkSession, table: Any, many: list[History]) -> list[Row]:
    stored(table, packed(spark, many)).createOrReplaceTempView("law")
    return spark.sql(view_text(table, "law")).drop("window_end", "final").collect()


@pytest.mark.parametrize("windowed", [True, False])
def test_an_aggregate_shows_the_same_for_every_cut_and_merge(
    spark: SparkSession, windowed: bool, many: list[History]
) -> None:
    table = WINDOWED if windowed else TOTALS

    found = _shown(_view(spark, table, many), ("key", "window_start") if windowed else ("key",))

    for index, history in enumerate(many):
        for side in ("cut", "whole"):
            expected = oracle.aggregate(history.records, windowed=windowed)
            assert found[index, side].keys() == expected.keys(), history
            for key, values in expected.items():
                assert _differing(found[index, side][key], values) == {}, (side, key, history)


def test_latest_shows_the_same_for_every_cut_and_merge(spark: SparkSession, many: list[History]) -> None:
    found = _shown(_view(spark, NEWEST, many), ("key",))

    for index, history in enumerate(many):
        for side in ("cut", "whole"):
            assert found[index, side] == oracle.latest(history.records), history


def test_exploded_elements_are_counted_once_for_every_cut(spark: SparkSession, many: list[History]) -> None:
    found = _shown(_view(spark, WORDS, many), ("word",))

    for index, history in enumerate(many):
        for side in ("cut", "whole"):
            assert found[index, side] == oracle.words(history.records), history


def test_merged_states_are_equal_bit_for_bit_for_every_cut(spark: SparkSession, many: list[History]) -> None:
    """Sums, sketches' bytes, overflow flags and the exact companions: what a certificate compares."""
    merged = WINDOWED.merge(stored(WINDOWED, packed(spark, many)))

    exact = merged.drop("ratio__sum", "ratio__abs", "ratio_average__sum", "ratio_average__abs")
    found = _shown(exact.collect(), ("key", "window_start"))

    for index, history in enumerate(many):
        assert found[index, "cut"] == found[index, "whole"], history


def test_events_are_the_valid_rows_that_the_condition_holds_for(
    spark: SparkSession, many: list[History]
) -> None:
    packed(spark, many).createOrReplaceTempView("law_events")

    text = PLAIN.view({"made": "law_events"}, ViewClock(watermarks={"made": "NULL"}))
    rows = spark.sql(text).where("history LIKE '%/cut'").collect()

    found: dict[int, set[tuple[Any, ...]]] = defaultdict(set)
    for row in rows:
        found[int(row["history"].split("/")[0])].add(
            (row["key"], row["_epoch"], row["_partition"], row["_offset"])
        )
    for index, history in enumerate(many):
        assert found[index] == {(r.key, *r.record_id) for r in history.records if r.key}


def test_the_laws_ask_about_every_measure() -> None:
    asked = (
        *WINDOWED.measures.values(), *ENTRIES.measures.values(), *simple_measures.MEASURES.values()
    )  # fmt: skip

    assert {type(measure) for measure in asked} == set(MEASURES.values())
