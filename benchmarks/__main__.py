"""`make bench`: Twinlake and a plain loop over the same 2,000,000 records, with proof that both are right.

Everything runs in `<state folder>/bench`, beside the user's lake; the figures go to `result.json` there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import freshness, small
from benchmarks.loop import COMMIT_RECORDS, Sink
from benchmarks.meter import Cost, Meter
from benchmarks.platform import TOPIC, Platform
from benchmarks.proof import prove
from jobs.commands.output import load_settings
from jobs.files import replace_file
from jobs.settings import Settings
from jobs.topics.produce import produce
from jobs.topics.sample_orders import FaultShares, Sample

SPAN_MS = 2 * 3_600_000
REBUILT = "sales_per_region"
TARGETS = {
    "ingest_vs_loop": 0.9, "rebuild_vs_loop": 4.0, "bulk_per_cpu_vs_loop": 0.5,
    "rebuild_records_per_s": 400_000,
    "freshness_p50_s": 0.9, "freshness_p99_s": 2.5, "query_p50_s": 0.3, "query_p99_s": 1.2,
    "cycle_s": 0.3, "cycle_cpu_s": 0.35, "cores_at_2000": 1.0, "cores_idle": 0.05, "restart_s": 20.0,
}  # fmt: skip
console = Console(highlight=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--warm-up", type=int, default=400_000, help="records before, of the same shape")
    parser.add_argument("--rate", type=float, default=2_000.0, help="records/s while freshness is measured")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each small figure is measured")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the services are stopped then too
    folder = load_settings().home / "bench"
    started = time.monotonic()
    with Platform(Settings(home=folder / "home")) as platform:
        told(started, "services are up")
        result = measure(platform, folder, asked, started)
    result["seconds"] = round(time.monotonic() - started, 1)
    replace_file(folder / "result.json", json.dumps(result, indent=2) + "\n")
    show(result)
    console.print(f"written to {folder / 'result.json'}; {result['seconds']:.0f} s in all")
    return 0 if result["verified"] else 1


def told(started: float, what: str) -> None:
    console.print(f"{time.monotonic() - started:6.1f} s  {what}")


def measure(platform: Platform, folder: Path, asked: argparse.Namespace, started: float) -> dict[str, Any]:
    """All measurements, one after the other, each alone on the machine."""
    send(platform, "warm-up", asked.warm_up)
    starts = platform.ends()
    platform.caught_up(starts, limit_s=120)
    platform.job("rebuild", {"table": REBUILT})
    told(started, f"warmed up with {asked.warm_up:,} records and a rebuild")

    lake_server = platform.process("jobs.server")
    sink = Sink(folder / "loop")
    shutil.rmtree(sink.folder, ignore_errors=True)
    with platform.paused():
        send(platform, "measured", asked.records)
        ends = platform.ends()
        told(started, f"{asked.records:,} records are in the topic")
        loop = run_loop(platform, starts, ends, sink)
        told(started, f"plain loop: {rate(asked.records, loop):,.0f} records/s")
    with Meter([lake_server]) as meter:
        platform.caught_up(ends, limit_s=180)
    ingest = meter.cost
    told(started, f"twinlake: {rate(asked.records, ingest):,.0f} records/s")

    with Meter([lake_server]) as meter:
        rebuilt = platform.job("rebuild", {"table": REBUILT})
    rebuild, rebuild_records = meter.cost, sum(ends.values())
    told(started, f"rebuild of {REBUILT}: {rate(rebuild_records, rebuild):,.0f} records/s")

    with Meter([lake_server]) as meter:
        fresh = freshness.observe(
            orders(platform, "fresh", faults=None, span_ms=0),
            freshness.orders_shown(platform.services),
            services=platform.services,
            topic=TOPIC,
            rate=asked.rate,
            seconds=asked.seconds,
            lead_s=5.0,
        )
    cores = meter.cost.cpu_seconds / meter.cost.seconds
    told(started, f"freshness p50 {fresh.p50_s:.2f} s, p99 {fresh.p99_s:.2f} s at {cores:.2f} cores")

    def some(count: int) -> None:
        send(platform, "small", count)

    one = small.cycle(platform, some, asked.seconds)
    told(
        started,
        f"a cycle of {small.CYCLE_RECORDS:,} records: {one.seconds:.2f} s, {one.cpu_seconds:.2f} CPU-s",
    )
    idle = small.cores_idle(platform, asked.seconds / 2)
    told(started, f"at rest: {idle:.3f} cores")
    restart = small.restart(platform, some)
    told(started, f"kill -9 to the next record in both tables: {restart:.1f} s")

    proof = prove(
        services=platform.services,
        topic=TOPIC,
        sink=sink,
        starts=starts,
        ends=ends,
        all_ends=platform.ends(),
    )
    told(started, f"oracle: {'equal' if proof.equal else 'DIFFERENT'}")
    return {
        "ingest_vs_loop": round(rate(asked.records, ingest) / rate(asked.records, loop), 3),
        "rebuild_vs_loop": round(rate(rebuild_records, rebuild) / rate(asked.records, loop), 3),
        "freshness_p50_s": round(fresh.p50_s, 3),
        "freshness_p99_s": round(fresh.p99_s, 3),
        "query_p50_s": round(fresh.query_p50_s, 3),
        "query_p99_s": round(fresh.query_p99_s, 3),
        "cycle_s": round(one.seconds, 3),
        "cycle_cpu_s": round(one.cpu_seconds, 3),
        "cores_at_2000": round(cores, 2),
        "cores_idle": round(idle, 3),
        "restart_s": round(restart, 1),
        "bulk_per_cpu_vs_loop": round(per_cpu(asked.records, ingest) / per_cpu(asked.records, loop), 3),
        "rebuild_records_per_s": round(rate(rebuild_records, rebuild)),
        "verified": proof.equal and bool(rebuilt["equal"]),
        "records": asked.records,
        "rebuild_records": rebuild_records,
        "cores": os.cpu_count(),
        "loop_commit_records": COMMIT_RECORDS,
        "loop": figures(asked.records, loop),
        "ingest": figures(asked.records, ingest),
        "rebuild": figures(rebuild_records, rebuild),
        "freshness": {**asdict(fresh), "rate": asked.rate},
        "differing": proof.differing,
        "targets": TARGETS,
    }


def orders(platform: Platform, run: str, faults: FaultShares | None, span_ms: int) -> Sample:
    name = f"bench {run} {time.time_ns()}"
    return Sample(seed=13, run=name, schema_id=platform.schema_id, span_ms=span_ms, faults=faults)


def send(platform: Platform, run: str, count: int) -> None:
    """`count` records with faults, event times over the last two hours, as fast as the broker takes them."""
    produce(
        orders(platform, run, FaultShares(), SPAN_MS),
        bootstrap_servers=platform.services.bootstrap_servers,
        topic=TOPIC,
        count=count,
        rate=None,
        stop=Event(),
        report=lambda sent: None,
    )


def run_loop(platform: Platform, starts: dict[int, int], ends: dict[int, int], sink: Sink) -> Cost:
    """The plain loop in a process of its own; it measures itself, without its imports."""
    command = [sys.executable, "-m", "benchmarks.loop", "--topic", TOPIC, "--out", str(sink.folder)]
    command += ["--bootstrap-servers", platform.services.bootstrap_servers]
    command += ["--schema-id", str(platform.schema_id)]
    command += ["--starts", json.dumps(starts), "--ends", json.dumps(ends)]
    project = platform.settings.project
    done = subprocess.run(command, cwd=project, stdout=subprocess.PIPE, text=True, timeout=180, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return Cost(seconds=told["seconds"], cpu_seconds=told["cpu_seconds"], peak_bytes=told["peak_bytes"])


def rate(records: int, cost: Cost) -> float:
    return records / cost.seconds


def per_cpu(records: int, cost: Cost) -> float:
    return records / cost.cpu_seconds


def figures(records: int, cost: Cost) -> dict[str, float]:
    return {
        "records_per_second": round(rate(records, cost)),
        "records_per_cpu_second": round(per_cpu(records, cost)),
        "peak_mib": round(cost.peak_bytes / 2**20),
        "seconds": round(cost.seconds, 2),
        "cpu_seconds": round(cost.cpu_seconds, 2),
    }


def show(result: dict[str, Any]) -> None:
    """The figures as a table, with the targets beside them."""
    table = Table(title=f"{result['records']:,} records, {result['cores']} cores")
    for name in ("", "records/s", "per CPU-second", "peak MiB", "against the loop", "target"):
        table.add_column(name, justify="left" if not name else "right")
    rows = (
        ("plain loop", "loop", None),
        ("twinlake: log and two tables", "ingest", "ingest_vs_loop"),
        (f"rebuild of {REBUILT}", "rebuild", "rebuild_vs_loop"),
    )
    for title, name, against in rows:
        one = result[name]
        table.add_row(
            title,
            f"{one['records_per_second']:,}",
            f"{one['records_per_cpu_second']:,}",
            f"{one['peak_mib']:,}",
            f"{result[against]:.2f}" if against else "1.00",
            f"{TARGETS[against]:.1f}" if against else "",
        )
    console.print(table)
    rest = Table(
        "figure", "measured", "target", title=f"small work, {result['freshness']['rate']:,.0f} records/s"
    )
    for name, target in TARGETS.items():
        rest.add_row(name, f"{result[name]:,}", f"{target:,}")
    console.print(rest)
    wrong = {name: number for name, number in result["differing"].items() if number}
    right = "the oracle finds everything equal"
    console.print(right if result["verified"] else f"DIFFERENT: {wrong or 'the rebuild'}")


if __name__ == "__main__":
    sys.exit(main())
