"""A lake whose server has table workers, changelogs or published tables, and what it says of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.project import PROJECT, TABLES
from tests.releases.lake import Lake, following_sql_server
from tests.releases.promised import project_of
from twinlake.base.errors import TimedOutError, TwinlakeError
from twinlake.base.waiting import wait_for
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.maintained_version import Opened

SALES, LATEST, PAID = "sales_per_region", "latest_order", "customers_per_region"
DEFINED: Mapping[str, Kind] = {table.name: table for table in TABLES} | {
    LATEST: replace(
        next(table for table in TABLES if table.name == LATEST), delete_when="status = 'cancelled'"
    ),
    PAID: Derived(
        name=PAID, reads=(LATEST,), columns=("region", "customers"), keys=("region",), by=("region",),
        sql=f"SELECT region, count(*) AS customers FROM {LATEST} GROUP BY region",
    ),
}  # fmt: skip


class TableStage:
    """`workers` is what the status calls them; `promised` has the columns of tables without a contract."""

    def __init__(
        self, spark: SparkSession, home: Path, workers: str, promised: Mapping[str, Mapping[str, str]],
        **services: str,
    ) -> None:  # fmt: skip
        self.spark, self.home = spark, home
        self._workers, self._services = workers, services
        self._promised = {PAID: {"region": "string", "customers": "bigint"}, **promised}
        self._sql = following_sql_server(home / "lake")
        self._sql_url = self._sql.__enter__()
        self.lake = self._opened()

    def _opened(self) -> Lake:
        project = project_of(self.home / "project", self._promised)
        for table in (SALES, LATEST):
            shutil.copy(PROJECT / "contracts" / f"{table}.yaml", project / "contracts")
        return Lake(self.spark, self.home, self._sql_url, project, **self._services)

    def restart(self) -> None:
        self.lake.stop()
        records = self.lake.ingest._records
        self.lake = self._opened()
        self.lake.ingest._records = records

    def close(self) -> None:
        self.lake.stop()
        self._sql.__exit__(None, None, None)

    def status(self, table: str) -> dict[str, Any]:
        found: dict[str, Any]
        (found,) = (one for one in self.lake.server.status()[self._workers] if one["table"] == table)
        return found

    def until_at(self, table: str, batch: int) -> dict[str, Any]:
        """How its worker is once it is at this batch, in the live release."""

        def there() -> dict[str, Any] | None:
            found = self.status(table)
            live = self.lake.server.status()["release"]["number"]
            at = (found["position"], found["release"])
            return found if at == ({"orders": batch}, live) else None

        try:
            return wait_for(f"{self._workers}: {table}", there, 90)
        except TimedOutError as error:
            raise TimedOutError(error.what, f"it is at {self.status(table)}", error.remedy) from None

    def until_error(self, table: str, kind: type[TwinlakeError]) -> dict[str, str]:
        """What is wrong with its worker, once it is an error of this kind."""

        def what() -> dict[str, str] | None:
            error = self.status(table)["error"] or {}
            return error if error.get("error") == kind.__name__ else None

        return wait_for(f"{self._workers}: {table} to be refused", what, 90)

    def end_all(self, kind: str) -> None:
        """None is on, by jobs of this kind."""
        for one in self.lake.server.status()[self._workers]:
            self.lake.do(kind, table=one["table"], stop=True)

    def opened(self, table: str) -> tuple[Opened, Any]:
        """The live version, and its view now."""
        open_lake = self.lake.server.lake
        version = open_lake.version(table)
        opened = open_lake.versions.opened(version)
        return opened, opened.view(open_lake.versions.pin(version))
