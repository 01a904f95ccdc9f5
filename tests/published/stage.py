"""A lake whose server publishes tables of every kind, and what other engines read of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.releases.lake import order
from tests.releases.table_stage import DEFINED as SOME
from tests.releases.table_stage import SALES, TableStage
from twinlake.base.location import Location
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.windows import Hopping
from twinlake.lake.delta.table_state import TableState

EVENTS, HOPS, VISITS = "orders", "hops", "visits"
DEFINED: dict[str, Any] = {**SOME}
DEFINED[HOPS] = Aggregate(
    name=HOPS, inputs=("orders",), columns={"region": "nullif(region, 'r0')", "at": "ordered_at",
                                            "customer": "customer", "half": "order_id / 2.0D"},
    keys=("region",), window=Hopping(on="at", size="10 minutes", every="5 minutes"), retention="400 days",
    measures={"customers": CountDistinct("customer"), "half": Sum("half")},
)  # fmt: skip
DEFINED[VISITS] = Sessions(
    name=VISITS, inputs=("orders",), columns={"customer": "customer", "at": "ordered_at"}, keys=("customer",),
    on="at", gap="30 seconds", grid="1 day", measures={"orders": Count()},
)  # fmt: skip
NONE = "nothing"
DEFINED[NONE] = replace(DEFINED[SALES], name=NONE, where="status = 'pending'")
CHANGED = {**DEFINED, SALES: replace(DEFINED[SALES], where="status <> 'cancelled'")}
Rows = Counter[tuple[Any, ...]]


class Stage(TableStage):
    """The lake server, and what has been appended."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.batches = 0
        super().__init__(spark, home, "published", {
            HOPS: {"region": "string", "window_start": "timestamp", "window_end": "timestamp",
                   "customers": "bigint", "half": "double", "final": "boolean"},
            VISITS: {"customer": "string", "session_start": "timestamp", "session_end": "timestamp",
                     "orders": "bigint", "final": "boolean"},
        })  # fmt: skip

    def append(self, *numbers: int, **changed: Any) -> None:
        self.batches += 1
        self.lake.append([order(number, **changed) for number in numbers])

    def publish(self, table: str) -> Path:
        self.lake.do("publish", table=table)
        return self.path(table)

    def path(self, table: str) -> Path:
        return self.home / "lake" / "published" / table

    def until_published(self, table: str) -> dict[str, Any]:
        """How it is once all batches are published, in the live release."""
        return self.until_at(table, self.batches)

    def view(self, table: str) -> Rows:
        """All rows and columns that the live version shows now."""
        opened, view = self.opened(table)
        return rows_of(view.select(*opened.definition.output).toArrow().to_pylist())

    def rows(self, table: str) -> Rows:
        """What is published, which three engines agree about."""
        path = self.path(table)
        found = by_deltalake(path)
        assert by_polars(path) == found
        assert by_duckdb(path) == found
        return found


def by_deltalake(path: Location, version: int | None = None) -> Rows:
    return rows_of(DeltaTable(str(path), version=version).to_pyarrow_table().to_pylist())


def by_polars(path: Location) -> Rows:
    return rows_of(polars.scan_delta(str(path)).collect().to_dicts())


def by_duckdb(path: Location) -> Rows:
    """By the files that the log names: DuckDB's own reader of Delta is an extension that is downloaded."""
    table = DeltaTable(str(path))
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if not (files := table.file_uris()):
            return Counter()
        found = connection.execute("SELECT * FROM read_parquet(?)", [files])
        names = [column[0] for column in found.description or ()]
        return rows_of(dict(zip(names, row, strict=True)) for row in found.fetchall())


def rows_of(found: Any) -> Rows:
    return Counter(tuple((name, _plain(value)) for name, value in row.items()) for row in found)


def _plain(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def files_of(path: Path) -> dict[str, int]:
    return {name: file.bytes for name, file in TableState(path, appends=False).files.items()}


def commits_of(path: Path) -> list[dict[str, Any]]:
    """The metadata of each commit of ours, oldest first."""
    found = []
    for file in sorted((path / "_delta_log").glob("*.json")):
        info = json.loads(file.read_text().splitlines()[0])["commitInfo"]
        if "userMetadata" in info:
            found.append(json.loads(info["userMetadata"]))
    return found
