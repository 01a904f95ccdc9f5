"""`twinlake test`: what it prints, and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.unit_tests.small_project import CASES, project_of
from twinlake.base.errors import NotFoundError, UnreachableError, UsageError
from twinlake.cli.app import build_app

pytestmark = pytest.mark.usefixtures("environment")
FILE = "jobs/tables/pages.test.yaml"


def asked(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["--project", str(project), "test", *arguments])


def test_a_project_whose_cases_pass(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES})

    done = asked(tmp_path)

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("passed  pages: two visits are counted (")
    assert done.stderr.startswith("1 passed in ")


@pytest.mark.parametrize("name", ["pages.test.yaml", "pages.py"])
def test_a_table_is_named_by_its_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    project_of(tmp_path, {FILE: CASES})
    monkeypatch.chdir(tmp_path / "jobs" / "tables")

    assert asked(tmp_path, name).exit_code == 0
    with pytest.raises(NotFoundError, match="no test file of this project"):
        raise asked(tmp_path, f"no/{name}").exception  # type: ignore[misc]


def test_a_case_that_fails_is_exit_code_1(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES.replace("visits: 2", "visits: 3")})

    done = asked(tmp_path, "pages")

    assert done.exit_code == 1, done.output
    assert "FAILED  pages: two visits are counted" in done.stdout
    assert "pages.test.yaml:3\n" in done.stdout and "> visits        3" in done.stdout
    assert done.stderr.startswith("0 passed, 1 failed in ")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({FILE: CASES.replace("visits: 2", "visit: 2")}, "did you mean visits?"),
        ({FILE: CASES.replace("rows:", "row:")}, "did you mean rows?"),
        ({FILE: CASES, "jobs/tables/page.test.yaml": CASES}, "there is no table page; did you mean pages"),
        ({"jobs/tables/more/pages.test.yml": CASES}, "its name ends in .test.yml"),
        ({FILE: CASES, "jobs/tables/more/pages.test.yaml": CASES}, "table pages has another test file"),
        ({FILE: CASES, "jobs/tables/pages.py": "TABLE = 1"}, "TABLE is a int, not a definition"),
        ({FILE: CASES, "contracts/visits.yaml": "name: x"}, "contracts/visits.yaml"),
    ],
    ids=["column", "key", "no such table", "yml", "two files", "definition", "contract"],
)
def test_a_mistake_is_exit_code_2(tmp_path: Path, files: dict[str, str], why: str) -> None:
    project_of(tmp_path, files)

    done = asked(tmp_path)

    assert done.exit_code == 2, done.output
    assert why in done.stderr and " wrong in " in done.stderr


@pytest.mark.parametrize("arguments", [(), ("-k", "elsewhere")])
def test_nothing_to_run_is_exit_code_5(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    project_of(tmp_path, {FILE: CASES} if arguments else {})

    done = asked(tmp_path, *arguments)

    assert done.exit_code == 5
    assert done.stderr.startswith("there is nothing to run")


def test_a_part_of_the_name_chooses(tmp_path: Path) -> None:
    other = CASES.replace("two visits are counted", "nothing").replace("cases:\n", "")
    project_of(tmp_path, {FILE: CASES + other})

    done = asked(tmp_path, "-k", "TWO")

    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 1


def test_a_table_that_is_not_defined(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES})

    done = asked(tmp_path, "page")

    assert done.exception is not None and getattr(done.exception, "exit_code", None) == 2
    assert "did you mean pages?" in str(done.exception)


def test_the_outcomes_as_junit_s_xml(tmp_path: Path) -> None:
    other = CASES.replace("two visits are counted", "wrong").replace("visits: 2", "visits: 3")
    mistaken = CASES.replace("two visits are counted", "mistaken").replace("visits: 2", "visit: 2")
    bodies = "".join(one.replace("cases:\n", "") for one in (other, mistaken))
    project_of(tmp_path, {FILE: CASES + bodies, "jobs/tables/none.test.yaml": CASES})

    done = asked(tmp_path, "--junit", str(tmp_path / "report.xml"))

    assert done.exit_code == 2, done.output
    (suite,) = ElementTree.parse(tmp_path / "report.xml").getroot()
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "2", "skipped": "0"}
    said = {case.get("name"): [one.tag for one in case] for case in suite}
    assert said == {
        "two visits are counted": [], "wrong": ["failure"], "mistaken": ["error"], "file 1": ["error"]
    }  # fmt: skip
    (failure,) = suite.findall("testcase/failure")
    assert "> visits        3" in (failure.text or "")


def test_to_record_a_case_a_lake_has_to_run(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES})

    done = asked(tmp_path, "--record", "pages", "--keys", "page=home")

    assert isinstance(done.exception, UnreachableError), done.exception
    assert (tmp_path / FILE).read_text() == CASES


def test_a_folder_is_no_file_for_junit(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES})

    done = asked(tmp_path, "--junit", str(tmp_path))

    assert isinstance(done.exception, UsageError) and "it is a folder" in done.exception.why
    assert "passed" not in done.output


def test_a_contract_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    project_of(tmp_path, {FILE: CASES, "contracts/visits.yaml": "name: [\n"})

    done = asked(tmp_path)

    assert "contracts/visits.yaml" in done.output and "cannot be read as YAML" in done.output
    assert "there is no topic" not in done.output


def test_watch_runs_again_once_a_file_has_changed(tmp_path: Path) -> None:
    project = project_of(tmp_path, {FILE: CASES})
    command = [sys.executable, "-m", "twinlake", "--project", str(tmp_path), "test", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as watching:
        try:
            assert watching.stdout is not None
            first = watching.stdout.readline()
            (project.tables / "pages.test.yaml").write_text(CASES.replace("visits: 2", "visits: 3"))
            second = watching.stdout.readline()
        finally:
            watching.kill()

    assert first.startswith("passed  pages: ") and second.startswith("FAILED  pages: ")
