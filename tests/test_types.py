"""What a user writes type-checks against the installed library, by `mypy --strict`; mistakes do not."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv

import pytest

from tests.project import EXAMPLES, OURS, PROJECT, example_of
from twinlake.config.library import TEMPLATE
from twinlake.config.project import Project

READS = """
from datetime import timedelta
from typing import Any

import twinlake
from twinlake import Aggregate, Count, Hopping, Sum, TopK, TwinlakeError, read

TABLE = Aggregate(
    name="sales_per_region",
    inputs=("orders",),
    columns={"region": "region", "ordered_at": "ordered_at", "amount": "amount"},
    keys=("region",),
    window=Hopping(on="ordered_at", size="10 minutes", every="1 minute"),
    measures={"orders": Count(), "sales": Sum("amount")},
)
LENGTH: timedelta | None = TABLE.window.length if TABLE.window else None
VERSION: str = twinlake.__version__


def release(table: str) -> dict[str, Any]:
    try:
        return twinlake.metadata(read(table, as_of="release:3", columns=["region"], where="region = 'north'"))
    except TwinlakeError as error:
        return error.to_json()
"""
WRONG = """
from twinlake import Aggregate, Agregate, Count, Sum, Tumbling, read

WINDOW = Tumbling(on="ordered_at", size=60)
NO_COLUMNS = Aggregate(name="a", inputs=("orders",), keys=("region",), measures={"orders": Count()})
KEY = Aggregate(name="a", inputs=("orders",), columns={}, keys="region", measures={"orders": Count()})
MEASURE = Aggregate(name="a", inputs=("orders",), columns={}, keys=("region",), measures={"orders": "count"})
OF = Sum(3)
ROWS = read("orders", as_off="release:3")
"""
EXPECTED = {
    2: "attr-defined", 4: "arg-type", 5: "call-arg", 6: "arg-type", 7: "dict-item", 8: "arg-type",
    9: "call-overload",
}  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What mypy says of a project's files, in an environment into which Twinlake is installed."""
    project = tmp_path_factory.mktemp("project")
    for one in (OURS, *map(example_of, EXAMPLES), Project.load(TEMPLATE)):
        for path in one.tables.rglob("*.py"):
            shutil.copy(path, project / f"{one.root.name}_{path.name}")
    (project / "reads.py").write_text(READS)
    (project / "wrong.py").write_text(WRONG)
    environment = project / ".venv"
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "twinlake.pth").write_text(f"{PROJECT}\n{sysconfig.get_path('purelib')}\n")

    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary",
            f"--python-executable={environment / 'bin' / 'python'}",
            *sorted(path.name for path in project.glob("*.py")),
        ],
        cwd=project, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": note: " not in line]


def test_definitions_and_reads_type_check_strictly(said: list[str]) -> None:
    assert [line for line in said if not line.startswith("wrong.py:")] == []


def test_a_wrong_definition_is_refused_at_its_line(said: list[str]) -> None:
    found = [re.fullmatch(r"wrong\.py:(\d+): error: .*\[([a-z-]+)\]", line) for line in said]

    assert {int(one[1]): one[2] for one in found if one} == EXPECTED
