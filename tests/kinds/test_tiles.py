"""Tiles of hopping windows: a filter on windows is one on tiles, which the scan has; answers are the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.multisets import TopK
from twinlake.kinds.union import Union
from twinlake.kinds.windows import END, START, TILE, Hopping, Windows, window_range

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = Aggregate(
    name="t", inputs=("made",), columns={"k": "k", "at": "at"}, keys=("k",), measures={"n": Count()},
    window=Hopping(on="at", size="3 hours", every="1 hour"),
)  # fmt: skip
TABLES = {
    "tiles": TABLE,
    "uneven": replace(TABLE, window=Hopping(on="at", size="150 minutes", every="1 hour")),
    "local days": replace(
        TABLE, window=Hopping(on="at", size="3 days", every="2 days", time_zone="Europe/Berlin")
    ),
    "entries": replace(TABLE, measures={"n": Count(), "top": TopK("k", most=1)}),
}
HOURS = 12
ASKED = {
    "window_start >= TIMESTAMP '2026-01-01 08:00:00Z'": (8, HOURS),
    "window_start < TIMESTAMP '2026-01-01 02:00:00Z'": (0, 5),
    "window_start = '2026-01-01T05:00:00Z' AND k = 'k1'": (5, 8),
    "window_start IN (TIMESTAMP '2026-01-01 02:00:00Z', TIMESTAMP '2026-01-01 04:00:00Z')": (2, 7),
    "TIMESTAMP '2026-01-01 09:00:00Z' <= window_start AND k <> 'k0'": (9, HOURS),
    "(window_start >= TIMESTAMP '2026-01-01 10:00:00Z' OR window_start = TIMESTAMP '2026-01-01 09:00:00Z')": (
        9, HOURS
    ),
}  # fmt: skip
"""By condition, from which hour up to which the tiles are that it needs."""


def records(spark: SparkSession) -> DataFrame:
    return spark.range(HOURS * 8).selectExpr(
        "concat('k', id % 2) AS k", f"timestamp_seconds({int(FIRST.timestamp())} + id * 450) AS at",
    ).selectExpr(
        "*", "0 AS _epoch", "0 AS _partition", "monotonically_increasing_id() AS _offset", "at AS _timestamp",
    )  # fmt: skip


@pytest.fixture(scope="module")
def kept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By table, its states in a Delta table: of both keys in one hour a file."""
    folder: Path = tmp_path_factory.mktemp("tiles")
    for name, table in TABLES.items():
        states = table.partial(records(spark)).repartition(1).sortWithinPartitions(TILE)
        states.write.format("delta").option("maxRecordsPerFile", 2).save(str(folder / name))
    return {name: f"delta.`{folder / name}`" for name in TABLES}


def files_read(rows: DataFrame) -> int:
    """By the scans of what was computed."""
    rows.collect()
    plan: Any = rows._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    return sum(int(leaves.apply(n).metrics().apply("numFiles").value()) for n in range(leaves.size()))


@pytest.mark.parametrize("asked", ASKED)
def test_a_filter_on_windows_reads_the_files_of_their_tiles_alone(
    spark: SparkSession, kept: dict[str, str], asked: str
) -> None:
    view = TABLE.view({"t": kept["tiles"]}, ViewClock())
    spark.sql(view).createOrReplaceTempView("shown")
    first, end = ASKED[asked]

    found = spark.sql(f"SELECT * FROM shown WHERE {asked}")

    assert files_read(found) == end - first
    everything = spark.sql("SELECT * FROM shown").localCheckpoint()
    assert sorted(found.collect()) == sorted(everything.where(asked).collect())


def test_a_filter_on_the_windows_of_several_tables_is_one_on_the_tiles_of_each(
    spark: SparkSession, kept: dict[str, str]
) -> None:
    other = replace(TABLE, name="other", inputs=("others",))
    both = Union(name="both", of=("t", "other")).bound({"t": TABLE, "other": other})
    view = both.view({"t": kept["tiles"], "other": kept["tiles"]}, ViewClock())

    found = spark.sql(f"SELECT * FROM ({view}) WHERE window_start >= TIMESTAMP '2026-01-01 08:00:00Z'")

    assert files_read(found) == 2 * 4
    assert {row["n"] for row in found.where(f"hour({START}) = 8").collect()} == {2 * 3 * 4}


@pytest.mark.parametrize("name", TABLES)
def test_a_window_shows_the_records_in_it_and_each_record_is_stored_once(
    spark: SparkSession, kept: dict[str, str], name: str
) -> None:
    rows = records(spark)
    view = spark.sql(TABLES[name].view({"t": kept[name]}, ViewClock())).select("k", START, END, "n")

    found = view.alias("v").join(rows.alias("r"), "k").where(f"at >= {START} AND at < {END}")
    wrong = found.groupBy("k", START, "n").count().where("n <> count").collect()
    (stored,) = spark.sql(f"SELECT sum(_rows) AS n FROM {kept[name]} WHERE _hash_low IS NOT NULL").collect()

    assert not wrong and stored["n"] == HOURS * 8
    assert view.count() > 0 and TILE in spark.table(kept[name]).columns


def test_a_range_of_windows_is_one_of_tiles_that_ends_where_the_last_window_does() -> None:
    assert TABLE.window is not None
    asked = ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z")

    found = window_range(*asked, TABLE.window.grid, "t")

    assert found == Windows.between(FIRST + timedelta(hours=10), FIRST + timedelta(hours=13))
