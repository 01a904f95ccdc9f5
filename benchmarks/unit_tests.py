"""How long `twinlake test` takes: a process with one case, and each case after the first.

`python -m benchmarks.unit_tests`. The cases are those of the gallery; the witness evaluates all of them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from tests.project import EXAMPLES, OURS, example_of
from twinlake.unit_tests.project_tests import collect, opened
from twinlake.unit_tests.running import Second, run

ROUNDS = 5


def cold() -> float:
    """Seconds of a whole process that runs one case."""
    command = [sys.executable, "-m", "twinlake", "--project", str(OURS.root), "test", "orders", "-k", "sent"]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def warm() -> list[float]:
    """Seconds of each case, once its project's engine is open."""
    took = []
    for name in EXAMPLES:
        collected = collect([example_of(name)])
        with opened(collected) as world:
            for number in range(ROUNDS + 1):
                for case in collected.cases:
                    outcome = run(world, case, _never)
                    assert outcome.passed, outcome.failure
                    took += [outcome.seconds] if number else []
    return took


def _never() -> Second:
    raise AssertionError("a case of the gallery needs Spark")


def main() -> None:
    found = sorted(cold() for _ in range(ROUNDS))
    cases = sorted(warm())
    print(f"cold, a process with one case: {found[0]:.2f} to {found[-1]:.2f} s")
    middle, most = 1000 * statistics.median(cases), 1000 * cases[-1]
    print(f"warm, a case: {middle:.0f} ms, the slowest of {len(cases)}: {most:.0f} ms")


if __name__ == "__main__":
    main()
