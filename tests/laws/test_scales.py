"""The scales hold: what two cuts of one history give is the same by the one rule of equality.

A double's sum depends on the order in which it is added up. The rule forgives what that can do and no more,
and without its scales it would not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

import pytest

from jobs.kinds.aggregate import Aggregate
from jobs.kinds.equality import same, scale_of
from jobs.kinds.measures.totals import Avg, Sum
from tests.laws.histories import History, generated, packed
from tests.laws.tables import TOTALS, WINDOWED, WORDS, stored, view_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ADDING = (Sum("ratio"), Avg("ratio"))
TABLES = tuple(
    table for table in (WINDOWED, TOTALS, WORDS) if any(one in ADDING for one in table.measures.values())
)
DOUBLES = tuple(name for name, one in WINDOWED.measures.items() if one in ADDING)


@pytest.fixture(scope="module")
def many() -> list[History]:
    return generated(250)


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
