"""Bulk: the same records by the plain loop and by Twinlake, one after the other, each alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.loop import Sink
from benchmarks.meter import Cost, Meter
from benchmarks.orders import send
from benchmarks.platform import Platform
from tests.project import PROJECT

LIMIT_S = 180.0


@dataclass(frozen=True, kw_only=True)
class Bulk:
    """What the loop and what Twinlake (log and two tables) needed for the records between these offsets."""

    starts: dict[int, int]
    ends: dict[int, int]
    loop: Cost
    ingest: Cost

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
    def vs_loop(self) -> float:
        return self.loop.seconds / self.ingest.seconds

    @property
    def per_cpu_vs_loop(self) -> float:
        return self.loop.cpu_seconds / self.ingest.cpu_seconds


def against_loop(platform: Platform, sink: Sink, count: int) -> Bulk:
    """Send `count` records while the lake server stands still, have the loop take them, then let it go on.

    The loop's tables are in `sink` afterwards, those of an earlier repetition are gone.
    """
    shutil.rmtree(sink.folder, ignore_errors=True)
    starts = platform.ends()
    with platform.paused():
        send(platform, "bulk", count)
        ends = platform.ends()
        loop = _loop(platform, starts, ends, sink)
    with Meter([platform.process("twinlake.server")]) as meter:
        platform.caught_up(ends, LIMIT_S)
    return Bulk(starts=starts, ends=ends, loop=loop, ingest=meter.cost)


def _loop(platform: Platform, starts: dict[int, int], ends: dict[int, int], sink: Sink) -> Cost:
    """The plain loop in a process of its own; it measures itself, without its imports."""
    command = [sys.executable, "-m", "benchmarks.loop", "--topic", platform.topic, "--out", str(sink.folder)]
    command += ["--bootstrap-servers", platform.services.bootstrap_servers]
    command += ["--schema-id", str(platform.schema_id)]
    command += ["--starts", json.dumps(starts), "--ends", json.dumps(ends)]
    done = subprocess.run(
        command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True
    )
    result = json.loads(done.stdout.splitlines()[-1])
    return Cost(seconds=result["seconds"], cpu_seconds=result["cpu_seconds"], peak_bytes=result["peak_bytes"])
