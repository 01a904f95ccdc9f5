"""The seconds of each test: `python -m tests.seconds report.xml` writes them down from a run's `--junitxml`.

Only from a run of everything on two quiet cores: the order of a parallel run and `make quick` go by it.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from twinlake.base.files import replace_file

FILE = Path(__file__).with_name("seconds.txt")
LISTED_S = 0.15


def read(file: Path = FILE) -> dict[str, float]:
    """Test -> seconds, of those that take `LISTED_S` or more."""
    lines = [line.split(maxsplit=1) for line in file.read_text().splitlines() if not line.startswith("#")]
    return {test: float(took) for took, test in lines}


def text(report: Path, today: str) -> str:
    """What `read` reads, of pytest's XML report; what was skipped is left out."""
    took: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
            took[test] = took.get(test, 0.0) + float(case.get("time", 0))
    head = (
        "# Seconds on two quiet cores, with set-up and tear-down, of each test that takes "
        f"{LISTED_S} or more ({today}); all: {len(took):,} tests in {sum(took.values()):,.0f} s.\n"
    )
    listed = sorted(((s, test) for test, s in took.items() if s >= LISTED_S), key=lambda it: (-it[0], it[1]))
    return head + "".join(f"{seconds:.1f} {test}\n" for seconds, test in listed)


if __name__ == "__main__":
    replace_file(FILE, text(Path(sys.argv[1]), f"{datetime.now(UTC):%Y-%m-%d}"))
