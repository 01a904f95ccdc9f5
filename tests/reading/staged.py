"""A lake of four tables that goes on while readers follow it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from pyspark.sql import SparkSession

from tests.history import LATEST as LATEST_ORDER
from tests.history import SALES as SALES_PER_REGION
from tests.history import version_of
from tests.project import OURS
from tests.reading.conftest import PASSWORD, SqlServer
from tests.written_log import write_batch
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind, is_stored
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.log.log import Log
from twinlake.speed.advance import Standing, advance
from twinlake.topics.topic import load_topic

SALES, LATEST, PAID, CUSTOMERS = "sales_per_region", "latest_order", "paid", "customers_per_region"
TABLES: dict[str, Kind] = {
    SALES: SALES_PER_REGION,
    LATEST: replace(LATEST_ORDER, delete_when="status = 'cancelled'"),
    PAID: Events(
        name=PAID, inputs=("orders",), columns={"customer": "customer", "amount": "amount"},
        where="status = 'paid'",
    ),
    CUSTOMERS: Derived(
        name=CUSTOMERS, reads=(LATEST,), columns=("status", "customers"), keys=("status",), by=("status",),
        sql=f"SELECT status, count(*) AS customers FROM {LATEST} GROUP BY status",
    ),
}  # fmt: skip
CHANGED = {**TABLES, SALES: replace(SALES_PER_REGION, where="region <> 'south'")}


class Stage:
    """A lake that goes on while readers follow it."""

    def __init__(self, spark: SparkSession, lake: Path) -> None:
        self.spark, self.lake = spark, lake
        formats.acquire(lake)
        self.log = Log(spark, lake, load_topic("orders", OURS))
        self.feeds: dict[tuple[str, str], tuple[MaintainedVersion, Standing]] = {}
        self.append(20)
        self.versions = self.build(TABLES, {})
        self.promote(self.versions)

    def build(self, tables: dict[str, Kind], known: dict[str, Version]) -> dict[str, Version]:
        made = dict(known)
        for build, (name, table) in enumerate(tables.items(), start=1 + len(self.feeds)):
            version = replace(
                version_of(table), topics=("orders",), build=build,
                reads={read: made[read].name for read in table.reads},
            )  # fmt: skip
            version.save(self.lake)
            made[name] = version
            if is_stored(table):
                feed = open_version(self.lake, version, {"orders": self.log})
                assert isinstance(feed, MaintainedVersion)
                self.feeds[name, version.name] = feed, advance(feed, Standing(), self.log.end())
        return made

    def promote(self, versions: dict[str, Version], kind: Any = "promote") -> int:
        before = release_log.live(self.lake)
        number = before.number + 1 if before else 1
        tables = {name: version.name for name, version in versions.items()}
        release_log.commit(self.lake, Release(
            number=number, kind=kind, created_at="2026-01-31T12:00:30Z", approved_by="me", tables=tables,
        ))  # fmt: skip
        return number

    def append(self, records: int, **fields: str) -> int:
        write_batch(self.log, records, **fields)
        for key, (feed, at) in self.feeds.items():
            self.feeds[key] = feed, advance(feed, at, self.log.end())
        return self.log.end()


def shown(server: SqlServer, table: str, user: str = "analyst") -> dict[tuple[Any, ...], dict[str, Any]]:
    """What the table's view shows now, without what follows the watermark."""
    answer = httpx.post(
        f"{server.url}/query", json={"sql": f"SELECT * FROM {table}"}, timeout=120, trust_env=False,
        headers={"X-Twinlake-Query": "1"}, auth=(user, PASSWORD),
    )  # fmt: skip
    assert answer.is_success, answer.text
    rows = [{name: value for name, value in row.items() if name != "final"} for row in answer.json()["rows"]]
    keys = {SALES: ("region", "window_start"), LATEST: ("customer",), CUSTOMERS: ("status",)}.get(
        table, ("_epoch", "_partition", "_offset")
    )
    return {tuple(row[key] for key in keys): row for row in rows}
