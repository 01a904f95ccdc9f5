"""The session: what Spark raises reaches whoever asked, as it is and once."""

from __future__ import annotations

import logging.config
from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession


@pytest.fixture
def configured() -> Iterator[None]:
    """As a library does that sets up its logs: what was disabled before is not any more."""
    level = logging.root.level
    logging.config.dictConfig({"version": 1, "disable_existing_loggers": False})
    yield
    logging.root.setLevel(level)


def test_an_error_of_spark_is_raised_as_it_is_and_not_logged_as_well(
    spark: SparkSession, configured: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        spark.range(1).selectExpr("1 / id").collect()
    with pytest.raises(AnalysisException, match="nothing"):
        spark.sql("SELECT nothing FROM range(1)")

    said = capfd.readouterr()
    assert "DIVIDE_BY_ZERO" not in said.out + said.err and "nothing" not in said.out + said.err
