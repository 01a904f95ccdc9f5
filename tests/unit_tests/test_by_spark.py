"""What the witness refuses runs in Spark; with `full` every case does, in several cuts and by both layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit_tests.small_project import CASES, project_of
from twinlake.unit_tests.by_spark import CUTS, BySpark
from twinlake.unit_tests.given import given
from twinlake.unit_tests.project_tests import collect, opened
from twinlake.unit_tests.running import Outcome, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = """
from twinlake import Events

TABLE = Events(name="squares", inputs=("visits",), columns={"page": "page", "square": "pow(seconds, 2)"})
"""
SQUARES = """
cases:
  squares:
    records:
      visits:
        - {page: home, seconds: 3}
        - {page: away}
    rows:
      - {page: home, square: 9}
      - {page: away, square: null}
"""
LATE = """
cases:
  a late visit:
    records:
      visits:
        - {page: home, seconds: 1, at: 2026-01-31T12:00:00Z}
        - {page: home, seconds: 2, at: 2026-01-31T12:30:00Z}
        - {page: home, seconds: 4, at: 2026-01-31T12:00:01Z, _timestamp: 2026-01-31T12:31:00Z}
    rows:
      - {page: home, window_start: 2026-01-31T12:00:00Z, visits: 2, seconds: 2.5, cents: 10, final: true}
      - {page: home, window_start: 2026-01-31T12:30:00Z, visits: 1, final: false}
    late:
      - {window_start: 2026-01-31T12:00:00Z, late: 1, discarded: 0}
"""


def outcome(folder: Path, spark: SparkSession, table: str, text: str, *, full: bool = False) -> Outcome:
    squares = {"jobs/tables/squares.py": REFUSED}
    project = project_of(folder, {**squares, f"jobs/tables/{table}.test.yaml": text})
    collected = collect([project], [table])
    with opened(collected) as world:
        (found,) = (run(world, case, lambda: BySpark(spark), full=full) for case in collected.cases)
    return found


def test_what_the_witness_refuses_runs_in_spark(tmp_path: Path, spark: SparkSession) -> None:
    found = outcome(tmp_path, spark, "squares", SQUARES)

    assert found.passed, found.failure
    assert found.engines == (f"Spark {spark.version}",) and "pow(seconds, 2)" in found.refused


def test_what_spark_finds_may_fail_as_well(tmp_path: Path, spark: SparkSession) -> None:
    found = outcome(tmp_path, spark, "squares", SQUARES.replace("square: 9", "square: 8"))

    assert "> square  8.0       9.0" in found.failure


@pytest.mark.parametrize("wrong", [False, True])
def test_full_runs_by_both_engines_and_both_layers(tmp_path: Path, spark: SparkSession, wrong: bool) -> None:
    text = LATE.replace("visits: 1", "visits: 7") if wrong else LATE
    found = outcome(tmp_path, spark, "pages", text, full=True)

    assert found.engines[1:] == (f"Spark {spark.version}",)
    assert found.passed != wrong, found.failure


def test_each_cut_has_all_records(tmp_path: Path, spark: SparkSession) -> None:
    """A cut that lost a record, or counted one twice, would show it here."""
    collected = collect([project_of(tmp_path, {"jobs/tables/pages.test.yaml": CASES + LATE.lstrip()[7:]})])
    case = collected.cases[-1]
    with opened(collected) as world:
        made = given(world, case, Path(world.engine.folder))
        shown = BySpark(spark).shown(world, case, made, full=True)

    assert [one.how for one in shown] == [cut.how for cut in CUTS]
    assert all(one.rows.rows == shown[0].rows.rows for one in shown)
    assert sum(row[shown[0].rows.names.index("visits")] for row in shown[0].rows.rows) == 3
