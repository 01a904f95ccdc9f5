"""A case that is written of a log's records says what they were, and passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit_tests.ran import no_spark
from tests.unit_tests.small_project import CASES, project_of
from twinlake.base.errors import NotFoundError, TwinlakeError, UsageError
from twinlake.unit_tests.given import given
from twinlake.unit_tests.project_tests import collect, known_world, opened
from twinlake.unit_tests.recording import add_case, records_of
from twinlake.unit_tests.running import run

LIVE = """
cases:
  what a lake has:
    records:
      visits:
        - {id: x, page: home, seconds: 1.5, at: 2026-01-31T12:00:00Z}
        - {id: y, page: "null", at: 2026-01-31T12:00:01Z, _timestamp: 2026-01-31T12:00:09Z, _partition: 2}
        - {id: z, page: "a: b", at: 2026-01-31T12:00:02Z}
    rows: []
"""
FILE = "jobs/tables/pages.test.yaml"


def test_recorded_records_make_a_case_that_passes(tmp_path: Path) -> None:
    project = project_of(tmp_path / "live", {FILE: LIVE})
    with opened(live := collect([project])) as world:
        made = given(world, live.cases[0], Path(world.engine.folder))
        records = records_of(
            world.topics["visits"], made.logs["visits"].files, [(0, 0, 0), (0, 2, 0), (0, 0, 9)]
        )
        project_of(tmp_path / "live", {FILE: CASES})
        file = add_case(world, "pages", project.tables, "recorded page=home", {"visits": records})
        with pytest.raises(UsageError, match="has a case 'recorded page=home' already"):
            add_case(world, "pages", project.tables, "recorded page=home", {"visits": records})

    text = file.read_text()
    assert [record["id"] for record in records] == ["x", "y"]
    assert '"null"' in text and "_timestamp: 2026-01-31T12:00:09Z" in text and "_partition: 2" in text
    collected = collect([project])
    assert [case.name for case in collected.cases] == ["two visits are counted", "recorded page=home"]
    with opened(collected) as world:
        outcomes = [run(world, case, no_spark) for case in collected.cases]
    assert [(one.failure, one.mistake) for one in outcomes] == [("", None)] * 2


@pytest.mark.parametrize("indent", [1, 4])
def test_a_recorded_case_is_indented_as_its_file_is(tmp_path: Path, indent: int) -> None:
    head, _, rest = CASES.strip("\n").partition("\n")
    moved = "\n".join(" " * (indent - 2) + line if indent > 2 else line[1:] for line in rest.splitlines())
    project = project_of(tmp_path, {FILE: f"{head}\n{moved}\n"})
    with known_world([project]) as world:
        file = add_case(world, "pages", project.tables, "recorded", {"visits": [{"page": "home"}]})

    (line,) = [line for line in file.read_text().splitlines() if "recorded:" in line]
    assert line == " " * indent + "recorded:"
    assert [case.name for case in collect([project]).cases] == ["two visits are counted", "recorded"]


def test_a_case_is_not_added_to_a_file_that_it_would_spoil(tmp_path: Path) -> None:
    project = project_of(tmp_path, {FILE: "cases: {none: {records: {visits: []}, rows: []}}\n"})
    with known_world([project]) as world, pytest.raises(UsageError, match="no case can be added to"):
        add_case(world, "pages", project.tables, "recorded", {"visits": [{"page": "home"}]})

    assert [case.name for case in collect([project]).cases] == ["none"]


def test_a_log_of_which_a_file_is_gone(tmp_path: Path) -> None:
    project = project_of(tmp_path, {})
    with known_world([project]) as world, pytest.raises(TwinlakeError, match="cannot be read") as found:
        records_of(world.topics["visits"], [str(tmp_path / "gone.parquet")], [(0, 0, 0)])

    assert "try again" in found.value.remedy


def test_a_record_that_nobody_has(tmp_path: Path) -> None:
    project = project_of(tmp_path, {})
    with known_world([project]) as world, pytest.raises(NotFoundError):
        records_of(world.topics["visits"], [], [(0, 0, 0)])
