"""The edge to Delta, on real tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from twinlake.base.errors import SilentSkipError
from twinlake.lake.delta import delta


def test_a_commit_is_found_again_by_its_metadata_and_transaction(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    made = [delta.append(spark.range(3), table, "me", n, {"kind": "step", "n": n}) for n in (1, 2)]
    spark.sql(f"OPTIMIZE delta.`{table}`")

    assert [commit.transactions for commit in made] == [{"me": 1}, {"me": 2}]
    assert delta.newest_metadata(table) == {"kind": "step", "n": 2}
    assert delta.newest_metadata(table, lambda found: found.get("n") == 1) == {"kind": "step", "n": 1}
    assert delta.newest_metadata(table, lambda found: found.get("n") == 3) is None
    assert delta.newest_version(table) == 2 > made[1].version
    assert spark.read.parquet(*(str(Path(table) / name) for name in made[0].added)).count() == 3


def test_a_write_that_delta_skips_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta.append(spark.range(3), table, "me", 2, {})

    for known in (1, 2):
        with pytest.raises(SilentSkipError, match=f"transaction {known}"):
            delta.append(spark.range(3), table, "me", known, {})
    assert spark.read.format("delta").load(str(table)).count() == 3


def test_replacing_touches_only_what_the_predicate_names(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    rows = spark.sql("SELECT id, id % 2 AS part FROM range(6)")
    delta.append(rows, table, "me", 1, {}, partition_by=("part",))
    commit = delta.replace(rows.where("id = 1"), table, "part = 1", "me:batch", 1, {"kind": "rebuild"})

    assert commit.metadata == {"kind": "rebuild"}
    ids = [row.id for row in spark.read.format("delta").load(str(table)).orderBy("id").collect()]
    assert ids == [0, 1, 2, 4]
