"""`make bench-references`: joins with a table of 5,000,000 keys against one of 5,000, per row that they read.

A million events, made up by Spark, look for a row of their key: as an AsOfJoin over kept rows, and as a
Derived over a Latest. No service is needed. All is read, in the memory that the SQL server has by default,
then one key. Everything lies in `<state folder>/bench/references`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.kinds import ViewCost, view_cost
from twinlake.cli.output import load_settings
from twinlake.config.sections import Limits
from twinlake.config.settings import Settings
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind, StoredKind
from twinlake.kinds.latest import Latest
from twinlake.kinds.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW, EVENTS = 5_000, 1_000_000
MOST = 2.0
"""Times the seconds per row that is read: with many keys against few, in one run."""
_DAY_MICROS = 86_400_000_000
_REFERENCE_FROM, _EVENTS_FROM = 1_767_139_200_000_000, 1_767_225_600_000_000
_COLUMNS = {name: name for name in ("key", "item", "at", "amount")}
_STORE = Store(keys=("key",), on="at", cell="1 hour")
STORED: Mapping[str, StoredKind] = {
    "events": Events(name="events", inputs=("made",), columns=_COLUMNS, store=_STORE),
    "versions": Events(name="versions", inputs=("made",), columns=_COLUMNS, store=_STORE),
    "newest": Latest(
        name="newest", inputs=("made",), columns=_COLUMNS, keys=("key",), order=("at",),
        values=("item", "amount"),
    ),
}  # fmt: skip
JOINS: tuple[Kind, ...] = (
    AsOfJoin(
        name="as_of_join", left="events", right="versions", on=("key",), how="left",
        columns={"item": "left.item", "other": "right.item"},
    ),
    Derived(
        name="derived", reads=("events", "newest"), keys=("key", "item"), by=("key",),
        columns=("key", "item", "other"),
        sql="SELECT e.key, e.item, n.item AS other FROM events AS e LEFT JOIN newest AS n ON e.key = n.key",
    ),
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.references", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--keys", type=int, default=5_000_000, help="of the large table")
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "references"
    shutil.rmtree(folder, ignore_errors=True)
    from twinlake.spark.session import session

    home, memory = Settings(home=folder / "home"), Limits().sql_memory
    spark = session(home, name="bench-references", memory=memory, cores=2)
    few: dict[str, ViewCost] = {}
    many: dict[str, ViewCost] = {}
    try:
        for keys, found in ((FEW, few), (asked.keys, many)):
            states = write(spark, keys, folder / str(keys))
            for join in JOINS:
                found[join.name] = view_cost(spark, join, STORED, states)
                print(f"{join.name}, {keys:,} keys: {found[join.name].all_s:.2f} s", flush=True)
    finally:
        spark.stop()
    show(few, many, asked.keys)
    return 0


def write(spark: SparkSession, keys: int, folder: Path) -> Mapping[str, str]:
    """The merged states of each table, over as many keys: table -> SQL relation."""
    made = {
        "events": rows(spark, EVENTS, f"pmod(xxhash64(id), {keys})", _EVENTS_FROM),
        **dict.fromkeys(("versions", "newest"), rows(spark, keys, "id", _REFERENCE_FROM)),
    }
    for name, table in STORED.items():
        table.merge(table.partial(made[name])).write.parquet(str(folder / name))
    return {name: f"parquet.`{folder / name}`" for name in STORED}


def rows(spark: SparkSession, count: int, key: str, first: int) -> DataFrame:
    """`count` records of a day, in microseconds from `first` on; record ids."""
    return spark.range(count).selectExpr(
        f"concat('k', {key}) AS key", "concat('item', id) AS item",
        f"timestamp_micros({first} + CAST(id * ({_DAY_MICROS} / {count}) AS BIGINT)) AS at",
        "CAST(pmod(id, 1000) AS DECIMAL(12, 2)) AS amount",
        "0 AS _epoch", "CAST(id % 4 AS INT) AS _partition", "id AS _offset",
        f"timestamp_micros({_EVENTS_FROM}) AS _timestamp",
    )  # fmt: skip


def show(few: Mapping[str, ViewCost], many: Mapping[str, ViewCost], keys: int) -> None:
    shown = Table(title=f"{EVENTS:,} events, a reference table of {FEW:,} and of {keys:,} keys")
    for head in ("join", "few us/row", "many us/row", "x", "at most", "few key s", "many key s"):
        shown.add_column(head, no_wrap=True)
    for name, cost in few.items():
        large = many[name]
        per_row = cost.all_s / (EVENTS + FEW), large.all_s / (EVENTS + keys)
        times = per_row[1] / per_row[0]
        shown.add_row(
            name, *(f"{one * 1e6:.2f}" for one in per_row), f"{times:.2f}",
            f"{MOST} {'ok' if times <= MOST else 'MISSED'}", f"{cost.key_s:.2f}", f"{large.key_s:.2f}",
        )  # fmt: skip
    Console(highlight=False).print(shown)


if __name__ == "__main__":
    sys.exit(main())
