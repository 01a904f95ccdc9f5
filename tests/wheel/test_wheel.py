"""The wheel of this checkout is all that a new user needs: installed, a project, a release, and nothing left.

Packages and jars come from their indexes, so it needs a network, as `make jars` does.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.wheel.machine import Machine, build_wheel
from twinlake.base.version import VERSION
from twinlake.base.waiting import wait_for

RECORDS = 5_000
DEFINITION = "jobs/tables/visits_per_page.py"
BEFORE = """    keys=("page",),\n"""
AFTER = f"""    where="page <> '/about'",\n{BEFORE}"""
COUNTS = """
SELECT (SELECT count(*) FROM serve.visits_valid), (SELECT count(*) FROM serve.visits_quarantine),
  coalesce(sum(visits), 0), coalesce(sum(visits) FILTER (WHERE page = '/about'), 0) FROM serve.visits_per_page
"""
NAMED_BY_OTHERS = re.compile(r"hsperfdata_.*|uv-.*\.lock")
"""What any JVM leaves in /tmp, and uv."""


@dataclass(frozen=True)
class Counts:
    """What readers see: records of the topic, and visits in the table, those of one page too."""

    valid: int
    quarantined: int
    visits: int
    about: int


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine")
    yield made
    if (made.place / "x").exists() and made.processes():
        made.twinlake("down", within=made.place / "x")
    for process in made.processes():
        process.kill()
    for large in (made.venv, made.home):  # what it ran and wrote stays, to be looked at
        shutil.rmtree(large, ignore_errors=True)


def counts(machine: Machine, address: str) -> Counts:
    """The answer at the JDBC address, by the client that Spark brings, as docs/bi-tools.md says."""
    services = json.loads((machine.place / "x" / ".twinlake" / "services.json").read_text())
    (spark,) = machine.venv.glob("lib/python*/site-packages/pyspark")
    said = machine.run(
        machine.java, "-cp", f"{spark}/jars/*", "org.apache.hive.beeline.BeeLine", "-u", address,
        "-n", services["sql_user"], "-p", services["sql_password"],
        "--silent=true", "--outputformat=csv2", "--showHeader=false", "-e", " ".join(COUNTS.split()),
    ).stdout  # fmt: skip
    return Counts(*map(int, said.split()[-1].split(",")))


@pytest.mark.timeout(1500)
def test_a_new_project_runs_and_changes_with_the_wheel_alone_and_leaves_nothing(machine: Machine) -> None:
    wheel = build_wheel(machine.tools)
    machine.install(f"{wheel}[all]")
    machine.twinlake("new", "project", "x")
    project = machine.place / "x"

    machine.twinlake("check", within=project)
    up = machine.twinlake("up", within=project).stdout
    (address,) = re.findall(r"^ok sql +embedded +(jdbc:\S+)", up, re.MULTILINE)
    machine.twinlake("produce", "visits", "--count", str(RECORDS), within=project)

    def arrived() -> Counts | None:
        found = counts(machine, address)
        return found if found.valid + found.quarantined == RECORDS and found.visits == found.valid else None

    before = wait_for("all records in the table", arrived, 240, every_s=1)
    definition = project / DEFINITION
    definition.write_text(definition.read_text().replace(BEFORE, AFTER))
    plan = machine.twinlake("plan", within=project).stdout
    for step in ("build", "gate", "promote"):
        machine.twinlake(step, within=project)
    after = counts(machine, address)
    machine.twinlake("down", within=project)

    assert machine.processes() == []
    assert before.about > 0 and "where" in plan
    assert after == replace(before, visits=before.visits - before.about, about=0)
    assert {path.name for path in machine.place.iterdir()} == {"x"}
    assert {path.name for path in machine.home.iterdir()} == {".cache"}
    assert (machine.home / ".cache" / "twinlake" / f"jars-{VERSION}" / ".complete").is_file()
    assert [name for name in machine.left_in_tmp() if not NAMED_BY_OTHERS.fullmatch(name)] == []
