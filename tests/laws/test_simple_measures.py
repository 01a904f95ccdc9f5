"""The laws of the measures without entries: any cut and merge shows what the oracle shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.laws import simple_measures as oracle
from tests.laws.histories import History, packed
from tests.laws.simple_measures import COUNTS, INF, MEASURES, NAN, TABLE, odd_histories, one_group
from tests.laws.tables import stored, view_text
from tests.world import World
from twinlake.difference.diff import Side, diff
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.equality import scale_of
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.measures.measure import Measure, Part
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.spark.prepared_plan import ArrowFile, PreparedPlan, computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DOUBLES = ("total", "average", "variance", "deviation")
SETS = ("items", "numbers")


@pytest.fixture(scope="module")
def many() -> list[History]:
    scattered: list[float | None] = [n * 7919 % 1009 / 64 for n in range(40)]
    return [*odd_histories(300), one_group(scattered, [n % 2 for n in range(40)])]


def _view(
    spark: SparkSession, table: Aggregate, many: list[History], scaled: tuple[str, ...] = ()
) -> DataFrame:
    stored(table, packed(spark, many)).createOrReplaceTempView("simple")
    return spark.sql(view_text(table, "simple", scaled=scaled))


def wrong(
    spark: SparkSession, table: Aggregate, many: list[History], told: Mapping[str, str] | None = None
) -> list[tuple[Any, ...]]:
    """Every value of the view that is not the oracle's, under the name that is `told` for it."""
    names = told or {name: name for name in table.measures}
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in _view(spark, table, many).collect():
        found[row["history"], row["key"]] = {name: _plain(row[name], names[name]) for name in table.measures}
    differing = []
    for index, history in enumerate(many):
        for key, records in oracle.groups(history.records).items():
            expected = oracle.shown(records)
            for side in ("cut", "whole"):
                for name, value in found[f"{index}/{side}", key].items():
                    if not oracle.is_right(value, expected[names[name]]):
                        differing.append((name, side, value, expected[names[name]], history))
    return differing


def _plain(value: Any, name: str) -> Any:
    """Of a measure of that name, without Spark's rows."""
    if name in SETS:
        return value["items"], value["more"]
    return list(map(tuple, value)) if name in COUNTS else value


def test_every_measure_shows_what_the_oracle_shows_for_every_cut_and_merge(
    spark: SparkSession, many: list[History]
) -> None:
    assert len(many) > 200
    assert wrong(spark, TABLE, many) == []


def _differing(spark: SparkSession, cuts: DataFrame, scales: dict[str, str]) -> dict[str, int]:
    """By column, in how many rows the two cuts of each history differ; by the rule of certificates."""
    from pyspark.sql import functions as F

    index, side = F.split("history", "/")[0], F.split("history", "/")[1]
    left, right = (
        Side(rows=cuts.where(side == name).withColumn("history", index), scales=scales)
        for name in ("cut", "whole")
    )
    found = diff(left, right, ("history", "key"), shown=1)
    assert found.common and not found.only_left and not found.only_right
    return {column.name: column.changed for column in found.columns if column.changed}


def test_states_and_views_of_two_cuts_are_equal_by_the_rule_of_certificates(
    spark: SparkSession, many: list[History]
) -> None:
    # of drawn ones it may be that none differs: 0.1 + (0.2 + 0.3) is another double than (0.1 + 0.2) + 0.3
    many = [*many, *(one_group([0.1, 0.2, 0.3, *[3.3] * n], [0, *[1] * (n + 2)]) for n in range(10))]
    states = TABLE.merge(stored(TABLE, packed(spark, many))).localCheckpoint()
    scales = TABLE.scales(dict(states.dtypes))
    view = _view(spark, TABLE, many, DOUBLES).localCheckpoint()

    assert _differing(spark, states, scales) == {}
    assert _differing(spark, view, {name: scale_of(name) for name in DOUBLES}) == {}
    without = _differing(spark, states, {})
    assert (
        {"total__sum", "variance__mean", "variance__m2"}
        <= without.keys()
        <= scales.keys() | set(scales.values())
    )


def test_merged_states_have_the_columns_of_partial_ones_in_their_order(spark: SparkSession) -> None:
    state = TABLE.partial(packed(spark, []))

    assert TABLE.merge(state).dtypes == state.dtypes


def test_kept_plans_of_all_measures_say_what_fresh_ones_say(spark: SparkSession, many: list[History]) -> None:
    batches = [packed(spark, part) for part in (many[:1], many[1:20], many[20:])]
    partial = PreparedPlan(spark, batches[0].schema, TABLE.partial)
    merge = PreparedPlan(spark, TABLE.partial(batches[0]).schema, TABLE.merge)

    for rows in batches:
        kept = partial.run(ArrowFile(spark, computed(rows)))
        again = merge.run(ArrowFile(spark, kept))
        assert _lines(kept) == _lines(computed(TABLE.partial(rows.coalesce(1)))) == _lines(again)


def _lines(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.parametrize(
    "values",
    [
        [1e15 + n % 7 for n in range(3_000)],
        [-1e9 + (n * 37) % 101 / 64 for n in range(3_000)],
        [0.1] * 3_000,
        [1e-3] * 500 + [1e6 + n for n in range(500)],
        [1.7976931348623157e308, 1.0, -1.7976931348623157e308],
        [1.7976931348623157e308, 2.0**970, -1.7976931348623157e308],
        [-0.0, -0.0],
        [NAN, 1.0],
        [INF, 1e308, 1e308],
        [-INF, 1e308, 1e308],
        [INF, -INF],
        [INF],
    ],
    ids=lambda values: f"{values[:3]}",
)
def test_doubles_that_are_hard_to_add_up(spark: SparkSession, values: list[float]) -> None:
    count, total, variance = len(values), oracle.summed(values), oracle.variance(values)
    cuts = ([n % 7 for n in range(count)], [n * 3 // count for n in range(count)], [*range(count)][::-1])
    table = replace(TABLE, measures={name: MEASURES[name] for name in DOUBLES})

    found = _view(spark, table, [one_group([*values], cut) for cut in cuts[: 3 if count < 100 else 2]])

    for row in found.collect():
        assert oracle.is_right(row["total"], total) and oracle.is_right(row["variance"], variance)
        # the tolerance is wide where doubles have no digits left: sums of squares would have lost all of them
        assert repr(row["variance"]) == repr(variance[0]) or row["variance"] == pytest.approx(
            variance[0], rel=0.1
        )


def test_keys_that_are_zeros_of_two_signs_are_one(spark: SparkSession) -> None:
    table = replace(TABLE, keys=("history", "ratio"), measures={"last": Last("words")})

    found = _view(spark, table, [one_group([-0.0, 0.0], [0, 1], words=["x", "y"])]).collect()

    assert [(repr(row["ratio"]), row["last"]) for row in found] == [("0.0", "y")] * 2


@pytest.mark.faults
def test_versions_of_all_measures_are_stepped_merged_rebuilt_and_verified(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Structs and arrays as states go through small files, Delta, merges and certificates."""
    table = Aggregate(
        name="simple", inputs=("orders",), keys=("region",),
        columns={name: name for name in ("region", "ordered_at", "amount", "customer", "order_id")}
        | {"ratio": "CAST(amount AS DOUBLE)"},
        measures={
            "newest": Last("order_id", "ordered_at"), "largest": ArgMax("customer", "amount"),
            "oldest": First("order_id"), "least": ArgMin("order_id", "amount"),
            "customers": CollectSet("customer", most=3),
            "spread": Stddev("amount"), "ratios": Variance("ratio"), "most": Max("customer"),
        },
    )  # fmt: skip
    world = World(spark=spark, lake=tmp_path, table=table)
    for _ in range(3):
        world.produce()
        world.step()
        world.close()
    world.merge()
    world.produce()
    world.restart()
    world.step()
    rebuilt = world.rebuild()
    world.produce()
    world.step()

    records = [record for batch in world.log.batches for record in batch]
    shown = {row["region"]: row for row in world.feed.view(world.pin()).collect()}
    assert rebuilt.certificate.equal and rebuilt.replaced and world.verify().equal
    assert shown.keys() == {one["region"] for one in records}
    for region, row in shown.items():
        held = [one for one in records if one["region"] == region]
        customers = sorted({one["customer"] for one in held})
        place = ("_epoch", "_partition", "_offset")
        newest = max(held, key=lambda one: (one["ordered_at"], *(one[name] for name in place)))
        largest = max(held, key=lambda one: (one["amount"], *(one[name] for name in place)))
        exact = oracle.exact_variance([one["amount"] for one in held])[0]
        assert (row["newest"], row["largest"]) == (newest["order_id"], largest["customer"])
        assert (row["customers"]["items"], row["customers"]["more"]) == (customers[:3], len(customers) > 3)
        assert row["most"] == customers[-1]
        assert row["ratios"] == pytest.approx(exact) and row["spread"] ** 2 == pytest.approx(exact)


@dataclass(frozen=True)
class Planted(Measure):
    """A measure with one text of its SQL replaced."""

    whole: Measure
    where: str
    old: str
    new: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.whole.columns

    def parts(self, name: str, types: Any) -> tuple[Part, ...]:
        return self._changed(self.whole.parts(name, types))

    def stored_parts(self, name: str, states: Any) -> tuple[Part, ...]:
        return self._changed(self.whole.stored_parts(name, states))

    def value(self, name: str) -> str:
        return self._text("value", self.whole.value(name))

    def _changed(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        return tuple(
            replace(
                part, from_rows=self._text("from_rows", part.from_rows), merge=self._text("merge", part.merge)
            )
            for part in parts
        )

    def _text(self, where: str, text: str) -> str:
        return text.replace(self.old, self.new) if where in self.where.split() else text


KEY = "`_epoch` AS `_epoch`, `_partition` AS `_partition`, `_offset` AS `_offset`, "
BETWEEN = "(b.mean - a.mean) * (b.mean - a.mean)"
PLANTED: dict[str, tuple[str, str, str, str]] = {
    "ties go to the greater value": ("last_at", "from_rows", KEY, ""),
    "the log's order is forgotten": ("first", "from_rows", "`_epoch` AS `_epoch`, ", ""),
    "a NULL by wins": ("first_at", "from_rows", "`at` IS NOT NULL", "true"),
    "first is merged as max": ("first", "merge", "min(", "max("),
    "last is shown as min": ("last", "value", "max(", "min("),
    "a value's -0.0 is kept": ("ratio_of_most", "from_rows", "+ CAST(0 AS double)", ""),
    "one more than most is not kept": ("items", "from_rows merge", "1, 3)", "1, 2)"),
    "items are not merged as a set": ("items", "merge value", "array_distinct(", "("),
    "items are kept as they come": ("numbers", "from_rows", "array_sort(", "("),
    "-0.0 is an item": ("numbers", "from_rows", "+ CAST(0 AS double)", ""),
    "-0.0 is the least": ("least", "from_rows", "+ CAST(0 AS double)", ""),
    "means of parts are forgotten": ("variance", "merge value", BETWEEN, "0D"),
    "a mean is not weighted": ("variance", "merge", "(b.n / (a.n + b.n)) AS mean", "0.5D AS mean"),
    "what is not finite is left out": ("variance", "from_rows", "THEN 1 ", "THEN 0 "),
    "what is too large is left out": ("variance", "from_rows", "THEN 2 ", "THEN 0 "),
    "an overflow of squares is forgotten": ("wides", "merge", "THEN 2 ", "THEN 0 "),
    "exact squares are subtracted as doubles": ("wides", "value", "round(", "0 * round("),
    "infinity is left out of a sum": ("total", "from_rows", "CASE WHEN NOT abs(", "CASE WHEN abs("),
    "an edge is in the bucket below it": ("amount_counts", "from_rows", "<= `amount`", "< `amount`"),
    "an edge is rounded down": ("amount_counts", "from_rows", "'1E-2'", "'0E-2'"),
    "NULL is below all edges": ("ratio_counts", "from_rows", " FILTER (WHERE `ratio` IS NOT NULL)", ""),
    "edges below the type are forgotten": ("wide_counts", "from_rows", " + 1, 9, 9)", " + 0, 9, 9)"),
    "one merge counts the other's bucket": ("tenths", "merge value", "-> a + b", "-> a"),
    "buckets are shown one too far": ("tenths", "value", "i - 1", "i"),
    "an overflow is left to the sum": ("total", "from_rows", "1E270D", "1E308D"),
}  # fmt: skip


@pytest.fixture(scope="module")
def caught(spark: SparkSession, many: list[History]) -> set[str]:
    """The planted bugs with which a view shows something wrong; all are asked about at once."""
    planted = {
        f"bug{number}": Planted("", MEASURES[name], where, old, new)
        for number, (name, where, old, new) in enumerate(PLANTED.values())
    }
    told = {f"bug{number}": name for number, (name, *_) in enumerate(PLANTED.values())}
    bugs = dict(zip(planted, PLANTED, strict=True))
    return {bugs[found[0]] for found in wrong(spark, replace(TABLE, measures=planted), many, told)}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught_by_the_laws(spark: SparkSession, bug: str, caught: set[str]) -> None:
    name, where, old, _ = PLANTED[bug]
    rows = packed(spark, [])
    types = dict(TABLE.partial(rows).dtypes) | dict(rows.dtypes)
    texts = {
        "value": MEASURES[name].value(name),
        "from_rows": str([part.from_rows for part in MEASURES[name].parts(name, types)]),
        "merge": str([part.merge for part in MEASURES[name].stored_parts(name, types)]),
    }

    assert all(old in texts[one] for one in where.split()), "the bug is not planted"
    assert bug in caught
