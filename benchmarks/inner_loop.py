"""How long one waits while a definition is written: `check`, `test` and `dev`, cold and warm.

`python -m benchmarks.inner_loop`, with `--full` by Spark, too. Wall seconds follow what else the machine
does; CPU-seconds say what the command itself costs.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.unit_tests import warm
from tests.project import OURS
from twinlake.releases.check import check

ROUNDS = 5
TABLE = "sales_per_region"
Took = tuple[float, float]
"""(wall seconds, CPU-seconds)"""


def process(*arguments: str, project: Path = OURS.root) -> Took:
    """What a whole command takes."""
    command = [sys.executable, "-m", "twinlake", "--project", str(project), *arguments]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return time.perf_counter() - began, cpu


def here(work: Callable[[], object]) -> Took:
    """What a call takes in this process."""
    cpu, began = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def saves(project: Path) -> list[Took]:
    """What `dev` takes from each save to its last line, in a process that runs already."""
    file = project / "jobs" / "tables" / f"{TABLE}.py"
    text = file.read_text()
    command = [sys.executable, "-m", "twinlake", "--project", str(project), "dev", TABLE]
    took = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as dev:
        try:
            _until_waiting(dev)
            for number in range(2 * ROUNDS):
                cpu, began = _cpu_of(dev.pid), time.perf_counter()
                file.write_text(f"{text}# {number}\n")
                _until_waiting(dev)
                took.append((time.perf_counter() - began, _cpu_of(dev.pid) - cpu))
        finally:
            dev.kill()
    return took


def _until_waiting(dev: subprocess.Popen[str]) -> None:
    assert dev.stdout is not None
    for line in dev.stdout:
        if line.startswith("waiting for changes"):
            return
    raise RuntimeError("dev has ended")


def _cpu_of(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def _tell(what: str, took: list[Took]) -> None:
    walls, cpus = zip(*took, strict=True)
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    print(f"| {what} | {wall:.2f} ({min(walls):.2f} to {max(walls):.2f}) | {cpu:.2f} |", flush=True)


def main() -> None:
    print(f"load of the last minute: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="twinlake-bench-") as folder:
        project = Path(folder) / "project"
        project.mkdir()
        for name in ("jobs", "contracts", "schemas"):
            shutil.copytree(OURS.root / name, project / name)
        (project / "twinlake.toml").write_text("[project]\n")
        check([OURS])
        _tell("check, cold", [process("check", project=project) for _ in range(ROUNDS)])
        _tell("check, warm", [here(lambda: check([OURS])) for _ in range(ROUNDS)])
        _tell("test, cold, one case", [process("test", "orders", "-k", "sent") for _ in range(ROUNDS)])
        cases = warm()
        _tell("test, warm, a case", [(one, one) for one in cases])
        _tell("dev, cold", [process("dev", TABLE, "--once", project=project) for _ in range(ROUNDS)])
        _tell("dev, from a save to its last line", saves(project))
        if "--full" in sys.argv:
            _tell("check --full, cold, by a Spark of its own", [process("check", "--full", project=project)])
    print(f"load of the last minute: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
