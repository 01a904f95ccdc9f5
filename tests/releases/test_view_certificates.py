"""What a difference of a view is told with: it stores nothing, so nothing of it can be replaced."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.releases.buyers import PROMISED, TABLES
from tests.releases.lake import Lake, order
from tests.releases.promised import promised_lake
from twinlake.base.errors import DifferenceError
from twinlake.lake.catalog.certificates import SCHEMA
from twinlake.lake.delta.ledger import Ledger


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    """What is spent is not what the log says."""
    with promised_lake(spark, tmp_path, PROMISED) as lake:
        lake.promote(lake.build(TABLES))
        lake.append([order(number) for number in range(30)])
        lake.do("verify", table="buyers")
        path = lake.server.lake.version("spent").path(lake.path)
        spark.sql(f"UPDATE delta.`{path}` SET spent__sum = spent__sum + 1 WHERE customer = 'c3'")
        yield lake


@pytest.mark.faults
@pytest.mark.parametrize("kind", ["verify", "rebuild"])
def test_it_names_the_tables_below_and_is_certified_once(lake: Lake, kind: str) -> None:
    version = lake.server.lake.version("buyers")

    with pytest.raises(DifferenceError, match="differ in 1 keys of buyers") as found:
        lake.do(kind, job="asked", table="buyers", repair=True)

    assert "verify and rebuild (--repair) what it reads: newest, spent;" in found.value.remedy
    kept = Ledger(lake.path / "certificates", SCHEMA).rows()
    made = [(one["version"], one["kind"], one["equal"]) for one in kept if one["job"] == "asked"]
    assert made == [(version.name, "verify", False)]
    lake.do("rebuild", table="spent", repair=True)
    assert lake.do("verify", table="buyers")["equal"]
