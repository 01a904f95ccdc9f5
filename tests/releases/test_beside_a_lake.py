"""What is said of a project beside its lake: `check` by the lake server's Spark, `dev` over its records."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.project import PROJECT, TABLES
from tests.releases.lake import Lake, following_sql_server, order
from twinlake.base.errors import UsageError
from twinlake.definitions.premises import code


def copied(folder: Path) -> Path:
    """This project in a folder of its own."""
    for name in ("jobs", "contracts", "schemas"):
        shutil.copytree(PROJECT / name, folder / name)
    (folder / "twinlake.toml").write_text("[project]\n")
    return folder


def test_it_says_what_check_with_spark_says_and_names_lines(spark: SparkSession, tmp_path: Path) -> None:
    project = copied(tmp_path / "project")
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


@pytest.mark.faults
def test_dev_tries_a_definition_over_the_lake_s_records_and_compares_it_with_the_live_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    home, project = tmp_path / "home", copied(tmp_path / "project")
    with following_sql_server(home / "lake") as sql_url:
        lake = Lake(spark, home, sql_url, project)
        try:
            lake.append([order(number) for number in range(150)])
            lake.promote(lake.build({table.name: table for table in TABLES}))
        finally:
            lake.stop()

    def dev() -> str:
        command = [sys.executable, "-m", "twinlake", "--project", str(project), "--home", str(home)]
        done = subprocess.run([*command, "dev", "latest_order", "--once"], capture_output=True, text=True)
        return done.stdout + done.stderr

    same = dev()
    file = project / "jobs" / "tables" / "latest_order.py"
    file.write_text(file.read_text().replace('"status": "status"', '"status": "upper(status)"'))
    other = dev()

    assert "the newest records in the lake: 100 of orders (100 valid)" in same, same
    assert "rows     10" in same and "against the live version: nothing differs (release 1)" in same
    assert "against the live version: 10 of 10 rows differ (release 1)" in other, other
    assert "status paid -> PAID" in other
