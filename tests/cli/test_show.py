"""`twinlake show`: a table's file can be replaced by what is shown of it in the other form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.project import EXAMPLES, PROJECT, project_in
from tests.unit_tests.small_project import CASES, PAGES, project_of
from twinlake.base.errors import DefinitionError, NotFoundError, TwinlakeError, UsageError
from twinlake.cli.app import build_app
from twinlake.cli.watch import seen
from twinlake.definitions.load_in_subprocess import written
from twinlake.definitions.loader import load
from twinlake.kinds.sql_form.writing import as_json, plain

pytestmark = pytest.mark.usefixtures("environment")
TABLES = Path("jobs") / "tables"
PAGES_SQL = """\
-- Visits of pages.
SELECT page, count(*) AS visits, avg(seconds) AS seconds, sum(cents) AS cents
FROM visits
GROUP BY page, tumble(at, '1 minute')
"""
UNION = """
from twinlake import Union

TABLE = Union(name="both", of=("pages", "others"))
"""


def asked(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["--project", str(folder), *arguments])


def refused(folder: Path, *arguments: str) -> TwinlakeError:
    found = asked(folder, "show", *arguments).exception
    assert isinstance(found, TwinlakeError), found
    return found


def test_a_file_is_replaced_by_its_other_form_and_back_and_nothing_has_changed(tmp_path: Path) -> None:
    text = PAGES.replace("\nfrom", '"""Visits: of \\"pages\\".\n\nAs \\\\ they are."""\n\nfrom', 1)
    project = project_of(tmp_path, {"jobs/tables/pages.py": text})
    before = load(project).sound()[0]

    in_sql = asked(tmp_path, "show", "pages", "--sql").stdout
    (project.tables / "pages.py").unlink()
    (project.tables / "pages.sql").write_text(in_sql)
    after = load(project).sound()[0]
    in_python = asked(tmp_path, "show", "pages", "--python").stdout
    again = asked(tmp_path, "show", "pages", "--sql").stdout
    (project.tables / "pages.sql").unlink()
    (project.tables / "pages.py").write_text(in_python)

    assert in_sql == '-- Visits: of "pages".\n--\n-- As \\ they are.\n' + PAGES_SQL.split("\n", 1)[1] == again
    assert as_json(before) == as_json(after) == as_json(load(project).sound()[0])
    assert written(project).definitions == {"pages": before.to_json()}
    assert in_python.startswith("'Visits: of \"pages\".\\n\\nAs \\\\ they are.'\n")


@pytest.mark.parametrize("form", ["--sql", "--python"])
@pytest.mark.parametrize("example", ["inventory", "trucks", "users"])
def test_every_table_of_an_example_is_shown_in_both_forms(tmp_path: Path, example: str, form: str) -> None:
    ending = form.replace("--python", "--py").replace("--", ".")
    folder = tmp_path / TABLES
    folder.mkdir(parents=True)
    for table in EXAMPLES[example]:
        shown = asked(PROJECT / "examples" / example, "show", table.name, form)
        assert shown.exit_code == 0, shown.output
        (folder / f"{table.name}{ending}").write_text(shown.stdout)
    (tmp_path / "twinlake.toml").write_text("[project]\n")

    found = {one.name: one for one in written(project_in(tmp_path)).loaded().sound()}

    assert {name: as_json(plain(one)) for name, one in found.items()} == {
        one.name: as_json(plain(one)) for one in EXAMPLES[example]
    }


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("pages",), "a definition is shown in one form"),
        (("pages", "--sql", "--python"), "a definition is shown in one form"),
        (("both", "--sql"), "table both has no form in SQL"),
    ],
)
def test_what_cannot_be_shown_is_refused(tmp_path: Path, arguments: tuple[str, ...], what: str) -> None:
    project_of(tmp_path, {"jobs/tables/both.py": UNION})

    found = refused(tmp_path, *arguments)

    assert isinstance(found, UsageError) and found.what == what and found.remedy


def test_a_table_that_is_not_there_is_refused_with_the_nearest_and_a_wrong_one_with_its_error(
    tmp_path: Path,
) -> None:
    project_of(tmp_path, {"jobs/tables/wrong.sql": "SELECT\n  * FROM visits"})

    missing, wrong = refused(tmp_path, "page", "--sql"), refused(tmp_path, "wrong", "--python")

    assert isinstance(missing, NotFoundError) and "did you mean pages?" in missing.what
    assert isinstance(wrong, DefinitionError) and (wrong.line, wrong.column) == (2, 3)


def test_the_commands_around_a_definition_know_one_in_sql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_of(tmp_path, {"jobs/tables/pages.test.yaml": CASES})
    (project.tables / "pages.py").unlink()
    file = project.tables / "pages.sql"
    file.write_text(PAGES_SQL)
    monkeypatch.chdir(project.tables)

    assert asked(tmp_path, "test", "pages.sql").stdout.startswith("passed  pages: two visits are counted (")
    assert "pages is right" in asked(tmp_path, "dev", "pages", "--once").output
    assert "table pages: aggregate of visits" in asked(tmp_path, "check").stdout
    assert file in seen([project])

    file.write_text(PAGES_SQL.replace("avg(seconds)", "avg(secnods)"))
    report = json.loads(asked(tmp_path, "check", "--json").stdout)
    (problem,) = report["problems"]
    assert (Path(problem["file"]).name, problem["line"], problem["column"]) == ("pages.sql", 2, 38)
    assert "did you mean seconds?" in problem["why"]
    developed = asked(tmp_path, "dev", "pages", "--once")
    assert "pages.sql:2:38: " in developed.stdout and developed.exit_code != 0
