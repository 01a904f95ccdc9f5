"""pytest finds test files by the entry point of the package: nothing in the project says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit_tests.small_project import CASES, project_of

FILE = "jobs/tables/pages.test.yaml"


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_each_case_is_a_test(tmp_path: Path) -> None:
    wrong = (
        CASES.replace("two visits", "three visits").replace("visits: 2", "visits: 3").replace("cases:\n", "")
    )
    project_of(tmp_path, {FILE: CASES + wrong, "elsewhere.test.yaml": "no test of a table"})

    done = ran(tmp_path, "-v")

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{FILE}::two visits are counted PASSED" in done.stdout
    assert f"{FILE}::three visits are counted FAILED" in done.stdout
    assert "> visits        3" in done.stdout and "Traceback" not in done.stdout
    assert "elsewhere" not in done.stdout


def test_a_mistake_in_a_file_fails_and_other_tests_run(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES.replace("rows:", "row:")})
    (tmp_path / "test_other.py").write_text("def test_other(): ...\n")

    done = ran(tmp_path)

    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout
    assert "pages.test.yaml:8:5: a case has no 'row'; did you mean rows?" in done.stdout


def test_a_file_that_is_misnamed_fails(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE.replace(".yaml", ".yml"): CASES})

    done = ran(tmp_path)

    assert done.returncode == 1 and "its name ends in .test.yml" in done.stdout
