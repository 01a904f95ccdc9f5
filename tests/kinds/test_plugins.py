"""Packages of others bring kinds and measures: by entry points, which each process finds by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin import SOURCE, installed
from tests.project import PROJECT

WRITTEN = """
import json
from their_tables import LogSum, Statuses
from twinlake import Aggregate
from twinlake.kinds import all as kinds, plugins
SAME = {"region": "region", "amount": "amount"}
tables = (
    Statuses(name="statuses", inputs=("orders",), column="status"),
    Aggregate(
        name="logs", inputs=("orders",), columns=SAME, keys=("region",), measures={"all": LogSum("amount")},
    ),
)
again = [kinds.from_json(json.loads(json.dumps(table.to_json()))) for table in tables]
print(json.dumps([again == [*tables], list(plugins.versions())]))
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def test_definitions_with_a_kind_and_a_measure_of_others_are_stored_and_read_again(tmp_path: Path) -> None:
    done = run(WRITTEN, installed(tmp_path))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, ["their-tables 2.5"]]


def test_without_the_package_there_is_no_such_kind(tmp_path: Path) -> None:
    code = """
from twinlake.kinds import all, plugins
print(plugins.versions())
all.from_json({"kind": "ages"})
"""

    done = run(code, tmp_path)

    assert done.stdout == "()\n" and "unknown table kind 'ages'" in done.stderr


@pytest.mark.parametrize(
    ("points", "module", "words"),
    [
        ({"twinlake.kinds": ("ages = their_tables:Gone",)}, SOURCE, "ages (twinlake.kinds) of their-tables"),
        ({"twinlake.kinds": ("ages = their_tables:Ages",)}, "1 / 0", "ZeroDivisionError: division by zero"),
        ({"twinlake.kinds": ("other = their_tables:Ages",)}, SOURCE, "their_tables:Ages has the kind 'ages'"),
        (
            {"twinlake.measures": ("sum = their_tables:Sum",)},
            "class Sum:\n    kind = 'sum'",
            "sum is twinlake.kinds.measures.totals.Sum already",
        ),
    ],
    ids=["no such class", "a module that fails", "two names", "a name that is taken"],
)  # fmt: skip
def test_a_wrong_entry_point_is_refused_by_its_package_and_name(
    tmp_path: Path, points: dict[str, tuple[str, ...]], module: str, words: str
) -> None:
    done = run("import twinlake.kinds.all", installed(tmp_path, points, module))

    said = " ".join(done.stderr.split())
    assert done.returncode == 1 and "UsageError" in said and words in said, said
