"""The scales hold: what two cuts of one history give is the same by the one rule of equality.

A double's sum depends on the order in which it is added up. The rule forgives what that can do and no more,
and without its scales it would not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from math import isclose
from operator import and_
from typing import TYPE_CHECKING

import pytest

from tests.laws import oracle
from tests.laws.histories import START, History, generated, packed
from tests.laws.tables import TOTALS, WINDOWED, WORDS, stored, view_text
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.equality import same, scale_of
from twinlake.kinds.measures.totals import Avg, Sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ADDING = (Sum("ratio"), Avg("ratio"))
TABLES = tuple(
    table for table in (WINDOWED, TOTALS, WORDS) if any(one in ADDING for one in table.measures.values())
)
DOUBLES = tuple(name for name, one in WINDOWED.measures.items() if one in ADDING)


@pytest.fixture(scope="module")
def many() -> list[History]:
    """Each history as it is, and with all its records in one group, where many doubles meet in a sum."""
    found = generated(250)
    return [*found, *map(_gathered, found)]


def _gathered(history: History) -> History:
    records = tuple(replace(one, key="a", at=START, amount=None) for one in history.records)
    return replace(history, records=records)


def _differing(
    cuts: DataFrame, keys: tuple[str, ...], scales: Mapping[str, str], hidden: tuple[str, ...] = ()
) -> dict[str, int]:
    """How many rows of the two cuts of each history differ, by column; `keys` lacks the history."""
    from pyspark.sql import functions as F

    index, side = F.split("history", "/")[0].alias("index"), F.split("history", "/")[1]
    left, right = (
        cuts.where(side == name).select(
            F.struct(index, *(c for c in cuts.columns if c != "history")).alias(to)
        )
        for name, to in (("cut", "l"), ("whole", "r"))
    )
    types = {n: t for n, t in cuts.dtypes if n not in ("history", *keys, *hidden)}

    def at(side: str, name: str):
        return F.col(side).getField(name)

    on = reduce(and_, (at("l", key).eqNullSafe(at("r", key)) for key in ("index", *keys)))
    differs = {
        name: ~same(
            at("l", name), at("r", name), (type_, type_),
            [at(side, scales[name]) for side in "lr" if name in scales],
        )
        for name, type_ in types.items()
    }  # fmt: skip
    lone = F.col("l").isNull() | F.col("r").isNull()
    found = left.join(right, on, "full_outer").agg(
        F.count("*").alias("rows"), F.count_if(lone).alias("lone"),
        *(F.count_if(~lone & differing).alias(name) for name, differing in differs.items()),
    ).first()  # fmt: skip
    assert found is not None and found["rows"] > 0 and found["lone"] == 0
    return {name: found[name] for name in types if found[name]}


def _states(spark: SparkSession, table: Aggregate, many: list[History]) -> DataFrame:
    return table.merge(stored(table, packed(spark, many)))


def _view(spark: SparkSession, table: Aggregate, many: list[History]) -> DataFrame:
    stored(table, packed(spark, many)).createOrReplaceTempView("scales")
    return spark.sql(view_text(table, "scales", scaled=DOUBLES))


def _keys(table: Aggregate) -> tuple[str, ...]:
    return tuple(key for key in table.view_keys if key != "history")


def test_there_are_doubles_that_add_up_with_and_without_windows() -> None:
    assert TABLES == (WINDOWED, TOTALS)
    assert {type(WINDOWED.measures[name]) for name in DOUBLES} == {Sum, Avg}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.faults
def test_states_of_two_cuts_are_the_same_with_the_scales_of_the_states(
    spark: SparkSession, table: Aggregate, many: list[History]
) -> None:
    states = _states(spark, table, many)

    assert _differing(states, _keys(table), table.scales(dict(states.dtypes))) == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_views_of_two_cuts_are_the_same_with_the_scales_of_the_view(
    spark: SparkSession, table: Aggregate, many: list[History]
) -> None:
    scales = {name: scale_of(name) for name in DOUBLES}

    view = _view(spark, table, many)

    assert _differing(view, _keys(table), scales, tuple(scales.values())) == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.faults
def test_without_scales_some_sums_of_doubles_and_nothing_else_differ(
    spark: SparkSession, table: Aggregate, many: list[History]
) -> None:
    """The law can fail: the histories hold sums that depend on the cut."""
    states, view = _states(spark, table, many), _view(spark, table, many)
    hidden = tuple(scale_of(name) for name in DOUBLES)

    in_states, in_view = _differing(states, _keys(table), {}), _differing(view, _keys(table), {}, hidden)

    adding_up = set(table.scales(dict(states.dtypes)))
    assert {f"{name}__sum" for name in DOUBLES} <= in_states.keys() <= adding_up
    assert in_view.keys() == set(DOUBLES)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_scale_of_a_view_is_the_size_of_what_went_in(
    spark: SparkSession, table: Aggregate, many: list[History]
) -> None:
    """A greater one would forgive more than an order of adding up can do."""
    wrong = []
    for row in _view(spark, table, many).collect():
        history = many[int(row["history"].split("/")[0])]
        key = tuple(
            value.astimezone(UTC) if isinstance(value, datetime) else value
            for value in (row[name] for name in _keys(table))
        )
        expected = oracle.aggregate(history.records, windowed=table.window is not None)[key]
        for name in DOUBLES:
            found, size = row[scale_of(name)], expected[f"{name}_size"]
            # where nothing is added up there may be no size
            if not isclose(found or 0.0, size, rel_tol=1e-12):
                wrong.append((name, key, found, size, history))

    assert wrong == []
