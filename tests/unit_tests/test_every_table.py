"""The project, the gallery and the template have a test for each table, of each kind and measure one, and
they pass by the witness alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import EXAMPLES, OURS, example_of
from tests.unit_tests.ran import no_spark
from twinlake.config.library import TEMPLATE
from twinlake.config.project import Project
from twinlake.kinds.all import KINDS
from twinlake.kinds.measures.all import MEASURES
from twinlake.unit_tests.project_tests import Collected, collect, opened
from twinlake.unit_tests.running import run

OF_TESTS = Path(__file__).with_name("measures")
"""A project with the measures that no other table has."""
PLACES = {
    "ours": OURS, "template": Project(root=TEMPLATE), "measures": Project(root=OF_TESTS),
    **{name: example_of(name) for name in EXAMPLES},
}  # fmt: skip


def collected(place: str) -> Collected:
    found = collect([PLACES[place]])
    assert not found.wrong
    return found


@pytest.mark.parametrize("place", PLACES)
def test_each_table_has_cases_that_pass(place: str) -> None:
    found = collected(place)

    assert {case.table for case in found.cases} == set(found.tables)
    with opened(found) as world:
        outcomes = [run(world, case, no_spark) for case in found.cases]
    assert [(one.case.title, one.failure, one.mistake) for one in outcomes if not one.passed] == []


def test_each_kind_and_each_measure_is_tested() -> None:
    everywhere = [collected(place) for place in PLACES]
    tested = [one.tables[name].to_json() for one in everywhere for name in {case.table for case in one.cases}]

    measures = {data["kind"] for table in tested for _, data in table.get("measures", ())}
    assert {table["kind"] for table in tested} == set(KINDS)
    assert measures == set(MEASURES)
