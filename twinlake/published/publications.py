"""Publications: which tables are published, in files of the lake, and their publishers."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structlog

from twinlake.base.errors import NotFoundError, UsageError
from twinlake.base.job import Run
from twinlake.base.location import Location
from twinlake.batch.maintain import clean_table
from twinlake.lake.catalog import release_log
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.storage import store
from twinlake.published.folder import plain, refuse_types
from twinlake.published.publisher import Publisher

journal = structlog.get_logger(__name__)
FOLDER = "published"


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One that is on: it is published until somebody stops it, by whichever server runs."""

    table: str
    started_at: str


class Publications:
    """Implements `lake.open_lake.RunningPublications`. `<lake>/publications/<table>.json` is there while one
    is on; how far it is, is in the commits of `<lake>/published/<table>` alone."""

    def __init__(self, lake: Location, lake_id: str) -> None:
        self._lake = lake
        self._folder = lake / "publications"
        self._lake_id = lake_id
        self._publishers: dict[str, Publisher] = {}
        self._lock = threading.Lock()

    def begin(self, lake: OpenLake) -> None:
        """Go on with those that are on."""
        with self._lock:
            for one in self._on():
                self._publish(lake, one)

    def end(self) -> None:
        """Publish no more; they stay on for the next start."""
        with self._lock:
            for one in self._publishers.values():
                one.cancel()
            for one in self._publishers.values():
                one.stop()

    def status(self) -> list[dict[str, Any]]:
        """Without the lock, which is held while a publisher ends."""
        return [one.status() for _, one in sorted(self._publishers.copy().items())]

    def start(self, lake: OpenLake, table: str, run: Run) -> dict[str, Any]:
        with self._lock:
            if table not in self._publishers:
                self._refuse(lake, table, run)
                made = Publication(table=table, started_at=lake.clock().isoformat())
                store.replace(self._folder / f"{table}.json", json.dumps(asdict(made), indent=2))
                self._publish(lake, made)
            return self._publishers[table].status()

    def stop(self, table: str) -> dict[str, Any]:
        with self._lock:
            one = self._publishers.get(table)
            if one is None:
                on = ", ".join(sorted(self._publishers)) or "none"
                raise NotFoundError(
                    f"table {table} is not published", f"tables that are: {on}", "name one of them"
                )
            one.stop()
            store.delete(self._folder / f"{table}.json")
            del self._publishers[table]
            return {**one.status(), "state": "stopped"}

    def clean_up(self, lake: OpenLake, table: str | None = None) -> int:
        """Deletes what commits have replaced, once no reader can need it; how many commit files went."""
        gone = 0
        for name, one in self._publishers.copy().items():
            if table in (None, name) and one.folder.exists:
                gone += clean_table(lake, one.folder.path)
        return gone

    def _publish(self, lake: OpenLake, one: Publication) -> None:
        made = Publisher(lake, self._lake_id, one.table, self._lake / FOLDER / one.table)
        self._publishers[one.table] = made
        made.start()

    def _on(self) -> list[Publication]:
        files = (name for name in sorted(store.names(self._folder)) if name.endswith(".json"))
        return [store.read_as(self._folder / name, Publication) for name in files]

    def _refuse(self, lake: OpenLake, table: str, run: Run) -> None:
        """Before anything is made: everything that can be known to be wrong."""
        if not isinstance(self._lake, Path):
            raise UsageError(
                f"table {table} cannot be published",
                f"the lake is in {self._lake}, and tables are published in a folder of a disk alone",
                "have readers ask the SQL server, or read an extract",
            )  # fmt: skip
        name = lake.live_version(table)
        if name is None:
            live = release_log.live(lake.path)
            raise NotFoundError(
                f"table {table!r} is not live",
                f"live are: {', '.join(sorted(live.tables)) if live else 'none yet'}",
                "name one of them, or make it live",
            )
        version = lake.versions.get(table, name)
        opened = lake.versions.opened(version)
        view = opened.view(lake.versions.pin(version, run))
        refuse_types(table, plain(view.schema))
