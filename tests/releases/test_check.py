"""`twinlake check` as a person runs it, and what it reports about broken files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.project import OURS, PROJECT, TABLES, project_in
from twinlake.base.errors import ContractError, DefinitionError
from twinlake.definitions.loader import Loaded
from twinlake.releases import check as module
from twinlake.releases import findings
from twinlake.releases.check import Report, Sound, check, check_table
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = next(table for table in TABLES if table.name == "sales_per_region")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the data files; the definitions stay the imported ones."""
    for folder in ("schemas", "contracts"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    return tmp_path


def _no_spark() -> SparkSession:
    raise AssertionError("nothing is worth analysing")


@pytest.mark.faults
def test_the_project_is_sound_and_the_command_says_so(tmp_path: Path) -> None:
    environ = {**os.environ, "TWINLAKE_HOME": str(tmp_path / "home")}

    found = subprocess.run(
        [sys.executable, "-m", "twinlake", "check", "--json"],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        env=environ,
    )

    report = json.loads(found.stdout)
    assert (found.returncode, report["ok"], report["problems"]) == (0, True, [])
    assert found.stderr == "", "what Spark says while it starts is not a word of ours"
    assert {table["name"] for table in report["tables"]} == {table.name for table in TABLES}
    assert not (tmp_path / "home").exists(), "a check must not touch the state"


def test_a_broken_contract_is_reported_with_file_and_path(project: Path) -> None:
    file = project / "contracts" / "orders.yaml"
    file.write_text(file.read_text().replace("value: 3 hours", "value: soon"))

    report = check([project_in(project)], _no_spark, loaded=Loaded(tables=TABLES))

    errors = [error for error in report.problems if isinstance(error, ContractError)]
    assert [(error.file, error.path) for error in errors] == [(str(file), "customProperties[1].value")]
    assert report.problems == errors, "tables over a topic that is reported are no further errors"
    names = ", ".join(table.name for table in TABLES)
    assert [one.what for one in report.warnings] == [f"not checked, for what they read is wrong: {names}"]
    assert not report.ok


@pytest.mark.parametrize("name", ["orders-v2.avsc", "orders.v02.avsc", "Orders.v2.avsc", "orders.v2.json"])
def test_a_schema_whose_name_nobody_reads_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=()))
    shutil.copy(project / "schemas/orders.v1.avsc", project / "schemas" / name)

    report = check([project_in(project)], _no_spark)

    assert [problem.file for problem in report.problems] == [str(project / "schemas" / name)]


def test_tables_contracts_and_files_that_do_not_match_are_reported(
    project: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "contracts" / "sales_per_region.yaml").rename(project / "contracts" / "odd.yaml")
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=(SALES,)))

    report = check([project_in(project)], lambda: spark)

    text = "\n".join(str(problem) for problem in report.problems)
    assert "there is no topic and no table of this name" in text
    assert "sales_per_region" in [table["name"] for table in report.tables], "a table needs no contract"


def test_what_a_table_s_contract_says_and_its_definition_contradicts_is_reported(
    project: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "contracts" / "sales_per_region.yaml").write_text(
        "schema: [{properties: [{name: amounts}, {name: region, logicalTypeOptions: {minimum: 1}}]}]"
    )
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=(SALES,)))

    report = check([project_in(project)], lambda: spark)

    (problem,) = [one for one in report.problems if isinstance(one, DefinitionError)]
    assert "it promises amounts, which is not a column" in str(problem)
    assert "the rule below_minimum of region is for a number, and it is string" in str(problem)


def test_a_view_that_its_contract_does_not_promise_is_reported_with_the_definition_s_line(
    spark: SparkSession,
) -> None:
    report = Report()
    contract = load_topic("orders", OURS).contract

    sales = replace(SALES, place=SALES.place)
    check_table(sales, {"orders": load_topic("orders", OURS)}, contract, report, Sound(lambda: spark))

    problem = report.problems[0]
    assert isinstance(problem, DefinitionError) and problem.file == "jobs/tables/sales_per_region.py"
    assert problem.line > 1 and "promises event_id string" in str(problem)


def test_an_expression_that_can_raise_is_warned_of_with_its_line_and_what_to_write(
    spark: SparkSession,
) -> None:
    report = Report()
    table = replace(SALES, columns={**SALES.columns, "amount": "1 / amount"}, place=SALES.place)

    check_table(table, {"orders": load_topic("orders", OURS)}, None, report, Sound(lambda: spark))

    (warning,) = report.warnings
    assert report.ok and report.to_json()["warnings"] == [findings.to_json(warning)]
    assert isinstance(warning, DefinitionError) and warning.file == "jobs/tables/sales_per_region.py"
    assert warning.line > 1 and warning.why_text == (
        "column amount: the table stops for ever at a record for which the divisor is 0"
    )
    assert warning.remedy == "write try_divide(a, b) or a / nullif(b, 0)"
