"""What an ingest says of an error of Spark's: what it finds wrong, and no plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from twinlake.config.settings import Settings
from twinlake.ingest.source import explained


def test_an_error_of_spark_is_told_without_its_plan(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException) as raised:
        spark.sql("SELECT gone, id FROM range(3) WHERE id > 1")
    assert "Filter" in str(raised.value)

    why = explained(raised.value, spark, Settings(home=tmp_path), "orders", 7).why

    assert why.startswith("AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION]") and "gone" in why
    assert "\n" not in why and "Filter" not in why
