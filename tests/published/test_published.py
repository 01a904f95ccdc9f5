"""A published table has the rows of the view at one position, whatever other engine reads it: on real Spark
and Delta."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.published.stage import (
    CHANGED, DEFINED, EVENTS, HOPS, LATEST, PAID, SALES, VISITS, Stage, by_deltalake, commits_of, files_of,
)  # fmt: skip
from twinlake.base.errors import NotFoundError
from twinlake.published import publisher
from twinlake.published.changes import ALL_KEYS, NEW, RECORDS, TOUCHED


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    patched = pytest.MonkeyPatch()
    patched.setattr(publisher, "WHOLE_EVERY_S", 1.0)
    patched.setattr(publisher, "EVERY_S", 0.5)
    found = Stage(spark, tmp_path_factory.mktemp("published"))
    found.lake.promote(found.lake.build(DEFINED))
    found.append(*range(40))
    yield found
    found.close()
    patched.undo()


@pytest.mark.parametrize(
    ("table", "way"),
    [(SALES, TOUCHED), (HOPS, TOUCHED), (LATEST, TOUCHED), (VISITS, TOUCHED), (EVENTS, RECORDS),
     (PAID, ALL_KEYS)],
)  # fmt: skip
def test_three_engines_read_the_rows_of_the_view_at_each_position(stage: Stage, table: str, way: str) -> None:
    stage.publish(table)
    begun = stage.until_published(table)
    assert begun["way"] == NEW
    assert stage.rows(table) == stage.view(table)
    first = 100 * stage.batches
    for numbers in (range(first, first + 30), range(first + 500, first + 505), range(first + 3, first + 9)):
        stage.append(*numbers)

        found = stage.until_published(table)

        assert (found["way"], found["state"], found["error"]) == (way, "published", None)
        assert stage.rows(table) == stage.view(table)
