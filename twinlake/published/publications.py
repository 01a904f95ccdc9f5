"""Publications: which tables are published, in files of the lake, and their publishers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twinlake.base.errors import UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.batch.maintain import clean_table
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.table_workers import TableWorkers, opened_live
from twinlake.published.folder import plain, refuse_types
from twinlake.published.publisher import Publisher

FOLDER = "published"


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One that is on: it is published until somebody stops it, by whichever server runs."""

    table: str
    started_at: str


class Publications(TableWorkers[Publication, Publisher]):
    """Implements `lake.open_lake.RunningPublications`, by files in `<lake>/publications`; how far each is, is
    in the commits of `<lake>/published/<table>` alone."""

    def __init__(self, lake: Location, lake_id: str) -> None:
        super().__init__(lake / "publications", Publication)
        self._lake = lake
        self._lake_id = lake_id

    def start(self, lake: OpenLake, table: str, run: Run) -> dict[str, Any]:
        with self._lock:
            if table not in self._workers:
                self._refuse(lake, table, run)
                self._put(lake, Publication(table=table, started_at=lake.clock().isoformat()))
            return self._workers[table].status()

    def stop(self, table: str) -> dict[str, Any]:
        with self._lock:
            return self._drop(self._worker(table, f"table {table} is not published", "tables that are"))

    def clean_up(self, lake: OpenLake, table: str | None = None) -> int:
        """Deletes what commits have replaced, once no reader can need it; how many commit files went."""
        gone = 0
        for name, one in self._workers.copy().items():
            if table in (None, name) and one.folder.exists:
                gone += clean_table(lake, one.folder.path)
        return gone

    def _made(self, lake: OpenLake, one: Publication) -> Publisher:
        return Publisher(lake, self._lake_id, one.table, self._lake / FOLDER / one.table)

    def _refuse(self, lake: OpenLake, table: str, run: Run) -> None:
        """Before anything is made: everything that can be known to be wrong."""
        if not isinstance(self._lake, Path):
            raise UsageError(
                f"table {table} cannot be published",
                f"the lake is in {self._lake}, and tables are published in a folder of a disk alone",
                "have readers ask the SQL server, or read an extract",
            )  # fmt: skip
        opened = opened_live(lake, table)
        view = opened.view(lake.versions.pin(opened.version, run))
        refuse_types(table, plain(view.schema))
