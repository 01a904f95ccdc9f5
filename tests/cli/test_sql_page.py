"""docs/sql.md: its example is right at once in a new project, and its tables name what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.project import PROJECT
from twinlake.cli.app import build_app
from twinlake.config.project import Project
from twinlake.definitions.loader import load
from twinlake.kinds.all import KINDS
from twinlake.kinds.kind import Kind
from twinlake.kinds.sql_form import fields, writing
from twinlake.kinds.sql_form.reading import SAID_BY_SQL

PAGE = (PROJECT / "docs" / "sql.md").read_text()
BLOCKS = re.findall(r"^```(?:sql|yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.usefixtures("environment")


def asked(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["--project", str(folder), *arguments])


def test_its_example_and_what_reads_it_are_right_in_a_new_project(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    assert CliRunner().invoke(build_app(), ["new", "project", str(folder)]).exit_code == 0
    hours, test, _, longest = BLOCKS
    tables = Project.load(folder).tables
    (tables / "page_hours.sql").write_text(hours)
    (tables / "page_hours.test.yaml").write_text(test)
    (tables / "longest.sql").write_text(longest)

    checked, tested = asked(folder, "check"), asked(folder, "test", "page_hours")

    assert checked.exit_code == 0, checked.output
    assert "table longest: derived of page_hours" in checked.stdout
    assert tested.exit_code == 0 and "people who stay are counted once" in tested.output, tested.output
    assert {one.name: one.kind for one in load(Project.load(folder)).sound()} == {
        "longest": "derived", "page_hours": "aggregate", "visits_per_page": "aggregate",
    }  # fmt: skip


@pytest.mark.parametrize("kind", SAID_BY_SQL, ids=lambda kind: kind.kind)
def test_every_kind_and_every_key_on_top_is_in_its_tables(kind: type[Kind]) -> None:
    row = next((line for line in PAGE.splitlines() if line.startswith(f"| `{kind.__name__}` | `")), "")

    assert f"[`{kind.__name__}`](definitions.md#{kind.__name__.lower()})" in PAGE
    assert set(re.findall(r"`([\w.]+)`", row)) - {kind.__name__} == set(
        fields.keys(kind, SAID_BY_SQL[kind])  # type: ignore[arg-type]
    )


def test_the_kinds_without_a_form_are_named() -> None:
    (line,) = (line for line in PAGE.splitlines() if line.startswith("The other kinds ("))

    named = set(re.findall(r"`(\w+)`", line))
    assert named == {one.__name__ for one in KINDS.values() if one.kind not in writing.KINDS}
