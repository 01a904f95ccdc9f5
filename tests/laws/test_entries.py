"""Measures with entry rows show what the oracle shows for any cut and merge, and planted bugs are caught."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.laws.entries import ENTRIES, agrees, expected, plain
from tests.laws.histories import START, History, Record, generated, packed
from tests.laws.tables import stored, view_text
from tests.longer import some
from twinlake.kinds import entries
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.entries import Entries
from twinlake.kinds.evidence import HASH_LOW, NAMES, TELLS
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.windows import Hopping
from twinlake.spark.prepared_plan import ArrowFile, PreparedPlan, computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

TOTALS = replace(ENTRIES, name="entries_ever", window=None)
SLIDING = replace(
    ENTRIES, name="entries_sliding", window=Hopping(on="at", size="3 minutes", every="1 minute")
)


@pytest.fixture(scope="module")
def many() -> list[History]:
    told = [("2.00", "x")] * 5 + [("9.00", "y"), ("70.00", "z")]
    often = [
        Record(
            record_id=(0, 0, n), key="a", at=START, amount=Decimal(amount), wide=None, ratio=None,
            words=word, gone=None,
        )
        for n, (amount, word) in enumerate(told)
    ]  # fmt: skip
    one = History(records=tuple(often), places=tuple((n % 3, 0, 0) for n in range(len(often))))
    return [*generated(), one]  # some items are more frequent than others, whatever was drawn


def viewed(spark: SparkSession, table: Aggregate, many: list[History]) -> list[Row]:
    stored(table, packed(spark, many)).createOrReplaceTempView("law_entries")
    return spark.sql(view_text(table, "law_entries")).collect()


@pytest.fixture(scope="module")
def beside(spark: SparkSession, many: list[History]) -> list[Row]:
    """The rows of the view of ENTRIES."""
    return viewed(spark, ENTRIES, many)


def violations(table: Aggregate, rows: list[Row], many: list[History]) -> list[Any]:
    """Where rows of a view differ from the oracle's: the place, the measure, and both sides."""
    shown: dict[tuple[int, str], dict[Any, Any]] = {}
    wrong: list[Any] = []
    for row in rows:
        values = {name: value for name, value in row.asDict().items() if name not in ("window_end", "final")}
        index, side = values.pop("history").split("/")
        start = [values.pop("window_start").astimezone(UTC)] if table.window else []
        place, key = shown.setdefault((int(index), side), {}), (values.pop("key"), *start)
        if key in place:
            wrong.append((index, side, key, "two rows"))
        place[key] = values
    minutes = table.window.hops if isinstance(table.window, Hopping) else 1
    for index, history in enumerate(many):
        by_definition = expected(history.records, windowed=table.window is not None, minutes=minutes)
        for side in ("cut", "whole"):
            found = shown.get((index, side), {})
            if found.keys() != by_definition.keys():
                wrong.append((index, side, found.keys(), by_definition.keys()))
                continue
            for key, told in by_definition.items():
                wrong += [
                    (index, side, key, name, found[key][name], value)
                    for name, value in told.items()
                    if not agrees(plain(found[key][name]), value)
                ]
    return wrong


def miscounted(spark: SparkSession, many: list[History]) -> int:
    """How many main rows tell of other than the records that `n` has counted; no view shows that."""
    merged = TOTALS.merge(stored(TOTALS, packed(spark, many)))
    return merged.where(TELLS).where("_rows <> n__n").count()


@pytest.mark.parametrize("table", some([ENTRIES, TOTALS, SLIDING]), ids=lambda table: table.name)
def test_entry_measures_show_what_the_oracle_shows_for_every_cut_and_merge(
    spark: SparkSession, table: Aggregate, many: list[History], beside: list[Row]
) -> None:
    rows = beside if table is ENTRIES else viewed(spark, table, many)

    assert violations(table, rows, many) == []


def test_a_table_of_nothing_but_entry_measures_shows_the_same(
    spark: SparkSession, many: list[History], beside: list[Row]
) -> None:
    alone = {name: one for name, one in ENTRIES.measures.items() if one.item is not None}
    table = replace(ENTRIES, measures=alone)

    found = [row.asDict() for row in viewed(spark, table, many)]

    expected = [{name: row[name] for name in table.output} for row in beside]
    assert len(alone) == len(ENTRIES.measures) - 3
    assert sorted(map(repr, found)) == sorted(map(repr, expected)) != []


def test_merged_states_with_entries_are_the_same_for_every_cut(
    spark: SparkSession, many: list[History]
) -> None:
    merged = ENTRIES.merge(stored(ENTRIES, packed(spark, many)))

    sides: dict[str, dict[str, list[str]]] = {"cut": {}, "whole": {}}
    for row in merged.orderBy(*ENTRIES.state_keys).collect():
        values = row.asDict()
        index, side = values.pop("history").split("/")
        sides[side].setdefault(index, []).append(repr(values))

    assert sides["cut"] == sides["whole"] != {}


def test_main_rows_alone_tell_of_records_and_each_item_has_one_row(
    spark: SparkSession, many: list[History]
) -> None:
    states = ENTRIES.partial(packed(spark, many))
    plain_one = replace(ENTRIES, measures={"n": ENTRIES.measures["n"]})

    told = states.where(TELLS).select(*ENTRIES.view_keys, *NAMES)
    both = (told, plain_one.partial(packed(spark, many)).select(*ENTRIES.view_keys, *NAMES))
    entries_of = states.where(f"{entries.ENTRY} > 0")
    items = [column for column in states.columns if column.startswith("_item_")]
    counted = F.size(F.array_compact(F.array(*(F.col(one).cast("string") for one in items))))

    assert sorted(map(repr, both[0].collect())) == sorted(map(repr, both[1].collect())) != []
    assert len(items) == 5  # the buckets of amount and odd, words, odd, at: one for all measures of words
    assert entries_of.where(counted != 1).count() == 0 < entries_of.count()
    assert entries_of.where(f"{HASH_LOW} IS NOT NULL OR n__n IS NOT NULL").count() == 0
    assert states.groupBy(*ENTRIES.state_keys).count().where("count > 1").count() == 0


@pytest.mark.parametrize("table", [ENTRIES, SLIDING], ids=lambda table: table.name)
def test_kept_plans_of_entries_say_what_fresh_ones_say(
    spark: SparkSession, many: list[History], table: Aggregate
) -> None:
    batches = [packed(spark, part) for part in (many[:1], many[1:60])]
    partial = PreparedPlan(spark, batches[0].schema, table.partial)
    merge = PreparedPlan(spark, table.partial(batches[0]).schema, table.merge)

    for rows in batches:
        fresh = computed(table.partial(rows.coalesce(1)))
        kept = partial.run(ArrowFile(spark, computed(rows)))
        doubled = merge.run(ArrowFile(spark, pa.concat_tables([kept, kept])))
        assert kept.schema == fresh.schema
        assert sorted(map(repr, kept.to_pylist())) == sorted(map(repr, fresh.to_pylist()))
        assert doubled.num_rows == kept.num_rows
        assert sum(doubled["_rows"].to_pylist()) == 2 * sum(kept["_rows"].to_pylist())


def test_rolling_windows_over_entries_show_what_the_oracle_shows(
    spark: SparkSession, many: list[History], tmp_path: Path
) -> None:
    states = str(tmp_path / "states")
    stored(ENTRIES, packed(spark, many)).write.parquet(states)
    rolling = Rolling(name="lately", of=ENTRIES.name, last=("3 minutes",)).bound({ENTRIES.name: ENTRIES})
    watermark = f"TIMESTAMP '{(START + timedelta(seconds=61)).isoformat()}'"
    text = rolling.view({ENTRIES.name: f"parquet.`{states}`"}, ViewClock(watermarks={"made": watermark}))

    wrong, rows = [], spark.sql(text).drop("window_start", "window_end", "last").collect()
    for row in rows:
        values = row.asDict()
        index, _ = values.pop("history").split("/")
        within = [
            one
            for one in many[int(index)].records
            if one.at is not None and timedelta(minutes=-2) <= one.at - START < timedelta(minutes=1)
        ]
        told = expected(within, windowed=False)[(values.pop("key"),)]
        wrong += [(row, name) for name, value in told.items() if not agrees(plain(values[name]), value)]
    assert rows and wrong == []


Mutate = Callable[[pytest.MonkeyPatch], None]


def _replaced(owner: type, name: str, old: str, new: str) -> Mutate:
    """A text of Spark SQL that a method or property of this name makes, changed."""

    def mutate(patch: pytest.MonkeyPatch) -> None:
        found = owner.__dict__[name]
        make = found.fget if isinstance(found, property) else found

        def mutant(*arguments: Any) -> str:
            made: str = make(*arguments)
            assert old in made or not isinstance(arguments[0], Measure), f"{old} is not in {made}"
            return made.replace(old, new)

        patch.setattr(owner, name, property(mutant) if isinstance(found, property) else mutant)

    return mutate


_EXPANDED = entries._expanded


def _every_row_once_for_each(rows: DataFrame, items: Mapping[str, str]) -> DataFrame:
    """NULL items too."""
    marked = {name: f"struct({sql} AS item)" for name, sql in items.items()}
    found = _EXPANDED(rows, marked)
    return found.withColumns({name: F.col(name).getField("item") for name in items})


def _null_for_main_row(patch: pytest.MonkeyPatch) -> None:
    def expanded(rows: DataFrame, items: Mapping[str, str]) -> DataFrame:
        has_item = F.coalesce(*(F.col(name).cast("string") for name in items)).isNotNull()
        found = _every_row_once_for_each(rows, items)
        return found.withColumn(entries.ENTRY, F.when(has_item, F.col(entries.ENTRY)).otherwise(0))

    patch.setattr(entries, "_expanded", expanded)


def _null_is_an_item(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(entries, "_expanded", _every_row_once_for_each)
    patch.setattr(TopK, "value", _mutant_value)


def _mutant_value(self: TopK, name: str) -> str:
    return _TOP_VALUE(self, name).replace(f"`{name}__item` IS NOT NULL AND ", "")


_TOP_VALUE = TopK.value


def _unmerged(patch: pytest.MonkeyPatch) -> None:
    """Each stored entry by itself: an item of two partials is shown twice."""
    patch.setattr(
        Entries, "_merges", lambda self: {"_rows": "max(_rows)", "sold__weight": "max(sold__weight)"}
    )


MUTANTS: dict[str, Mutate] = {
    "NULL is an item": _null_is_an_item,
    "ties by arrival": _replaced(
        TopK, "value", " WHEN l.item < r.item THEN -1 WHEN l.item > r.item THEN 1", ""
    ),
    "the larger item of equal ones": _replaced(TopK, "value", "l.item < r.item", "l.item > r.item"),
    "buckets by floor": _replaced(Quantile, "item", "ceil(", "floor("),
    "frequency ignored": _replaced(Quantile, "value", ", `_rows`)", ")"),
    "sign forgotten": _replaced(Quantile, "value", "sign(", "abs("),
    "infinity a number like others": _replaced(Quantile, "item", "1000000", "75000"),
    "frequencies merged as their maximum": _unmerged,
}


@pytest.mark.parametrize("mutant", some(MUTANTS, 2))
def test_a_planted_bug_is_caught(
    spark: SparkSession, mutant: str, many: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    MUTANTS[mutant](monkeypatch)

    assert violations(TOTALS, viewed(spark, TOTALS, many), many) != []


def test_a_row_without_an_item_that_is_taken_for_the_main_row_is_caught(
    spark: SparkSession, many: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert miscounted(spark, many) == 0

    _null_for_main_row(monkeypatch)

    assert miscounted(spark, many) > 0
