"""A week of running, in time lapse: what it keeps, holds in memory and needs for a step stays as it was.

A day takes DAY_S seconds: small batches all the time, what is due rebuilt and verified every three hours,
clean-up every six, all of history once. `docs/week.md` has the figures of one run.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.kill.server import LakeProcess, lake_process

DAYS, ROUNDS, BATCHES = 7, 8, 3
DAY_S = 100.0
RECORDS = 40
FLAT = {"step_s": 1.5, "python_mb": 1.1, "heap_mb": 1.25, "threads": 1.25, "open_files": 1.5}
"""How much more of it the last days may have than the first."""


@dataclass(frozen=True, kw_only=True)
class Day:
    """At the end of a day; a step is from the producer's last record to both tables."""

    step_s: float
    rebuild_s: float
    python_mb: float
    heap_mb: float
    threads: int
    open_files: int
    files: dict[str, int]

    @property
    def all_files(self) -> int:
        return sum(self.files.values())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LakeProcess]:
    with lake_process(tmp_path) as made:
        made.command = ["-m", "tests.week.server", str(DAY_S), str(made.home / "memory")]
        yield made


def a_day(server: LakeProcess) -> Day:
    began, steps, rebuilds = time.monotonic(), [], []
    for number in range(ROUNDS):
        for _ in range(BATCHES):
            sent = time.monotonic()
            server.produce(RECORDS)
            server.until(server.caught_up, every_s=0.05)
            steps.append(time.monotonic() - sent)
        asked = time.monotonic()
        for table in ("sales_per_region", "latest_order"):
            for kind in ("rebuild", "verify"):
                assert server.do(kind, table=table, due=True)["equal"]
        rebuilds.append(time.monotonic() - asked)
        if number % 2:
            server.do("maintain")
        time.sleep(max(0.0, began + (number + 1) * DAY_S / ROUNDS - time.monotonic()))
    return measured(server, statistics.median(steps), statistics.median(rebuilds))


def measured(server: LakeProcess, step_s: float, rebuild_s: float) -> Day:
    asked = server.home / "memory"
    asked.touch()
    server.until(lambda: not asked.exists())
    told: dict[str, Any] = json.loads(asked.with_suffix(".told").read_text())
    assert server.process
    process = psutil.Process(server.process.pid)
    return Day(
        step_s=step_s,
        rebuild_s=rebuild_s,
        python_mb=process.memory_info().rss / 2**20,
        heap_mb=told["heap_mb"],
        threads=told["jvm_threads"] + told["python_threads"],
        open_files=process.num_fds() + server._jvm().num_fds(),
        files=dict(Counter(one.relative_to(server.lake).parts[0] for one in files_of(server.lake))),
    )


def files_of(lake: Path) -> Iterator[Path]:
    return (one for one in lake.rglob("*") if one.is_file())


@dataclass(frozen=True, kw_only=True)
class Start:
    """From kill -9 until a new record is in all tables; what else the machine does is in the seconds, and not
    in those of the processor."""

    seconds: float
    cpu_s: float


def restarted(server: LakeProcess) -> Start:
    began = time.monotonic()
    server.kill()
    server.start()
    server.produce(1)
    server.until(server.caught_up, every_s=0.05)
    assert server.process
    used = (one.cpu_times() for one in (psutil.Process(server.process.pid), server._jvm()))
    cpu_s = sum(one.user + one.system for one in used)
    return Start(seconds=time.monotonic() - began, cpu_s=cpu_s)


@pytest.mark.timeout(1800)
def test_a_week_leaves_memory_files_steps_and_starts_as_they_were(
    server: LakeProcess, figure: Callable[[str, str], None]
) -> None:
    server.start()
    server.release()
    first = a_day(server)
    starts = [restarted(server)]
    days = [first, *(a_day(server) for _ in range(DAYS - 1))]
    starts.append(restarted(server))
    print(table(days, starts))

    early, late = days[1:3], days[-2:]  # of the first day much is warming up
    for name, more in FLAT.items():
        before, after = (max(getattr(day, name) for day in some) for some in (early, late))
        figure(f"{name}, days 2 and 3, last two", f"{before:.2f}, {after:.2f}")
        assert after <= more * before, f"{name}: {before:.1f} on days 2 and 3, {after:.1f} on the last two"
    assert max(day.all_files for day in late) <= 1.5 * max(day.all_files for day in early)
    figure("kill -9 to the next record, s", ", ".join(f"{one.seconds:.1f}" for one in starts))
    assert starts[1].cpu_s <= 1.5 * starts[0].cpu_s


def table(days: list[Day], starts: list[Start]) -> str:
    """The figures as Markdown."""
    lines = [
        "| day | step s | pending work s | Python MB | heap MB | threads | open files | files of the lake |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number, day in enumerate(days, start=1):
        held = ", ".join(f"{name} {count}" for name, count in sorted(day.files.items()))
        lines.append(
            f"| {number} | {day.step_s:.2f} | {day.rebuild_s:.1f} | {day.python_mb:.0f} | {day.heap_mb:.0f} "
            f"| {day.threads} | {day.open_files} | {day.all_files}: {held} |"
        )
    told = (f"{one.seconds:.0f} s, {one.cpu_s:.0f} s of CPU" for one in starts)
    return "\n".join([*lines, "", f"kill -9 to the next record in all tables: {'; '.join(told)}"])
