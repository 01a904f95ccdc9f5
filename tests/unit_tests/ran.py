"""Runs the cases of a text as the file of the table `pages`, or of another one."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from tests.unit_tests.small_project import project_of
from twinlake.unit_tests.project_tests import collect, opened
from twinlake.unit_tests.running import Outcome, run


def no_spark() -> NoReturn:
    raise AssertionError("Spark was asked")


def outcomes(folder: Path, text: str, table: str = "pages", **files: str) -> list[Outcome]:
    """What becomes of each case; a file that is wrong as a whole raises its first error."""
    places = {f"jobs/tables/{name}.py": module for name, module in files.items()}
    project = project_of(folder, {**places, f"jobs/tables/{table}.test.yaml": text})
    collected = collect([project], [table])
    if collected.wrong:
        raise collected.wrong[0]
    with opened(collected) as world:
        return [run(world, case, no_spark) for case in collected.cases]


def outcome(folder: Path, body: str, table: str = "pages", **files: str) -> Outcome:
    """Of one case with this body, whose lines are indented by four."""
    (found,) = outcomes(folder, f"cases:\n  it:\n{body}", table, **files)
    return found
