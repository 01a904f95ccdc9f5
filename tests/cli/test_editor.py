"""`twinlake editor-schemas` writes what docs/editor holds, for whom has no checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.project import PROJECT
from tests.unit_tests.small_project import project_of
from twinlake.cli.app import build_app
from twinlake.cli.editor import schemas

KEPT = PROJECT / "docs" / "editor"


def test_the_schemas_of_the_docs_are_what_the_code_makes(tmp_path: Path) -> None:
    """`twinlake editor-schemas docs/editor` brings them up to date."""
    done = CliRunner().invoke(build_app(), ["editor-schemas", str(tmp_path / "made")])

    assert done.exit_code == 0, done.output
    made = {path.name: json.loads(path.read_text()) for path in (tmp_path / "made").iterdir()}
    assert made == {path.name: json.loads(path.read_text()) for path in KEPT.iterdir()}
    assert made.keys() == schemas().keys()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = CliRunner().invoke(build_app(), ["editor-schemas", str(tmp_path / "file" / "in")])

    assert "cannot be written" in str(done.exception)


@pytest.mark.usefixtures("environment")
def test_a_file_that_is_wrong_now_takes_nothing_away(tmp_path: Path) -> None:
    project_of(tmp_path, {})
    made = tmp_path / "made"
    arguments = ["--project", str(tmp_path), "editor-completions", str(made)]
    first = CliRunner().invoke(build_app(), arguments)
    before = json.loads((made / "twinlake.completions.json").read_text())
    (tmp_path / "jobs" / "tables" / "pages.py").write_text("TABLE = (\n")

    broken = CliRunner().invoke(build_app(), arguments)

    assert (first.exit_code, broken.exit_code) == (0, 1), broken.output
    assert json.loads((made / "twinlake.completions.json").read_text()) == before
    assert before["tables"]["pages"]


@pytest.mark.usefixtures("environment")
def test_columns_and_measures_are_completed_by_their_types(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        build_app(), ["--project", str(PROJECT), "editor-completions", str(tmp_path / "made")]
    )

    assert done.exit_code == 0, done.output
    data = json.loads((tmp_path / "made" / "twinlake.completions.json").read_text())
    assert {"name": "amount", "type": "decimal(12,2)"} in data["topics"]["orders"]
    assert {"name": "sales", "type": "decimal(38,2)"} in data["tables"]["sales_per_region"]
    summed = data["measures"]["Sum"]["columns"]
    assert "amount" in summed and "region" not in summed
    assert "region" in data["measures"]["TopK"]["columns"] and "upper" in data["functions"]
    made = json.loads((tmp_path / "made" / "twinlake.code-snippets").read_text())
    assert made["topic orders.amount"]["body"] == "amount"
    assert made["Sum"]["body"].startswith('Sum("${1|order_id,amount,') and made["Count"]["body"] == "Count()"
    assert made["Histogram"]["body"].endswith('|}", edges=${2:(0, 10, 100)})')
    assert all({"scope", "prefix", "body", "description"} == one.keys() for one in made.values())
