"""A plan of a table whose topic the lake server has not opened says what is missing: files, or a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.releases.buyers import SPENT
from tests.releases.lake import Lake
from tests.releases.promised import project_of
from twinlake.base.errors import ContractError, NotFoundError, UsageError

REFUNDED = replace(SPENT, name="refunded", inputs=("refunds",))


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(spark, tmp_path / "home", project=project_of(tmp_path / "project", {}))
    yield made
    made.stop()


def test_a_topic_without_files_is_to_be_written_and_one_with_files_needs_a_restart(
    lake: Lake, tmp_path: Path
) -> None:
    tables, project = {"refunded": REFUNDED}, tmp_path / "project"

    with pytest.raises(NotFoundError, match="reads topic 'refunds', which this lake has not") as missing:
        lake.plan(tables)
    for known in ("schemas/orders.v1.avsc", "contracts/orders.yaml"):
        text = (project / known).read_text()
        (project / known.replace("orders", "refunds")).write_text(
            text.replace("name: orders", "name: refunds")
        )
    with pytest.raises(UsageError, match="table refunded reads topic 'refunds', which is not open") as closed:
        lake.plan(tables)
    (project / "contracts/refunds.yaml").write_text("apiVersion: [\n")
    with pytest.raises(ContractError, match=r"refunds\.yaml"):
        lake.plan(tables)

    assert (missing.value.why, missing.value.remedy) == ("it has orders", "add its files")
    assert closed.value.remedy == "run `twinlake reload`, then plan again"
