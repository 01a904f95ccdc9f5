"""What is read of a project's tables is what its files say now, or the reason why that cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.project import EXAMPLES, OURS, PROJECT, TABLES, example_of
from twinlake.base.errors import UsageError
from twinlake.config.project import Project
from twinlake.definitions import load_in_subprocess as module
from twinlake.definitions.load_in_subprocess import written


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project of its own, whose definitions may be changed."""
    shutil.copytree(PROJECT / "jobs", tmp_path / "jobs", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "twinlake.toml").write_text("[project]\n")
    return Project.load(tmp_path)


def test_it_is_what_the_projects_define() -> None:
    assert written(OURS).definitions == {table.name: table.to_json() for table in TABLES}
    assert set(written(OURS, example_of("cards")).definitions) == {
        table.name for table in (*TABLES, *EXAMPLES["cards"])
    }


def test_a_change_of_the_files_is_seen_at_once(project: Project) -> None:
    before = written(project).definitions
    file = project.tables / "sales_per_region.py"
    file.write_text(file.read_text().replace('name="sales_per_region"', 'name="sales_here"'))

    after = written(project).definitions

    assert {*before} - {*after} == {"sales_per_region"} and {*after} - {*before} == {"sales_here"}


def test_files_that_are_called_as_modules_of_python_or_of_twinlake_do_no_harm(project: Project) -> None:
    for name in ("select.py", "typing.py", "twinlake.py", "yaml.py"):
        (project.root / name).write_text("raise RuntimeError('this is another one')\n")

    assert "orders" in written(project).definitions


def test_what_a_definition_prints_does_no_harm(project: Project) -> None:
    file = project.tables / "orders.py"
    file.write_text(f"{file.read_text()}\nprint('made')\n")

    assert "orders" in written(project).definitions


def test_a_definition_that_is_wrong_is_named_with_its_line_beside_the_others(project: Project) -> None:
    (project.tables / "orders.py").write_text("TABLE = 1 / 0\n")

    found = written(project)

    (error,) = found.wrong
    assert error.what.startswith("jobs/tables/orders.py:1: ") and "division by zero" in error.what
    assert sorted(found.definitions) == ["latest_order", "sales_per_region"]


def test_a_definition_that_ends_the_process_ends_only_that_one(project: Project) -> None:
    (project.tables / "orders.py").write_text("import os\nos._exit(3)\n")

    with pytest.raises(UsageError, match="jobs/tables cannot be read") as refused:
        written(project)

    assert "exit code 3" in refused.value.why


def test_a_definition_that_does_not_end_is_given_up(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.tables / "orders.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(module, "LIMIT_S", 1.0)

    with pytest.raises(UsageError, match="jobs/tables cannot be read") as refused:
        written(project)

    assert "longer than 1 s" in refused.value.why
