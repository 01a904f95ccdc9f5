"""Both engines, over the hostile rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.witness import hostile_values
from tests.witness.engines import ByDuckDB, BySpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def hostile_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_values.write(tmp_path_factory.mktemp("witness"))


@pytest.fixture
def by_spark(spark: SparkSession, hostile_rows: Path) -> Iterator[BySpark]:
    engine = BySpark(spark, hostile_rows)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def by_duckdb(hostile_rows: Path) -> ByDuckDB:
    return ByDuckDB(hostile_rows, hostile_values.TYPES)
