"""The laws of kept rows and of joins: any cut of both sides' histories, at any pair of positions, shows what
the oracle shows, and each planted bug is found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import joins
from tests.laws.cuts import wrong_ranges
from tests.laws.histories import packed
from tests.laws.joins import AS_OF, ASKS, CELL, HITS, NEAR, Pair
from tests.longer import some
from twinlake.kinds.events import Events
from twinlake.kinds.join import Join
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.store import Store
from twinlake.kinds.windows import WindowRange, Windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def many(seed: int) -> list[Pair]:
    return joins.pairs(150, seed)


@pytest.fixture(scope="module")
def logs(spark: SparkSession, many: list[Pair]) -> Mapping[str, DataFrame]:
    """By table, the rows of its topic."""
    return {
        ASKS.name: packed(spark, [pair.left for pair in many]),
        HITS.name: packed(spark, [pair.right for pair in many]),
    }


@pytest.fixture(scope="module")
def states(
    logs: Mapping[str, DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, DataFrame]:
    """By table, what its version holds."""
    found = {}
    for table in (ASKS, HITS):
        file = str(tmp_path_factory.mktemp(table.name) / "states")
        kept(table, logs[table.name]).write.parquet(file)
        found[table.name] = logs[table.name].sparkSession.read.parquet(file)
        found[table.name].createOrReplaceTempView(f"law_{table.name}")
    return found


def kept(table: Events, rows: DataFrame) -> DataFrame:
    """Partials of the blocks, some merged, merged again with the others."""
    blocks = [table.partial(rows.where(f"block = {block}")) for block in range(5)]
    merged = table.merge(blocks[0].union(blocks[1]))
    for block in blocks[2:]:
        merged = merged.union(block)
    return table.merge(merged)


def text_of(join: Join) -> str:
    return join.view({name: f"law_{name}" for name in ("asks", "hits")}, ViewClock())


def oracle(join: Join, many: list[Pair]) -> list[Counter[joins.Joined]]:
    known = joins.near if join in NEAR.values() else joins.as_of
    return [known(pair, join.how) for pair in many]


@pytest.mark.parametrize("join", [*NEAR.values(), *AS_OF.values()], ids=lambda join: join.name)
def test_a_join_shows_the_same_for_every_cut_of_both_sides_at_any_positions(
    spark: SparkSession, states: Mapping[str, DataFrame], many: list[Pair], join: Join
) -> None:
    found = spark.sql(text_of(join)).collect()

    expected = oracle(join, many)
    assert any(row[-1] for shown in expected for row in shown), "no history has a row with a partner"
    for side in ("cut", "whole"):
        for index, shown in enumerate(joins.rows(found, side, len(many))):
            assert shown == expected[index], (side, many[index])


@pytest.mark.parametrize("table", [ASKS, HITS], ids=lambda table: table.name)
def test_a_table_keeps_each_row_once_in_each_cell_that_it_is_looked_for_from(
    states: Mapping[str, DataFrame], many: list[Pair], table: Events
) -> None:
    assert table.store is not None
    found: dict[str, Counter[Any]] = defaultdict(Counter)
    for row in states[table.name].collect():
        place = (row["_epoch"], row["_partition"], row["_offset"])
        lies = (place, row["key"], row["amount"], row["_cell"].astimezone(UTC), row["_home"], row["_rows"])
        found[row["history"]][lies] += 1

    for index, pair in enumerate(many):
        records = pair.left.records if table is ASKS else pair.right.records
        expected = Counter(
            (record.record_id, record.key, record.amount, *cell, 1)
            for record in records
            if table is ASKS or record.words != "x"
            for cell in joins.cells(record, table.store.reach_back, table.store.reach_ahead)
        )
        assert found[f"{index}/cut"] == found[f"{index}/whole"] == expected, pair


def test_events_show_the_same_with_and_without_a_store(
    spark: SparkSession, logs: Mapping[str, DataFrame], states: Mapping[str, DataFrame]
) -> None:
    logs["hits"].createOrReplaceTempView("law_log")
    plain = Events(name="plain", inputs=("made",), where=HITS.where, columns=HITS.columns)

    shown = spark.sql(HITS.view({"hits": "law_hits"}, ViewClock()))

    expected = spark.sql(plain.view({"made": "law_log"}, ViewClock()))
    assert shown.columns == expected.columns
    assert shown.exceptAll(expected).count() == expected.exceptAll(shown).count() == 0 < expected.count()
    assert shown.where("at IS NULL").count() > 0


def test_the_rows_of_some_cells_are_found_without_computing_the_others(logs: Mapping[str, DataFrame]) -> None:
    ranges = (
        Windows.between(end=EPOCH),
        Windows.between(start=EPOCH),
        Windows((WindowRange(end=EPOCH - CELL), WindowRange(start=EPOCH, end=EPOCH + CELL))),
        Windows(()),
    )

    assert wrong_ranges(HITS, logs["hits"], ranges, "_cell") == []


def text(old: str, new: str) -> Callable[[str], str]:
    """The view with another text in place of this one, wherever that stands."""
    return lambda view: view.replace(old, new)


HOME_ONLY = "(SELECT * FROM law_hits WHERE _home)"
ELSEWHERE = "(SELECT * EXCEPT (_cell), _cell + INTERVAL '60' SECOND AS _cell FROM law_hits)"
MUTANTS: list[tuple[str, Join, Callable[[str], str]]] = [
    ("the left home flag is ignored", NEAR["left"], text("WHERE `_home`) AS `left`", ") AS `left`")),
    ("the right home flag is ignored", NEAR["full"], text("WHERE `_home`) AS `right`", ") AS `right`")),
    ("the lower bound is left out", NEAR["inner"], text("`right`.`at` >= ", "`right`.`at` > ")),
    ("the upper bound is left out", NEAR["inner"], text("`right`.`at` <= ", "`right`.`at` < ")),
    ("NULL is a key", NEAR["inner"], text("`left`.`key` = ", "`left`.`key` <=> ")),
    ("rows meet in every cell", NEAR["inner"], text("`left`.`_cell` = `right`.`_cell`", "true")),
    ("the far cells are missing", NEAR["inner"], text("(SELECT * FROM law_hits)", HOME_ONLY)),
    ("a row is in the next cell", NEAR["inner"], text("(SELECT * FROM law_hits)", ELSEWHERE)),
    ("left rows are looked for at home", NEAR["full"],
     text("(SELECT * FROM law_asks) AS", "(SELECT * FROM law_asks WHERE _home) AS")),
    ("left rows without a partner are lost", NEAR["left"], text("LEFT JOIN", "JOIN")),
    ("right rows with a partner are shown alone", NEAR["full"], text("LEFT ANTI JOIN", "LEFT SEMI JOIN")),
    ("ties go by arrival", AS_OF["left"],
     text("`at`, `_epoch`, `_partition`, `_offset`)", "`at`, `_offset`)")),
    ("a row is valid at its end", AS_OF["left"], text("`left`.`at` < `right`", "`left`.`at` <= `right`")),
    ("a row is not valid at its start", AS_OF["left"],
     text("`right`.`at` <= `left`", "`right`.`at` < `left`")),
    ("a delete is a partner", AS_OF["left"], text("NOT `right`.`_deleted`", "true")),
    ("a delete is passed over", AS_OF["left"],
     text("WHERE `_home`\n)", "WHERE `_home` AND gone IS NOT TRUE\n)")),
    ("the newest has no end", AS_OF["inner"], text(" OR `right`.`_valid_to` IS NULL", "")),
    ("NULL is a key as of", AS_OF["inner"], text("`left`.`key` = ", "`left`.`key` <=> ")),
    ("the left home flag is ignored as of", AS_OF["left"],
     text("WHERE `_home`) AS `left`", ") AS `left`")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("join", "mutate"), some((mutant[1:] for mutant in MUTANTS), 6), ids=[mutant[0] for mutant in MUTANTS]
)
def test_a_planted_bug_is_found(
    spark: SparkSession,
    states: Mapping[str, DataFrame],
    many: list[Pair],
    join: Join,
    mutate: Callable[[str], str],
) -> None:
    planted = mutate(text_of(join))
    assert planted != text_of(join)

    found = joins.rows(_collected(spark, planted), "cut", len(many))

    assert found != oracle(join, many)


def _collected(spark: SparkSession, planted: str) -> list[Any]:
    return spark.sql(planted).collect()


def test_a_store_that_reaches_less_far_than_the_join_is_found(
    spark: SparkSession, logs: Mapping[str, DataFrame], states: Mapping[str, DataFrame], many: list[Pair]
) -> None:
    assert HITS.store is not None
    short = Store(keys=HITS.store.keys, on="at", cell="1 minute", back="74 seconds", ahead="0 seconds")
    kept(Events(name="hits", inputs=("made",), where=HITS.where, columns=HITS.columns, store=short),
         logs["hits"]).createOrReplaceTempView("law_short")  # fmt: skip
    join = NEAR["inner"]

    shown = spark.sql(join.view({"asks": "law_asks", "hits": "law_short"}, ViewClock())).collect()

    assert joins.rows(shown, "cut", len(many)) != oracle(join, many)
    assert timedelta(0) < joins.BEFORE < CELL
