"""A topic whose files are wrong at the start: its tables stand still and say why, until they are mended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.project import PROJECT, TABLES
from tests.releases.lake import Lake, order
from twinlake.base.errors import NotFoundError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The contracts and schemas of this project, for a test to change."""
    for folder in ("contracts", "schemas"):
        shutil.copytree(PROJECT / folder, tmp_path / "project" / folder)
    return tmp_path / "project"


@pytest.mark.faults
def test_a_server_starts_with_a_broken_contract_tells_it_and_loses_nothing(
    spark: SparkSession, tmp_path: Path, project: Path
) -> None:
    home = tmp_path / "home"
    contract = project / "contracts" / "orders.yaml"
    text = contract.read_text()
    lake = Lake(spark, home, project=project)
    lake.promote(lake.build({table.name: table for table in TABLES}))
    lake.append([order(number) for number in range(10)])
    lake.stop()
    contract.write_text("apiVersion: [\n")

    lake = Lake(spark, home, project=project)
    try:
        status = lake.server.status()
        (topic,) = status["topics"]
        assert lake.server.ready and status["release"]["number"] == 1
        assert (topic["name"], topic["state"]) == ("orders", "stopped")
        assert "orders.yaml" in topic["error"]["what"]
        assert [version["stalled"] for version in status["versions"]] == [True, True, True]
        with pytest.raises(NotFoundError, match="topic orders, which is not open"):
            lake.do("verify", table="sales_per_region")
    finally:
        lake.stop()
    contract.write_text(text)

    lake = Lake(spark, home, project=project)
    try:
        assert not any(version["stalled"] for version in lake.server.status()["versions"])
        assert lake.do("verify", table="sales_per_region")["position"] == {"orders": 1}
    finally:
        lake.stop()


def test_a_server_starts_with_a_field_whose_type_is_not_the_one_that_was_sent(
    spark: SparkSession, tmp_path: Path, project: Path
) -> None:
    home = tmp_path / "home"
    lake = Lake(spark, home, project=project)
    lake.server.lake.logs["orders"].keep({"note": "string"}, "schema 8", "")
    lake.stop()
    schema = json.loads((project / "schemas" / "orders.v1.avsc").read_text())
    schema["fields"].append({"name": "note", "type": "long", "default": 0})
    (project / "schemas" / "orders.v2.avsc").write_text(json.dumps(schema))
    with (project / "contracts" / "orders.yaml").open("a") as contract:
        contract.write("      - {name: note, logicalType: integer, physicalType: bigint, required: true}\n")

    lake = Lake(spark, home, project=project)
    try:
        (topic,) = lake.server.status()["topics"]
        assert lake.server.ready and (topic["name"], topic["state"]) == ("orders", "stopped")
        assert "orders.v2.avsc" in topic["error"]["what"] and "'note' is bigint" in topic["error"]["why"]
    finally:
        lake.stop()
