"""`make bench-kinds`: what each kind and each measure costs, against counting and summing the same records.

The records are made up by Spark and lie in a Parquet file; no service is needed. A table's history is cut
into steps, as the speed layer does, then merged into one state, as the batch layer does; its view is read
over both.
Everything lies in `<state folder>/bench/kinds`, the figures in `kinds.json` there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.subjects import BASE, END, MEASURED, STORED, VIEWS, records
from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings
from twinlake.kinds.kind import Kind, StoredKind, ViewClock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPEATED = 3
MOST = {"hot_key": 1.5, "first": 1.5, "last": 1.5, "arg_min": 1.5, "arg_max": 1.5}
"""The most that a partial may cost, as a multiple of Count and Sum; MOST_OF_ANY for other measures."""
MOST_OF_ANY = 5.0
OF_HOPPING = (
    ("written, times as long as tumbling tiles", 1.5),
    ("read over steps, times as long as before", 1.2),
    ("read over their merge, times as long as before", 1.2),
    ("bytes, times those of tumbling tiles", 1.5),
)
"""What windows that overlap may cost, see `hopping`."""
console = Console(highlight=False)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """`times_base` is the partial's seconds against those of Count and Sum in the same run."""

    table: str
    records_per_s: float
    times_base: float
    view_steps_s: float
    view_merged_s: float
    bytes_per_record: float

    @property
    def most(self) -> float | None:
        return MOST.get(self.table, MOST_OF_ANY if self.table in MEASURED else None)


@dataclass(frozen=True, kw_only=True)
class ViewCost:
    """A view kind over merged states: all of it, and where one key is asked for. Seconds."""

    table: str
    all_s: float
    key_s: float


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kinds", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=20, help="into which they are cut")
    parser.add_argument(
        "--only", default="", help="tables to measure, by comma; a view kind needs what it reads"
    )
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "kinds"
    shutil.rmtree(folder, ignore_errors=True)
    from twinlake.spark.session import session

    spark = session(Settings(home=folder / "home"), name="bench-kinds", memory="4g", cores=2)
    wanted = {name for name in asked.only.split(",") if name}
    try:
        records(spark, asked.records).write.parquet(str(folder / "records"))
        rows = spark.read.parquet(str(folder / "records"))
        partial_seconds(BASE, rows)  # the first of all warms what all need
        base, found = partial_seconds(BASE, rows), []
        for table in STORED:
            if not wanted or table.name in wanted:
                found.append(
                    measured(spark, table, rows, asked.records, asked.steps, base, folder / table.name)
                )
                console.print(f"{table.name}: {found[-1].records_per_s:,.0f} records/s")
        views = [
            over_tables(spark, table, folder)
            for table in VIEWS
            if not wanted or {table.name, *table.reads} <= wanted
        ]
    finally:
        spark.stop()
    result = {"stored": list(map(asdict, found)), "views": list(map(asdict, views))}
    replace_file(folder / "kinds.json", json.dumps(result, indent=2) + "\n")
    show(found)
    for (name, most), times in zip(OF_HOPPING, hopping({one.table: one for one in found}), strict=False):
        console.print(f"hopping: {name}: {times:.2f}, target {most} {'ok' if times <= most else 'MISSED'}")
    show_views(views)
    return 0


def measured(
    spark: SparkSession, table: StoredKind, rows: DataFrame, count: int, steps: int, base: float, folder: Path
) -> Cost:
    """The partial of all records at once; the view over the states of every step, and over their merge."""
    seconds = partial_seconds(table, rows)
    stepped, merged = folder / "steps", folder / "merged"
    for step in range(steps):
        cut = rows.where(f"_offset % {steps} = {step}")
        table.partial(cut).coalesce(1).write.mode("append").parquet(str(stepped))
    table.merge(spark.read.parquet(str(stepped))).coalesce(1).write.parquet(str(merged))
    return Cost(
        table=table.name,
        records_per_s=round(count / seconds),
        times_base=round(seconds / base, 2),
        view_steps_s=view_seconds(spark, table, stepped),
        view_merged_s=view_seconds(spark, table, merged),
        bytes_per_record=round(sum(file.stat().st_size for file in stepped.glob("*.parquet")) / count, 1),
    )


def partial_seconds(table: StoredKind, rows: DataFrame) -> float:
    return timed(lambda: table.partial(rows).write.format("noop").mode("overwrite").save())


def view_seconds(spark: SparkSession, table: StoredKind, states: Path) -> float:
    relation = table.gathered(f"parquet.`{states}`")
    return read_seconds(spark, table.view({table.name: relation}, ViewClock()))


def read_seconds(spark: SparkSession, query: str) -> float:
    return round(timed(lambda: spark.sql(query).write.format("noop").mode("overwrite").save()), 2)


def over_tables(spark: SparkSession, table: Kind, folder: Path) -> ViewCost:
    """The view over the merged states of the tables that it reads."""
    states = {name: f"parquet.`{folder / name / 'merged'}`" for name in table.reads}
    return view_cost(spark, table, {one.name: one for one in STORED}, states)


def view_cost(
    spark: SparkSession, table: Kind, stored: Mapping[str, StoredKind], states: Mapping[str, str]
) -> ViewCost:
    """The view over these states (SQL by table) of stored tables."""
    bound = table.bound({name: stored[name] for name in table.reads})
    view_clock = ViewClock(watermarks={"made": END})
    views = {name: f"({stored[name].view({name: states[name]}, view_clock)})" for name in bound.reads}
    text = bound.view(states if bound.reads_states else views, view_clock)
    asked = f"SELECT * FROM ({text}) WHERE key = 'k7'"
    return ViewCost(table=bound.name, all_s=read_seconds(spark, text), key_s=read_seconds(spark, asked))


def timed(work: Callable[[], None]) -> float:
    """Seconds, the median of some runs after one that warms up."""
    took = []
    for _ in range(1 + REPEATED):
        began = time.monotonic()
        work()
        took.append(time.monotonic() - began)
    return median(took[1:])


def show(found: list[Cost]) -> None:
    shown = Table(title="of a view: seconds over every step's states, and over their merge")
    for head in ("table", "records/s", "x base", "at most", "steps s", "merged s", "B/record"):
        shown.add_column(head, no_wrap=True)
    for one in found:
        shown.add_row(
            one.table, f"{one.records_per_s:,.0f}", f"{one.times_base:.2f}", _judged(one),
            f"{one.view_steps_s:.2f}", f"{one.view_merged_s:.2f}", f"{one.bytes_per_record:.1f}",
        )  # fmt: skip
    console.print(shown)


def _judged(one: Cost) -> str:
    return "" if one.most is None else f"{one.most} {'ok' if one.times_base <= one.most else 'MISSED'}"


def hopping(found: Mapping[str, Cost]) -> tuple[float, ...]:
    """Windows that overlap against tumbling ones of their tiles, and against how they were stored before
    tiles; nothing where one of the three was not measured."""
    try:
        now, tiles, before = (found[name] for name in ("hopping", "tumbling_tiles", "hopping_before"))
    except KeyError:
        return ()
    return (
        tiles.records_per_s / now.records_per_s, now.view_steps_s / before.view_steps_s,
        now.view_merged_s / before.view_merged_s, now.bytes_per_record / tiles.bytes_per_record,
    )  # fmt: skip


def show_views(found: list[ViewCost]) -> None:
    shown = Table(title="view kinds over merged states: all rows, and those of one key")
    for head in ("table", "all s", "one key s"):
        shown.add_column(head, no_wrap=True)
    for one in found:
        shown.add_row(one.table, f"{one.all_s:.2f}", f"{one.key_s:.2f}")
    console.print(shown)


if __name__ == "__main__":
    sys.exit(main())
