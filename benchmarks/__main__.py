"""`make bench`: what small work costs, with two stored tables and with ten; Twinlake against a plain loop.

Everything runs in `<state folder>/bench`, beside the user's lake; the figures go to `result.json` there.
Figures that are repeated are the median of their repetitions.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import bulk, freshness, many, scale, small
from benchmarks.alongside import alongside
from benchmarks.bulk import Bulk
from benchmarks.freshness import Freshness
from benchmarks.idle import memory_gb
from benchmarks.loop import COMMIT_RECORDS, Sink
from benchmarks.meter import Cost, Meter
from benchmarks.orders import send, steady
from benchmarks.platform import BenchmarkError, Platform
from benchmarks.proof import prove
from benchmarks.small import Cycle
from tests.project import project_in
from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings

REBUILT = ("sales_per_region", "latest_order")
LEAD_S = 5.0
SETTLED_S = 300.0
"""So long after heavy work it is looked how much memory everything has."""
TARGETS = {
    "bulk_cpu_us_per_record": 8.0, "ingest_vs_loop": 2.0, "bulk_per_cpu_vs_loop": 1.35,
    "rebuild_vs_loop": 4.0, "rebuild_records_per_s": 1_000_000, "rebuild_latest_records_per_s": 1_000_000,
    "freshness_p50_s": 0.28, "freshness_p99_s": 0.8, "query_p50_s": 0.06, "query_p99_s": 0.25,
    "first_query_s": small.FIRST_QUERY_S,
    "cycle_s": 0.2, "cycle_cpu_s": 0.1, "table_cpu_s": 0.025, "ten_tables_vs_one": 4.0, "cycle_growth": 1.2,
    "freshness_ten_tables_p50_s": 0.5, "freshness_beside_rebuild": 1.25,
    "cores_at_2000": 0.35, "cores_idle": 0.02, "restart_s": 9.0, "memory_gb": 3.0,
}  # fmt: skip
console = Console(highlight=False)


@dataclass(kw_only=True)
class Measured:
    """What was measured, each repetition by itself."""

    cycles: list[Cycle] = field(default_factory=list)
    fresh: list[Freshness] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    bulks: list[Bulk] = field(default_factory=list)
    first_queries: list[float] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)
    rebuilds: dict[str, Cost] = field(default_factory=dict)
    rebuilds_equal: bool = True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=2_000_000, help="of each repetition against the loop")
    parser.add_argument("--warm-up", type=int, default=400_000, help="records before, of the same shape")
    parser.add_argument("--rate", type=float, default=2_000.0, help="records/s while freshness is measured")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each small figure is measured")
    parser.add_argument("--settle", type=float, default=SETTLED_S, help="seconds of peace before memory")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions of cycle, freshness and bulk")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the services are stopped then too
    folder = load_settings().home / "bench"
    started = time.monotonic()
    project = many.project_with_contracts(
        folder / "project", {copy.name: many.SALES.name for copy in many.COPIES}
    )
    with Platform(Settings(home=folder / "home", in_project=project_in(project))) as platform:
        report(started, "services are up")
        result = measure(platform, folder, asked, started)
    result["seconds"] = round(time.monotonic() - started, 1)
    replace_file(folder / "result.json", json.dumps(result, indent=2) + "\n")
    show(result)
    console.print(f"written to {folder / 'result.json'}; {result['seconds']:.0f} s in all")
    return 0 if result["verified"] else 1


def report(started: float, what: str) -> None:
    console.print(f"{time.monotonic() - started:6.1f} s  {what}")


def measure(platform: Platform, folder: Path, asked: argparse.Namespace, started: float) -> dict[str, Any]:
    """All measurements, one after the other, each alone on the machine."""
    lake_server, sink, all_of = platform.process("twinlake.server"), Sink(folder / "loop"), Measured()

    def cycle() -> Cycle:
        one = small.cycle(platform, asked.seconds)
        report(
            started,
            f"a cycle of {small.CYCLE_RECORDS:,} records from step {one.first_step:,} on: "
            f"{one.seconds:.2f} s, {one.cpu_seconds:.2f} CPU-s",
        )
        return one

    def fresh(words: str) -> tuple[Freshness, float]:
        with Meter([lake_server]) as meter:
            found = freshness.observe(
                steady(platform, "fresh"), freshness.orders_shown(platform.services), platform,
                rate=asked.rate, seconds=asked.seconds, lead_s=LEAD_S,
            )  # fmt: skip
        cores = meter.cost.cpu_seconds / meter.cost.seconds
        report(
            started,
            f"freshness {words}p50 {found.p50_s:.2f} s, p99 {found.p99_s:.2f} s at {cores:.2f} cores; "
            f"its view query p50 {found.query_p50_s:.3f} s, p99 {found.query_p99_s:.3f} s",
        )
        return found, cores

    send(platform, "warm-up", asked.warm_up)
    platform.caught_up(platform.ends(), limit_s=120)
    platform.job("rebuild", {"table": REBUILT[0]})
    report(started, f"warmed up with {asked.warm_up:,} records and a rebuild")

    small.cycle(platform, asked.seconds)  # how a cycle grows is not to be hidden by how Java warms up
    all_of.cycles.append(cycle())
    with many.ten_tables(platform):
        report(started, f"{len(many.COPIES)} further tables are live")
        ten_fresh, _ = fresh("with ten tables ")
        ten_cycle = cycle()
    report(started, "they are retired")

    for _ in range(asked.repeat):
        all_of.bulks.append(bulk.against_loop(platform, sink, asked.records))
        one = all_of.bulks[-1]
        report(
            started,
            f"bulk: plain loop {one.loop_rate:,.0f}, two of them {one.loops_rate:,.0f}, twinlake "
            f"{one.rate:,.0f} records/s, {one.vs_loop:.2f}; {one.micros_per_record:.1f} CPU-us a record; "
            f"steps: {one.steps.in_memory} in memory, {one.steps.by_spark} by Spark",
        )
    starts, ends = one.starts, one.ends
    for table in REBUILT:
        with Meter([lake_server]) as meter:
            all_of.rebuilds_equal &= bool(platform.job("rebuild", {"table": table})["equal"])
        all_of.rebuilds[table] = meter.cost
        report(started, f"rebuild of {table}: {sum(ends.values()) / meter.cost.seconds:,.0f} records/s")

    for _ in range(asked.repeat):
        found, cores = fresh("")
        all_of.fresh.append(found)
        all_of.cores.append(cores)
    with alongside(lambda: rebuild_again(platform, REBUILT[0])):
        beside, _ = fresh("beside rebuilds ")
    for _ in range(asked.repeat - 1):
        all_of.cycles.append(cycle())
    idle = small.cores_idle(platform, asked.seconds)
    report(started, f"at rest: {idle:.3f} cores")
    time.sleep(max(0.0, asked.settle - asked.seconds))
    memory = memory_gb(platform.settings, without=("console",))
    report(started, f"{asked.settle:.0f} s after heavy work: {memory:.2f} GB, without Airflow and console")
    for _ in range(asked.repeat):
        all_of.first_queries.append(small.first_query_after_a_kill(platform))
        report(started, f"first query after a start: {all_of.first_queries[-1]:.2f} s")
    for _ in range(asked.repeat):
        time.sleep(small.STEADY_S)
        all_of.restarts.append(small.restart(platform))
        report(started, f"kill -9 to the next record in both tables: {all_of.restarts[-1]:.1f} s")

    proof = prove(
        services=platform.services, topic=platform.topic, sink=sink, starts=starts, ends=ends,
        all_ends=platform.ends(),
    )  # fmt: skip
    report(started, f"oracle: {'equal' if proof.equal else 'DIFFERENT'}")
    two_tables = median(one.cpu_seconds for one in all_of.cycles)
    each_more = (ten_cycle.cpu_seconds - two_tables) / len(many.COPIES)
    return {
        **figures(all_of, sum(ends.values())),
        "table_cpu_s": round(each_more, 3),
        "freshness_ten_tables_p50_s": round(ten_fresh.p50_s, 3),
        "freshness_beside_rebuild": round(beside.p50_s / median(one.p50_s for one in all_of.fresh), 2),
        "ten_tables_vs_one": round(ten_cycle.cpu_seconds / (two_tables - each_more), 2),
        "cores_idle": round(idle, 3),
        "memory_gb": round(memory, 2),
        "verified": proof.equal and all_of.rebuilds_equal,
        "differing": proof.differing,
        "stored": [scale.held(path) for path in (platform.log, *platform.stored())],
        "records": asked.records,
        "rebuild_records": sum(ends.values()),
        "rate": asked.rate,
        "cores": os.cpu_count(),
        "loop_commit_records": COMMIT_RECORDS,
        "freshness_ten_tables": asdict(ten_fresh),
        "freshness_beside_rebuilds": asdict(beside),
        "targets": TARGETS,
    }


def rebuild_again(platform: Platform, table: str) -> None:
    """All of the table's history; BenchmarkError where that finds a difference."""
    if not platform.job("rebuild", {"table": table})["equal"]:
        raise BenchmarkError(f"a rebuild of {table} beside the stream found a difference")


def figures(measured: Measured, rebuilt_records: int) -> dict[str, Any]:
    """The figures that were repeated, as medians, and every repetition."""
    bulks, fresh, cycles = measured.bulks, measured.fresh, measured.cycles
    sales, latest = (measured.rebuilds[table] for table in REBUILT)
    repeated = {
        "bulk_cpu_us_per_record": [round(one.micros_per_record, 1) for one in bulks],
        "ingest_vs_loop": [round(one.vs_loop, 3) for one in bulks],
        "bulk_per_cpu_vs_loop": [round(one.per_cpu_vs_loop, 3) for one in bulks],
        "freshness_p50_s": [round(one.p50_s, 3) for one in fresh],
        "freshness_p99_s": [round(one.p99_s, 3) for one in fresh],
        "query_p50_s": [round(one.query_p50_s, 3) for one in fresh],
        "query_p99_s": [round(one.query_p99_s, 3) for one in fresh],
        "first_query_s": [round(seconds, 2) for seconds in measured.first_queries],
        "restart_s": [round(seconds, 1) for seconds in measured.restarts],
        "cores_at_2000": [round(cores, 2) for cores in measured.cores],
        "cycle_s": [round(one.seconds, 3) for one in cycles],
        "cycle_cpu_s": [round(one.cpu_seconds, 3) for one in cycles],
    }
    loop_rate = median(one.loop_rate for one in bulks)
    return {
        **{name: median(values) for name, values in repeated.items()},
        "cycle_growth": round(cycles[-1].seconds / cycles[0].seconds, 2),
        "cycle_growth_steps": [cycles[0].first_step, cycles[-1].first_step],
        "rebuild_vs_loop": round(rebuilt_records / sales.seconds / loop_rate, 3),
        "rebuild_records_per_s": round(rebuilt_records / sales.seconds),
        "rebuild_latest_records_per_s": round(rebuilt_records / latest.seconds),
        "repetitions": repeated,
        "bulk_steps": [asdict(one.steps) for one in bulks],
        "loop": told_cost(bulks[-1].records, bulks[-1].loop),
        "loops": told_cost(bulks[-1].records, bulks[-1].loops),
        "ingest": told_cost(bulks[-1].records, bulks[-1].ingest),
        "rebuild": told_cost(rebuilt_records, sales),
        "freshness": asdict(fresh[-1]),
    }


def told_cost(records: int, cost: Cost) -> dict[str, float]:
    return {
        "records_per_second": round(records / cost.seconds),
        "records_per_cpu_second": round(records / cost.cpu_seconds),
        "peak_mib": round(cost.peak_bytes / 2**20),
        "seconds": round(cost.seconds, 2),
        "cpu_seconds": round(cost.cpu_seconds, 2),
    }


def show(result: dict[str, Any]) -> None:
    """The figures as a table, with the targets beside them."""
    title = f"{result['records']:,} records in bulk, {result['cores']} cores (the last repetition)"
    table = Table("", title=title)
    for name in ("records/s", "per CPU-second", "peak MiB"):
        table.add_column(name, justify="right")
    rows = {
        "loop": "plain loop", "loops": "two plain loops, partitions divided",
        "ingest": "twinlake: log and two tables", "rebuild": f"rebuild of {REBUILT[0]}",
    }  # fmt: skip
    for name, words in rows.items():
        one = result[name]
        shown = (one["records_per_second"], one["records_per_cpu_second"], one["peak_mib"])
        table.add_row(words, *(f"{value:,}" for value in shown))
    console.print(table)
    rest = Table("figure", "measured", "target", "repetitions", title=f"{result['rate']:,.0f} records/s")
    for name, target in TARGETS.items():
        each = ", ".join(f"{value:,}" for value in result["repetitions"].get(name, ()))
        rest.add_row(name, f"{result[name]:,}", f"{target:,}", each)
    console.print(rest)
    wrong = {name: number for name, number in result["differing"].items() if number}
    right = "the oracle finds everything equal"
    console.print(right if result["verified"] else f"DIFFERENT: {wrong or 'a rebuild'}")


if __name__ == "__main__":
    sys.exit(main())
