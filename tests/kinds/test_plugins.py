"""Packages of others bring kinds and measures: by entry points, which each process finds by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from twinlake.config.settings import PROJECT

PACKAGE = """
from dataclasses import dataclass

from twinlake import Events
from twinlake.kinds.measures.measure import Measure, Part, state_column


@dataclass(frozen=True, kw_only=True)
class Copies(Events):
    kind = "copies"


@dataclass(frozen=True)
class Product(Measure):
    kind = "product"

    def parts(self, name, types):
        logs = f"{name}__logs"
        return (Part(name=logs, from_rows=f"sum(ln({self.of}))", merge=f"sum({logs})", scale=logs),)

    def value(self, name):
        return f"exp(sum({state_column(name, 'logs')}))"
"""
BOTH = {"twinlake.kinds": "copies = theirs:Copies", "twinlake.measures": "product = theirs:Product"}
WRITTEN = """
import json
from theirs import Copies, Product
from twinlake import Aggregate
from twinlake.definitions.premises import code, engine
from twinlake.kinds import all as kinds, plugins
SAME = {"region": "region", "amount": "amount"}
tables = (
    Copies(name="copies", inputs=("orders",), columns={"id": "event_id"}),
    Aggregate(
        name="products", inputs=("orders",), columns=SAME, keys=("region",),
        measures={"all": Product("amount")},
    ),
)
again = [kinds.from_json(json.loads(json.dumps(table.to_json()))) for table in tables]
print(json.dumps([again == [*tables], list(plugins.versions())]))
"""


def installed(folder: Path, points: dict[str, str], module: str = PACKAGE) -> Path:
    """A folder as pip leaves it behind, with one package in it."""
    (folder / "theirs.py").write_text(module)
    about = folder / "their_tables-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-tables\nVersion: 2.5\n")
    (about / "entry_points.txt").write_text(
        "".join(f"[{group}]\n{point}\n" for group, point in points.items())
    )
    return folder


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def test_definitions_with_a_kind_and_a_measure_of_others_are_stored_and_read_again(tmp_path: Path) -> None:
    done = run(WRITTEN, installed(tmp_path, BOTH))

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, ["their-tables 2.5"]]


def test_without_the_package_there_is_no_such_kind(tmp_path: Path) -> None:
    code = """
from twinlake.kinds import all, plugins
print(plugins.versions())
all.from_json({"kind": "copies"})
"""

    done = run(code, tmp_path)

    assert done.stdout == "()\n" and "unknown table kind 'copies'" in done.stderr


@pytest.mark.parametrize(
    ("points", "module", "words"),
    [
        ({"twinlake.kinds": "copies = theirs:Gone"}, PACKAGE, "copies (twinlake.kinds) of their-tables"),
        ({"twinlake.kinds": "copies = theirs:Copies"}, "1 / 0", "ZeroDivisionError: division by zero"),
        ({"twinlake.kinds": "other = theirs:Copies"}, PACKAGE, "theirs:Copies has the kind 'copies'"),
        (
            {"twinlake.measures": "sum = theirs:Sum"},
            "class Sum:\n    kind = 'sum'",
            "sum is twinlake.kinds.measures.totals.Sum already",
        ),
    ],
    ids=["no such class", "a module that fails", "two names", "a name that is taken"],
)  # fmt: skip
def test_a_wrong_entry_point_is_refused_by_its_package_and_name(
    tmp_path: Path, points: dict[str, str], module: str, words: str
) -> None:
    done = run("import twinlake.kinds.all", installed(tmp_path, points, module))

    said = " ".join(done.stderr.split())
    assert done.returncode == 1 and "UsageError" in said and words in said, said
