"""`twinlake diff --sample --records-from`: a change is judged over records in files, against a commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.json_shapes import wrong
from tests.git import commit_all, git
from tests.unit_tests.small_project import CASES, PAGES, VISITS, project_of
from twinlake.base.errors import ContractError, DefinitionError, NotFoundError, UsageError
from twinlake.cli.app import build_app
from twinlake.cli.sample_comment import MARKER
from twinlake.cli.shapes.sampled import SAMPLED

TABLE, CONTRACT = "jobs/tables/pages.py", "contracts/visits.yaml"
SLOW = PAGES.replace('keys=("page",),', 'keys=("page",),\n    where="seconds >= 10",')
TOTALS = """
from twinlake import Derived

TABLE = Derived(
    name="totals",
    reads=("pages",),
    columns=("page", "visits"),
    keys=("page",),
    by=("page",),
    sql="SELECT page, sum(visits) AS visits FROM pages GROUP BY page",
)
"""
RECORDS = """\
{"id": "a", "page": "home", "seconds": 5, "cents": 5, "at": "2026-01-31T12:00:00Z"}
{"id": "b", "page": "home", "seconds": 20, "cents": 6, "at": "2026-01-31T12:00:30Z"}
{"id": "b", "page": "home", "seconds": 20, "cents": 6, "at": "2026-01-31T12:00:30Z"}
{"id": "c", "page": "docs", "seconds": 30, "cents": 7, "at": "2026-01-31T12:01:00Z"}
{"id": "d", "page": "news", "seconds": 1, "cents": 5.5, "at": "2026-01-31T12:01:10Z"}
"""
pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two tables and the records of their topic."""
    folder = tmp_path / "shop"
    files = {
        "samples/visits.jsonl": RECORDS,
        "jobs/tables/totals.py": TOTALS,
        "jobs/tables/pages.test.yaml": CASES,
    }
    project_of(folder, files)
    commit_all(folder)
    monkeypatch.chdir(folder)
    return folder


def diff(*arguments: str, tables: str = "*") -> Result:
    asked = ["diff", "--sample", tables, "--records-from", "samples", *arguments]
    return CliRunner().invoke(build_app(), asked)


def test_a_condition_that_is_added_is_shown_with_what_it_does_and_of_how_much(project: Path) -> None:
    (project / TABLE).write_text(SLOW)
    commit = git(project, "rev-parse", "HEAD")[:12]

    done = diff(tables="pages")

    assert done.exit_code == 1, done.output
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        f"pages against commit {commit}, over 5 records of files: different",
        "    visits: 5 records, 2026-01-31T12:00:00Z to 2026-01-31T12:01:10Z",
        "    where: nothing -> seconds >= 10",
        "  in this sample 1 rows the same, 1 changed, 1 only before, 0 only now",
        "column   rows changed  total before  total now",
        "visits   1             4             2",
        "seconds  1",
        "cents    1             23.50         13.00",
        "  changed: page=home, window_start=2026-01-31T12:00:00Z; visits 2 -> 1, seconds 12.5 -> 20.0,"
        " cents 11.00 -> 6.00",
        "  only before: page=news, window_start=2026-01-31T12:01:00Z",
        "  It is what the records of samples/visits.jsonl show: how many rows of a lake change is not known.",
        "  Not all of them are valid by their contracts: 1 duplicate.",
        "  A window that began before the sample has its sampled records alone, in both versions.",
    ]
    assert git(project, "status", "--porcelain") == f"M {TABLE}"


def test_what_reads_a_changed_table_is_changed_and_a_pattern_leaves_out_the_rest(project: Path) -> None:
    other = TOTALS.replace('"totals"', '"others"').replace("sum(visits)", "max(visits)")
    (project / "jobs/tables/others.py").write_text(
        other.replace('"pages"', '"others_of"').replace("FROM pages", "FROM others_of")
    )
    (project / "jobs/tables/others_of.py").write_text(PAGES.replace('name="pages"', 'name="others_of"'))
    commit_all(project)
    (project / TABLE).write_text(SLOW)

    printed = json.loads(diff("--json").stdout)

    assert wrong(SAMPLED, printed) == []
    assert {one["table"]: one["why"] for one in printed["compared"]} == {
        "pages": ["where: nothing -> seconds >= 10"],
        "totals": ["table pages.where: nothing -> seconds >= 10"],
    }
    totals = printed["compared"][1]["comparison"]
    assert (totals["common"], totals["changed"], totals["only_blue"]) == (2, 1, 1)
    assert [printed[name] for name in ("equal", "refused", "new", "removed")] == [False, {}, [], []]


def test_words_alone_change_nothing_and_another_text_of_the_same_meaning_no_row(project: Path) -> None:
    commit = git(project, "rev-parse", "HEAD")[:12]
    (project / TABLE).write_text(f'"""Words."""\n{PAGES}')
    unchanged, named = diff(), diff(tables="pages")
    (project / TABLE).write_text(PAGES.replace('"seconds": "seconds"', '"seconds": "seconds * 2 / 2"'))
    same = diff()

    assert (unchanged.exit_code, unchanged.stdout) == (0, f"no definition differs from commit {commit}\n")
    assert named.exit_code == 0 and "pages: it means what commit" in named.stdout
    assert same.exit_code == 0 and "over 5 records of files: equal" in same.stdout


def test_doubles_are_equal_as_far_as_what_was_added_up_lets_them(project: Path) -> None:
    """Where large ones cancel, the average alone is no measure of how near two of them are."""
    seconds = (1e9, -1e9, 0.3)
    rows = [
        {"id": f"x{number}", "page": "a", "cents": 5, "seconds": one, "at": "2026-01-31T12:00:00Z"}
        for number, one in enumerate(seconds)
    ]
    (project / "samples/visits.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (project / TABLE).write_text(PAGES.replace('"seconds": "seconds"', '"seconds": "seconds + 0.1D - 0.1D"'))
    near = diff(tables="pages")
    (project / TABLE).write_text(PAGES.replace('"seconds": "seconds"', '"seconds": "seconds + 30D"'))
    far = diff(tables="pages")

    assert sum(one + 0.1 - 0.1 for one in seconds) != sum(seconds)
    assert (near.exit_code, far.exit_code) == (0, 1), near.output


def test_a_contract_that_refuses_more_is_a_change_of_the_tables_of_its_topic(project: Path) -> None:
    (project / CONTRACT).write_text(VISITS.replace("maximum: 7", "maximum: 6"))

    (pages, totals) = json.loads(diff("--json").stdout)["compared"]

    assert pages["why"] == totals["why"] == ["topic visits.rules.cents above_maximum: 7 -> 6"]
    assert pages["comparison"]["only_blue"] == 1
    verdicts = "4 valid, 1 duplicate before, 3 valid, 1 duplicate, 1 invalid now"
    assert f"The contracts give them other verdicts: {verdicts}." in pages["limits"]


def test_a_field_that_is_required_from_now_on_is_missing_where_it_was_missing_before(project: Path) -> None:
    (project / "samples/visits.jsonl").write_text(RECORDS.replace('"seconds": 1, ', ""))
    required = "{name: seconds, required: true,"
    (project / CONTRACT).write_text(VISITS.replace("{name: seconds,", required))

    (pages,) = json.loads(diff("--json", tables="pages").stdout)["compared"]

    assert pages["comparison"]["only_blue"] == 1 and pages["comparison"]["changed"] == 0
    verdicts = "4 valid, 1 duplicate before, 3 valid, 1 duplicate, 1 invalid now"
    assert f"The contracts give them other verdicts: {verdicts}." in pages["limits"]


def test_a_folder_is_no_file_of_one_topic(project: Path) -> None:
    asked = ["diff", "--sample", "*", "--records-from", "visits=samples"]

    refused = CliRunner().invoke(build_app(), asked).exception

    assert isinstance(refused, NotFoundError) and refused.why == "samples is a folder, and no file"


def test_a_column_that_is_added_to_the_topic_is_not_there_before(project: Path) -> None:
    added = "      - {name: site, logicalType: string, physicalType: string}\n      - {name: seconds,"
    (project / CONTRACT).write_text(VISITS.replace("      - {name: seconds,", added))
    (project / "samples/visits.jsonl").write_text(RECORDS.replace('"page"', '"site": "shop", "page"'))
    by_site = PAGES.replace("columns={", 'columns={"site": "site", ').replace(
        'keys=("page",)', 'keys=("page", "site")'
    )
    (project / TABLE).write_text(by_site)

    done = diff("--json", tables="pages")

    (pages,) = json.loads(done.stdout)["compared"]
    assert done.exit_code == 1 and pages["comparison"]["keys"] == ["page", "site", "window_start"]
    assert (pages["comparison"]["only_blue"], pages["comparison"]["only_green"]) == (3, 3)


def test_what_the_second_engine_does_not_evaluate_is_named_and_ends_with_3(project: Path) -> None:
    (project / TABLE).write_text(PAGES.replace('"page": "page"', '"page": "soundex(page)"'))
    now = diff(tables="pages")
    commit_all(project)
    (project / TABLE).write_text(PAGES)
    before = diff(tables="pages")

    why = "what it shows is not known: {}soundex(page) (the function soundex is not listed)"
    assert (now.exit_code, now.stdout) == (3, f"pages: {why.format('')}\n")
    assert (before.exit_code, before.stdout) == (3, f"pages: {why.format('as it was before: ')}\n")


def test_tables_that_one_side_alone_has_are_named(project: Path) -> None:
    (project / "jobs/tables/totals.py").unlink()
    (project / "jobs/tables/sums.py").write_text(TOTALS.replace('"totals"', '"sums"'))

    done = diff()

    assert (done.exit_code, done.stdout.splitlines()) == (
        0, ["sums: it is new, there is nothing to compare it with", "totals: its definition is gone"]
    )  # fmt: skip


def test_before_the_first_commit_with_a_project_every_table_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "README").write_text("soon")
    commit_all(tmp_path)
    project_of(tmp_path, {"samples/visits.jsonl": RECORDS})
    monkeypatch.chdir(tmp_path)

    assert json.loads(diff("--json").stdout)["new"] == ["pages"]


def test_a_topic_without_records_is_named(project: Path) -> None:
    (project / "contracts/orders.yaml").write_text(
        VISITS.replace("id: visits", "id: orders").replace("name: visits", "name: orders")
    )
    (project / "samples/orders.jsonl").write_text(RECORDS)
    (project / "samples/visits.jsonl").unlink()
    (project / TABLE).write_text(SLOW)

    (pages, _) = json.loads(diff("--json").stdout)["compared"]

    assert pages["limits"][:2] == [
        "It has no records at all: name files of them.",
        "There are no records of visits: what those would add is not seen.",
    ]


def test_a_definition_that_was_wrong_before_is_not_compared_and_one_that_is_wrong_now_is_an_error(
    project: Path,
) -> None:
    (project / TABLE).write_text("TABLE = 1\n")
    commit_all(project)
    (project / TABLE).write_text(PAGES)
    before = diff()
    (project / TABLE).write_text("TABLE = 1\n")
    now = diff()

    assert (
        before.exit_code == 3
        and f"pages: what it shows is not known: as it was before: {TABLE}:1" in before.stdout
    )
    assert isinstance(now.exception, DefinitionError) and f"{TABLE}:1" in now.exception.what


def test_a_contract_that_was_wrong_before_is_said(project: Path) -> None:
    (project / CONTRACT).write_text(VISITS.replace("value: json", "value: jsno"))
    commit_all(project)
    broken = diff(tables="pages").exception
    (project / CONTRACT).write_text(VISITS)

    repaired = diff(tables="pages")

    assert isinstance(broken, ContractError)
    assert (
        repaired.exit_code == 3 and "pages: what it shows is not known: as it was before: " in repaired.stdout
    )


def test_the_comment_has_the_unit_tests_that_fail(project: Path) -> None:
    (project / TABLE).write_text(SLOW)

    done = diff("--format", "markdown")

    assert done.exit_code == 1 and done.stdout.startswith(
        f"{MARKER}\n## Tables: <code>pages</code>, <code>totals</code>"
    )
    assert "**Unit tests** of these tables: 0 passed, **1 failed**" in done.stdout
    assert "rows: 1 expected, 0 got, 1 of them differ" in done.stdout


@pytest.mark.parametrize(
    ("tables", "arguments", "error", "what"),
    [
        ("pagse", (), NotFoundError, "there is no table 'pagse'; did you mean pages?"),
        ("pages,", (), UsageError, "--sample has an empty name"),
        ("pages", ("--against", "nope"), NotFoundError, "git has no commit 'nope' here"),
        ("pages", ("--records", "5"), UsageError, "--records-from and --records were given"),
        ("pages", ("--keys", "5"), UsageError, "--records-from and --keys were given"),
        ("pages", ("--key", "k"), UsageError, "--records-from and --key were given"),
        ("pages", ("--format", "html"), UsageError, "--format html is no format"),
        ("pages", ("--format", "markdown", "--json"), UsageError, "--json and --format were given"),
        ("pages", ("--table", "pages"), UsageError, "--sample and --table were given"),
        ("pages", ("abc",), UsageError, "--sample and the plan 'abc' were given"),
        ("page?z", (), NotFoundError, "no table has a name like 'page?z'; did you mean pages?"),
        ("*", ("--records-from", "visits="), NotFoundError, "no records can be read from visits="),
    ],
)  # fmt: skip
def test_what_makes_no_sense_together_is_refused(
    project: Path, tables: str, arguments: tuple[str, ...], error: type, what: str
) -> None:
    refused = diff(*arguments, tables=tables).exception

    assert isinstance(refused, error) and refused.what == what and refused.exit_code == 2
