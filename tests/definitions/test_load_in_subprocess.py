"""What is read of jobs/tables is what its files say now, or the reason why that cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from twinlake.base.errors import DefinitionError, UsageError
from twinlake.config.settings import PROJECT
from twinlake.definitions import load_in_subprocess as module
from twinlake.definitions.load_in_subprocess import written
from twinlake.definitions.loader import defined


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own, whose definitions may be changed."""
    for folder in ("jobs", "twinlake"):
        ignored = shutil.ignore_patterns("__pycache__", "java")
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=ignored)
    return tmp_path


def test_it_is_what_the_project_defines() -> None:
    assert written(PROJECT, ()) == {table.name: table.to_json() for table in defined()}
    assert set(written(PROJECT, ("cards",))) == {table.name for table in defined(("cards",))}


def test_a_change_of_the_files_is_seen_at_once(project: Path) -> None:
    before = written(project, ())
    file = project / "jobs/tables/sales_per_region.py"
    file.write_text(file.read_text().replace('name="sales_per_region"', 'name="sales_here"'))

    after = written(project, ())

    assert {*before} - {*after} == {"sales_per_region"} and {*after} - {*before} == {"sales_here"}


def test_what_a_definition_prints_does_no_harm(project: Path) -> None:
    file = project / "jobs/tables/orders.py"
    file.write_text(f"{file.read_text()}\nprint('made')\n")

    assert "orders" in written(project, ())


def test_a_definition_that_is_wrong_is_told_with_its_line(project: Path) -> None:
    (project / "jobs/tables/orders.py").write_text("TABLE = 1 / 0\n")

    with pytest.raises(DefinitionError, match=r"jobs/tables/orders.py:1: .*division by zero"):
        written(project, ())


def test_a_definition_that_ends_the_process_ends_only_that_one(project: Path) -> None:
    (project / "jobs/tables/orders.py").write_text("import os\nos._exit(3)\n")

    with pytest.raises(UsageError, match="jobs/tables cannot be read") as refused:
        written(project, ())

    assert "exit code 3" in refused.value.why


def test_a_definition_that_does_not_end_is_given_up(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "jobs/tables/orders.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(module, "LIMIT_S", 1.0)

    with pytest.raises(UsageError, match="jobs/tables cannot be read") as refused:
        written(project, ())

    assert "longer than 1 s" in refused.value.why
