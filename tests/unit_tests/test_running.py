"""Cases as people write them: what passes, what fails and how that is shown, what is a mistake and where."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.unit_tests.ran import no_spark, outcome, outcomes
from tests.unit_tests.small_project import CASES, PAGES, project_of
from twinlake.unit_tests.project_tests import collect, opened
from twinlake.unit_tests.running import run
from twinlake.unit_tests.source import TestMistake
from twinlake.witness.rows import Evaluator

TWO = """
    records:
      visits:
        - {page: home, at: 2026-01-31T12:00:00Z}
        - {page: home, at: 2026-01-31T12:00:59Z, seconds: 3}
"""
ROW = "{page: home, window_start: 2026-01-31T12:00:00Z, visits: 2"


def test_a_case_passes_by_the_columns_that_it_names(tmp_path: Path) -> None:
    (found,) = outcomes(tmp_path, CASES)

    assert found.passed, found.failure
    assert found.engines and not found.refused


def test_what_is_not_named_is_valid(tmp_path: Path) -> None:
    """An optional field is NULL, a number is between its bounds."""
    found = outcome(tmp_path, f"{TWO}    rows:\n      - {ROW}, seconds: 3, cents: 10}}\n")

    assert found.passed, found.failure


def test_a_wrong_value_is_shown_beside_the_right_one(tmp_path: Path) -> None:
    found = outcome(
        tmp_path, f"{TWO}    rows:\n      - {ROW.replace('visits: 2', 'visits: 12')}, cents: 11}}\n"
    )

    assert found.failure.splitlines() == [
        "rows: 1 expected, 1 got, 1 of them differ",
        "",
        "different (line 9):",
        "                expected              got",
        "  page          home                  home",
        "  window_start  2026-01-31T12:00:00Z  2026-01-31T12:00:00Z",
        "> visits        12                    2",
        "                ^                     ^",
        "! cents         11.00                 10.00",
    ]


def test_a_row_that_is_not_listed_fails(tmp_path: Path) -> None:
    more = TWO + "        - {page: away, at: 2026-01-31T12:00:00Z}\n"

    found = outcome(tmp_path, f"{more}    rows:\n      - {ROW}}}\n")

    assert "rows: 1 expected, 2 got, 1 of them differ" in found.failure
    assert "not expected:" in found.failure and "away" in found.failure


def test_a_row_that_is_not_there_fails(tmp_path: Path) -> None:
    found = outcome(tmp_path, f"{TWO}    rows:\n      - {ROW}}}\n      - {{page: away}}\n")

    assert "missing (line 10):" in found.failure


def test_a_row_meets_one_expected_row_only(tmp_path: Path) -> None:
    """The first one expected could take either row, the second only the one that it would take."""
    more = TWO + "        - {page: away, at: 2026-01-31T12:00:00Z}\n"
    rows = "    rows:\n      - {window_start: 2026-01-31T12:00:00Z}\n      - {page: away}\n"

    assert outcome(tmp_path, more + rows).passed
    assert not outcome(tmp_path, more + rows + "      - {page: home}\n").passed


def test_a_wrong_definition_is_caught(tmp_path: Path) -> None:
    wrong = """
from twinlake import Aggregate, Count, Tumbling

TABLE = Aggregate(
    name="pages", inputs=("visits",), columns={"page": "page", "at": "at"}, keys=("page",),
    window=Tumbling(on="at", size="30 seconds"), measures={"visits": Count()},
)
"""
    (found,) = outcomes(tmp_path, CASES, pages=wrong)

    assert "rows: 1 expected, 2 got, 2 of them differ" in found.failure
    assert "> visits        2                     1" in found.failure


@pytest.mark.parametrize("measure", ["Sum", "Avg"])
def test_a_sum_of_what_is_no_number_is_wrong_without_spark(tmp_path: Path, measure: str) -> None:
    wrong = f"""
from twinlake import Aggregate, {measure}

TABLE = Aggregate(
    name="pages", inputs=("visits",), columns={{"page": "page", "at": "at"}}, keys=("page",),
    measures={{"visits": {measure}("at")}},
)
"""
    (found,) = outcomes(tmp_path, CASES, pages=wrong)

    assert f"measure visits ({measure.lower()} of at): timestamp" in str(found.mistake)


def test_late_of_a_table_without_windows_is_a_mistake(tmp_path: Path) -> None:
    """Such a table has no view of what came late, and Spark is not asked for one."""
    total = """
from twinlake import Aggregate, Count

TABLE = Aggregate(
    name="pages", inputs=("visits",), columns={"page": "page"}, keys=("page",), measures={"visits": Count()},
)
"""
    text = "cases: {a: {records: {}, rows: [], late: []}}"
    with pytest.raises(TestMistake, match=r"yaml:1:36: there is no view pages_late"):
        outcomes(tmp_path, text, pages=total)


def test_an_empty_topic_shows_nothing(tmp_path: Path) -> None:
    assert outcome(tmp_path, "    records: {}\n    rows: []\n").passed


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("cases: {a: {records: {}, rows: [], row: []}}", "1:36", "a case has no 'row'; did you mean rows?"),
        ("case: {}", "1:1", "a test file has no 'case'; did you mean cases?"),
        ("cases: {}", "1:8", "it has no cases"),
        ("", "1:1", "it is empty"),
        ("cases: [", "1:9", "it is not YAML: "),
        ("cases:\n  a: {records: {}, rows: []}\n  a: {}", "3:3", "'a' is given twice"),
        ("cases: {a: {rows: []}}", "1:9", "it gives neither records nor rows of tables"),
        ("cases: {a: {records: {}}}", "1:9", "it does not say which rows are expected"),
        ("cases: {a: {records: {visit: []}, rows: []}}", "1:23", "pages is made of no topic 'visit'"),
        ("cases: {a: {tables: {x: []}, rows: []}}", "1:22", "pages reads no table 'x'"),
        ("cases: !x {}", "1:8", "!x is a tag"),
        ("cases: {a: &x {records: {}, rows: []}, b: *x}", "1:43", "*x is an alias"),
        ("cases: {a: &x {}, b: &x {}}", "1:22", "it is not YAML: found duplicate anchor 'x'"),
        ("cases: {}\n---\ncases: {}", "2:1", "it is not YAML: expected a single document"),
        ("cases: {a: {records: {visits: {}}, rows: []}}", "1:31", "topic visits is a mapping, not a list"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_says_where(tmp_path: Path, text: str, place: str, why: str) -> None:
    with pytest.raises(TestMistake) as refused:
        outcomes(tmp_path, text)

    assert f"pages.test.yaml:{place}: {why}" in refused.value.what


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("{pag: x}", "topic visits has no field 'pag'; did you mean page?"),
        ("{at: 2026-01-31 12:00:00}", "it is neither a date nor RFC 3339 with a zone"),
        ("{cents: 5.001}", "cents is '5.001', which is no decimal(9,2)"),
        ("{cents: much}", "cents is 'much', which is no decimal(9,2)"),
        ("{page: [1]}", "page is a list, and its type is string"),
        ("{_verdict: good}", "there is no verdict 'good'"),
        ("{_reasons: [lost]}", "there is no reason 'lost'"),
        ("{_reasons: ['missing:page']}", "it is expected to be valid, and has reasons why it is not"),
        ("x", "a record is a value, not a mapping"),
    ],
)
def test_a_record_that_is_wrong_says_where(tmp_path: Path, record: str, why: str) -> None:
    found = outcome(tmp_path, f"    records:\n      visits:\n        - {record}\n    rows: []\n")

    assert found.mistake is not None and not found.passed
    assert "pages.test.yaml:5:" in found.mistake.what and why in found.mistake.what + found.mistake.remedy


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{visit: 1}", "table pages has no column 'visit'; did you mean visits?"),
        ("{visits: 1.5}", "visits is '1.5', which is no bigint"),
        ("{window_start: 12:00}", "'12:00' is not a time"),
        ("{}", "it names no column"),
    ],
)
def test_an_expected_row_that_is_wrong_says_where(tmp_path: Path, row: str, why: str) -> None:
    found = outcome(tmp_path, f"    records: {{}}\n    rows:\n      - {row}\n")

    assert found.mistake is not None
    assert "pages.test.yaml:5:" in found.mistake.what and why in found.mistake.what


def test_texts_stay_texts(tmp_path: Path) -> None:
    """YAML alone reads NO as false, 12:30 as 750, and 1.10 as a double."""
    records = "".join(f"        - {{page: {page}}}\n" for page in ("NO", "12:30", "1.10", "0x10", '"null"'))
    rows = "".join(f"      - {{page: {page}}}\n" for page in ("NO", "12:30", "1.10", "0x10", '"null"'))

    assert outcome(tmp_path, f"    records:\n      visits:\n{records}    rows:\n{rows}").passed


def test_long_texts_are_shown_from_where_they_part(tmp_path: Path) -> None:
    records = f"    records:\n      visits:\n        - {{page: {'x' * 100}a}}\n"

    found = outcome(tmp_path, f"{records}    rows:\n      - {{page: {'x' * 100}b, visits: 1}}\n")

    shown = "…" + "x" * 20
    assert f"> page    {shown}b  {shown}a" in found.failure


def test_a_misspelt_name_in_a_definition_is_said_without_spark(tmp_path: Path) -> None:
    table = PAGES.replace('"seconds": "seconds"', '"seconds": "secnods"')
    project = project_of(tmp_path, {"jobs/tables/pages.py": table, "jobs/tables/pages.test.yaml": CASES})
    with opened(collected := collect([project])) as world:
        (outcome,) = [run(world, case, no_spark) for case in collected.cases]

    assert not outcome.passed and "no column secnods; did you mean seconds?" in str(outcome.mistake)


def test_the_engine_of_tests_reaches_no_file_but_those_of_its_cases(tmp_path: Path) -> None:
    engine = Evaluator()
    (tmp_path / "a.csv").write_text("1")
    for sql in (f"SELECT * FROM read_csv('{tmp_path}/a.csv')", "SELECT * FROM read_text('/etc/hostname')"):
        with pytest.raises(duckdb.PermissionException):
            engine.copy(sql, f"{engine.folder}/out.parquet")
    with pytest.raises(duckdb.PermissionException):
        engine.copy("SELECT 1 AS a", str(tmp_path / "out.parquet"))
    engine.copy("SELECT 1 AS a", f"{engine.folder}/out.parquet")
    engine.close()

    assert not Path(engine.folder).exists()
