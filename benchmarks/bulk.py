"""Bulk: the same records by the plain loop and by Twinlake, one after the other, each alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.loop import Sink
from benchmarks.meter import Cost, Meter
from benchmarks.orders import send
from benchmarks.platform import BenchmarkError, Platform, Steps
from tests.project import PROJECT

LIMIT_S = 180.0


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """What the loop and what Twinlake (log and two tables) needed for the records between these offsets."""

    starts: dict[int, int]
    ends: dict[int, int]
    loop: Cost
    loops: Cost
    """Of the loop in two processes, each with half of the partitions."""
    ingest: Cost
    steps: Steps

    @property
    def records(self) -> int:
        return sum(self.ends.values()) - sum(self.starts.values())

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.ingest.seconds

    @property
    def loop_rate(self) -> float:
        return self.records / self.loop.seconds

    @property
    def loops_rate(self) -> float:
        return self.records / self.loops.seconds

    @property
    def micros_per_record(self) -> float:
        """Microseconds of CPU."""
        return self.ingest.cpu_seconds / self.records * 1e6

    @property
    def vs_loop(self) -> float:
        return self.loop.seconds / self.ingest.seconds

    @property
    def per_cpu_vs_loop(self) -> float:
        return self.loop.cpu_seconds / self.ingest.cpu_seconds


def against_loop(platform: Platform, sink: Sink, count: int) -> Bulk:
    """Send `count` records while the lake server stands still, have the loop take them, once in two processes
    and once in one, then let it go on.

    The one loop's tables are in `sink` afterwards, those of an earlier repetition are gone.
    """
    shutil.rmtree(sink.folder, ignore_errors=True)
    starts = platform.ends()
    with platform.paused():
        send(platform, "bulk", count)
        ends = platform.ends()
        loops = _loops(platform, starts, ends, sink.folder)
        shutil.rmtree(sink.folder, ignore_errors=True)
        (loop,) = _run(platform, [_Part(starts=starts, ends=ends, folder=sink.folder)])
    heads = platform.heads()
    with Meter([platform.process("twinlake.server")]) as meter:
        platform.caught_up(ends, LIMIT_S)
    return Bulk(
        starts=starts, ends=ends, loop=loop, loops=loops, ingest=meter.cost, steps=platform.steps(heads)
    )


@dataclass(frozen=True, kw_only=True)
class _Part:
    """What one process of the loop takes, and where its tables go."""

    starts: dict[int, int]
    ends: dict[int, int]
    folder: Path


def _loops(platform: Platform, starts: dict[int, int], ends: dict[int, int], folder: Path) -> Cost:
    """Two processes beside each other; nobody merges their tables."""

    def part(number: int) -> _Part:
        mine = sorted(ends)[number::2]
        return _Part(
            starts={one: starts[one] for one in mine}, ends={one: ends[one] for one in mine},
            folder=folder / str(number),
        )  # fmt: skip

    costs = _run(platform, [part(0), part(1)])
    return Cost(
        seconds=max(one.seconds for one in costs), cpu_seconds=sum(one.cpu_seconds for one in costs),
        peak_bytes=sum(one.peak_bytes for one in costs),
    )  # fmt: skip


def _run(platform: Platform, parts: list[_Part]) -> list[Cost]:
    """The plain loop, each part in a process of its own; they measure themselves, without their imports."""
    common = [sys.executable, "-m", "benchmarks.loop", "--topic", platform.topic]
    common += ["--bootstrap-servers", platform.services.bootstrap_servers]
    common += ["--schema-id", str(platform.schema_id)]
    running = []
    for part in parts:
        offsets = ["--starts", json.dumps(part.starts), "--ends", json.dumps(part.ends)]
        words = [*common, "--out", str(part.folder), *offsets]
        running.append(subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.PIPE, text=True))
    costs = []
    try:
        for one in running:
            said, _ = one.communicate(timeout=LIMIT_S)
            if one.returncode:
                raise BenchmarkError(f"the plain loop ended with exit code {one.returncode}")
            result = json.loads(said.splitlines()[-1])
            costs.append(Cost(**{name: result[name] for name in ("seconds", "cpu_seconds", "peak_bytes")}))
    finally:
        for one in running:
            one.kill()
    return costs
