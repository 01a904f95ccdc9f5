"""A lake server checks its project's files by the Spark that it has: for the same code and project alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.project import PROJECT
from tests.releases.lake import Lake
from twinlake.base.errors import UsageError
from twinlake.definitions.premises import code


def test_it_says_what_check_with_spark_says_and_names_lines(spark: SparkSession, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for name in ("jobs", "contracts", "schemas"):
        shutil.copytree(PROJECT / name, project / name)
    (project / "twinlake.toml").write_text("[project]\n")
    file = project / "jobs" / "tables" / "latest_order.py"
    file.write_text(file.read_text().replace('"status": "status"', '"status": "statsu"'))
    lake = Lake(spark, tmp_path / "home", project=project)
    try:
        found = lake.do("check", code=code(), roots=[str(project)])
        others = ((code(), ["/other"], "another project's"), ("x", [str(project)], "other code"))
        for code_of, roots, why in others:
            with pytest.raises(UsageError, match=why):
                lake.do("check", code=code_of, roots=roots)
    finally:
        lake.stop()

    (problem,) = found["problems"]
    assert problem["file"] == str(file) and problem["line"] > 1 and "did you mean status?" in problem["why"]
    assert {one["name"] for one in found["tables"]} == {"orders", "sales_per_region"}
    assert all(one["fingerprint"] for one in found["tables"])
    assert (found["only_full"], found["unwarned"]) == ([], [])
