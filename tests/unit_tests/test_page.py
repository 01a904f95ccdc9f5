"""What docs/unit-tests.md shows passes, and fails, as it is written there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.project import PROJECT
from tests.unit_tests.ran import no_spark
from twinlake.config.library import TEMPLATE
from twinlake.config.project import Project
from twinlake.topics.verdict import REASONS, VERDICTS
from twinlake.unit_tests.cases import Case
from twinlake.unit_tests.project_tests import collect, opened
from twinlake.unit_tests.running import Outcome, run

PAGE = (PROJECT / "docs" / "unit-tests.md").read_text()


def block(after: str, language: str = "") -> str:
    """The first block of code below a heading."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE[PAGE.index(after) :], re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def outcomes(folder: Path, text: str) -> dict[str, Outcome]:
    shutil.copytree(TEMPLATE, folder)
    (folder / "jobs" / "tables" / "visits_per_page.test.yaml").write_text(text)
    collected = collect([Project.load(folder)])
    assert not collected.wrong

    def of(case: Case) -> Outcome:
        return run(world, case, no_spark)

    with opened(collected) as world:
        return {case.name: of(case) for case in collected.cases}


def test_the_file_that_it_shows_passes(tmp_path: Path) -> None:
    found = outcomes(tmp_path / "shop", block("## A test file", "yaml"))

    assert len(found) == 2
    assert [(one.failure, one.mistake) for one in found.values()] == [("", None)] * 2


def test_the_failure_that_it_shows_is_that_of_a_wrong_number(tmp_path: Path) -> None:
    wrong = block("## A test file", "yaml").replace("visits: 2, visitors: 1", "visits: 3, visitors: 1")
    name = "visits of one minute are counted"
    shown = [line[8:].rstrip() for line in block("## A failure").splitlines()[2:]]

    assert outcomes(tmp_path / "shop", wrong)[name].failure.splitlines() == shown


def test_it_lists_every_reason_with_its_meaning() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    listed = {row[1].strip("`"): row[2] for row in rows if len(row) == 3 and row[0].strip("`") in VERDICTS}

    assert {code: text for code, text in listed.items() if code != "-"} == REASONS
