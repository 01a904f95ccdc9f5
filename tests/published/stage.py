"""A lake whose server publishes tables of every kind, and what other engines read of them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.project import PROJECT, TABLES
from tests.releases.lake import Lake, following_sql_server, order
from tests.releases.promised import project_of
from twinlake.base.errors import TwinlakeError
from twinlake.base.location import Location
from twinlake.base.waiting import wait_for
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.derived import Derived
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.windows import Hopping
from twinlake.lake.delta.table_state import TableState

SALES, LATEST, EVENTS = "sales_per_region", "latest_order", "orders"
PAID, HOPS, VISITS = "customers_per_region", "hops", "visits"
DEFINED: dict[str, Any] = {table.name: table for table in TABLES}
DEFINED[LATEST] = replace(DEFINED[LATEST], delete_when="status = 'cancelled'")
DEFINED[PAID] = Derived(
    name=PAID, reads=(LATEST,), columns=("region", "customers"), keys=("region",), by=("region",),
    sql=f"SELECT region, count(*) AS customers FROM {LATEST} GROUP BY region",
)  # fmt: skip
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


class Stage:
    """The lake server, and what has been appended."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home = spark, home
        self.batches = 0
        self._sql = following_sql_server(home / "lake")
        self._sql_url = self._sql.__enter__()
        self.lake = self._opened()

    def _opened(self) -> Lake:
        promised = {
            PAID: {"region": "string", "customers": "bigint"},
            HOPS: {"region": "string", "window_start": "timestamp", "window_end": "timestamp",
                   "customers": "bigint", "half": "double", "final": "boolean"},
            VISITS: {"customer": "string", "session_start": "timestamp", "session_end": "timestamp",
                     "orders": "bigint", "final": "boolean"},
        }  # fmt: skip
        project = project_of(self.home / "project", promised)
        for table in (SALES, LATEST):
            shutil.copy(PROJECT / "contracts" / f"{table}.yaml", project / "contracts")
        return Lake(self.spark, self.home, self._sql_url, project)

    def restart(self) -> None:
        self.lake.stop()
        records = self.lake.ingest._records
        self.lake = self._opened()
        self.lake.ingest._records = records

    def close(self) -> None:
        self.lake.stop()
        self._sql.__exit__(None, None, None)

    def append(self, *numbers: int, **changed: Any) -> None:
        self.batches += 1
        self.lake.append([order(number, **changed) for number in numbers])

    def publish(self, table: str) -> Path:
        self.lake.do("publish", table=table)
        return self.path(table)

    def path(self, table: str) -> Path:
        return self.home / "lake" / "published" / table

    def status(self, table: str) -> dict[str, Any]:
        found: dict[str, Any]
        (found,) = (one for one in self.lake.server.status()["published"] if one["table"] == table)
        return found

    def until_published(self, table: str) -> dict[str, Any]:
        """How it is once all batches are published, in the live release."""

        def there() -> dict[str, Any] | None:
            found = self.status(table)
            live = self.lake.server.status()["release"]["number"]
            at = (found["position"], found["release"])
            return found if at == ({"orders": self.batches}, live) else None

        return wait_for(f"{table} to be published", there, 90, remedy=str(self.status(table)))

    def until_refused(self, table: str, kind: type[TwinlakeError]) -> dict[str, str]:
        def what() -> dict[str, str] | None:
            error = self.status(table)["error"] or {}
            return error if error.get("error") == kind.__name__ else None

        return wait_for(f"{table} to be refused", what, 90)

    def view(self, table: str) -> Rows:
        """All rows and columns that the live version shows now."""
        open_lake = self.lake.server.lake
        version = open_lake.version(table)
        opened = open_lake.versions.opened(version)
        shown = opened.view(open_lake.versions.pin(version)).select(*opened.definition.output)
        return rows_of(shown.toArrow().to_pylist())

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
    """The metadata of each commit, oldest first."""
    found = []
    for file in sorted((path / "_delta_log").glob("*.json")):
        info = json.loads(file.read_text().splitlines()[0])["commitInfo"]
        found.append(json.loads(info["userMetadata"]))
    return found
