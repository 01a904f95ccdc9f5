"""Publisher: the one thread that publishes a table, from position to position of whatever version is live.

All that has happened since the last commit goes into the next one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import BusyError, ChangedTableError, TwinlakeError, first_lines
from twinlake.base.location import Location
from twinlake.base.times import format_moment
from twinlake.difference.changed import ALL_KEYS, is_of_records
from twinlake.difference.touched import is_known
from twinlake.kinds.kind import is_stored
from twinlake.lake.catalog.maintained_version import LogView, Opened, pruning_columns
from twinlake.lake.catalog.version import Health, Pin, Version, pin_json
from twinlake.lake.delta.data_file import rows_in
from twinlake.lake.delta.read_errors import damage_in
from twinlake.lake.open_lake import OpenLake
from twinlake.lake.storage import store
from twinlake.lake.table_workers import TableWorker
from twinlake.published import changes
from twinlake.published.changes import Rewrite
from twinlake.published.folder import Folder, plain, refuse_types
from twinlake.published.position import Position
from twinlake.spark.session import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EVERY_S = 5.0
"""Between the end of a commit and the next one at least: each is a file more for readers."""
REST, LONGEST_REST_S = 3.0, 30.0
"""So many times as long as a commit took its table rests: the stream has the processors. One that took long,
as the first after a start does, is not followed by a long time without any."""
WHOLE_EVERY_S = 30.0
"""A table whose every key is compared is compared so often at most, and a tenth of the time."""
_UNSEEN = -2
FILE_BYTES = 16 << 20
"""So large a data file becomes before it is divided: a changed row costs the writing of its file."""


class Publisher(TableWorker):
    """What failed is tried again from what the folder's commits say."""

    def __init__(self, lake: OpenLake, lake_id: str, table: str, path: Location) -> None:
        super().__init__(lake, table, "publish")
        self.folder = Folder(path, table)
        self._lake_id = lake_id
        self._at: Position | None = None
        self._is_known = False  # that `_at` is what the folder says, and of this lake
        self._committed = _UNSEEN
        """The folder's version that `_at` is of: somebody else may write there, or delete it."""
        self._newest: dict[str, int] = {}
        self._files = self._bytes = 0
        self._rest_until = 0.0  # on the monotonic clock

    def status(self) -> dict[str, Any]:
        at, health = self._at, self._health()
        paused = bool(health and health.paused and not self.error)
        stalled = health.error if health and health.stalled and not paused else None
        error = self.error.to_json() if self.error else stalled
        states = {"failing": self.error, "paused": paused, "stalled": stalled, "published": at}
        state = next((name for name, holds in states.items() if holds), "starting")
        position = at.position if at else {}
        return {
            "table": self.table,
            "folder": str(self.folder.path),
            "state": state,
            "release": at.release if at else None,
            "version": at.version if at else None,
            "position": position,
            "behind": {
                topic: batch - position.get(topic, 0)
                for topic, batch in self._newest.items() if batch > position.get(topic, 0)
            },
            "files": self._files,
            "bytes": self._bytes,
            "changed": at.changed if at else 0,
            "way": at.way if at else "",
            "published_at": at.published_at if at else "",
            "error": error,
        }  # fmt: skip

    def _health(self) -> Health | None:
        """Of the live version, as far as it is known."""
        live = self._at.version if self._at else None
        found = (one for one in self._lake.versions.health() if one.table == self.table)
        return next((one for one in found if one.version == live), None)

    def _fail(self, error: Exception) -> None:
        self._journal.error("the table is not published", exc_info=error)
        known = damage_in(error, self._lake.path) or error
        if isinstance(known, ChangedTableError):
            again = f"delete {self.folder.path}: the table is published again; let nobody else alter it"
            known = ChangedTableError(known.what, known.why, again)
        self.error = known.alone() if isinstance(known, TwinlakeError) else TwinlakeError(
            f"table {self.table} is not published", first_lines(error),
            "fix what the error names; it is tried again by itself, and nothing is left out",
        )  # fmt: skip

    def _forget(self) -> None:
        self.folder.forget()
        self._is_known = False

    def _look(self) -> None:
        live, version = self._live()
        self._newest = self._lake.versions.position(version)
        if not self._is_known or self.folder.newest != self._committed:
            self.folder.forget()
            self._at = self.folder.position()
            self._is_known, self._committed = False, self.folder.newest
            self._measure()
        if self._is_known and self._at and self._at.is_at(live.number, self._newest):
            return
        if time.monotonic() >= self._rest_until:
            self._publish(version, live.number)

    def _publish(self, version: Version, release: int) -> None:
        began = time.monotonic()
        pin = self._lake.versions.pin(version, self._run)
        old = self._at
        if self._is_known and old and old.is_at(release, pin.position):
            return  # a table over tables changes once all that it reads have come there
        self._refuse_back(pin, release)
        opened = self._lake.versions.opened(version)
        shown = opened.view(pin).select(*opened.definition.output)
        columns = plain(shown.schema)
        refuse_types(self.table, columns)
        starts = {topic: (log.start.number if log.start else 0) for topic, log in opened.logs.items()}
        before = self._before(old, opened, starts)
        store.make_folder(self.folder.path)
        self._drop_staged()
        with (
            store.telling_of_no_room(self.folder.path, scratch_folder(self._lake.spark)),
            self._rewrite(opened, shown, before, pin) as rewrite,
        ):
            files = self._staged(rewrite, opened) if rewrite.rows is not None else []
            came = sum(map(rows_in, files))
            if rewrite.way == ALL_KEYS and rewrite.rows is not None:
                self._refuse_twice(shown, rewrite, came)
            if not files and not rewrite.gone and old and old.is_at(release, pin.position):
                self._is_known = True  # after a start: nothing has happened since
                return
            at = Position(
                lake=self._lake_id, table=self.table, release=release, version=version.name,
                position=dict(pin.position), pin=pin_json(pin), starts=starts, way=rewrite.way,
                changed=came if rewrite.changed is None else rewrite.changed,
                published_at=format_moment(self._lake.clock()), after=self._committed,
            )  # fmt: skip
            committed = self._commit(opened, columns, files, rewrite, at)
        self._drop_staged()
        is_next = committed == self._committed + 1  # else somebody else has written meanwhile
        self._at, self._is_known, self._committed = at, is_next, committed if is_next else _UNSEEN
        self._measure()
        took = time.monotonic() - began
        is_view = not is_stored(opened.definition) and not is_of_records(opened)
        rest_s = max(EVERY_S, took, min(REST * took, LONGEST_REST_S))
        self._rest_until = time.monotonic() + (max(WHOLE_EVERY_S, 9 * took) if is_view else rest_s)
        self._journal.debug("published", way=at.way, rows=at.changed, position=at.position, seconds=took)

    def _commit(
        self, opened: Opened, columns: Any, files: Sequence[Location], rewrite: Rewrite, at: Position
    ) -> int:
        """The folder's version that was made."""
        keys, version, was_there = opened.definition.view_keys, 0, self._committed >= 0
        if self.folder.exists != was_there:
            happened = "deleted" if was_there else "made"
            raise BusyError(
                f"{self.folder.path} was {happened} while changes of it were computed",
                "they would lead from what is no longer there", "nothing: it is tried again by itself",
            )  # fmt: skip
        if was_there:
            version = self.folder.take(
                files, at, removed=rewrite.gone, columns=columns, keys=keys,
                breakpoint=lambda: breakpoints.at(Point.BEFORE_PUBLISH, self.table),
            ).version  # fmt: skip
        else:
            breakpoints.at(Point.BEFORE_PUBLISH, self.table)
            self.folder.begin(columns, keys, files, at)
        breakpoints.at(Point.AFTER_PUBLISH, self.table)
        return version

    def _before(self, old: Position | None, opened: Opened, starts: Mapping[str, int]) -> Pin | None:
        """The pin that was published, where it tells what has changed since."""
        if old is None or (old.lake, old.version) != (self._lake_id, opened.version.name):
            return None
        before = old.pinned(self._lake.versions.get)
        if before is None or old.starts != starts:
            return None
        return before if self._is_known or is_known(opened, before) else None

    @contextmanager
    def _rewrite(self, opened: Opened, shown: DataFrame, before: Pin | None, pin: Pin) -> Iterator[Rewrite]:
        """The cheapest way that leads from what is there to what is shown."""
        folder = self.folder
        if not folder.exists or not opened.definition.view_keys or folder.columns() != plain(shown.schema):
            yield changes.of_everything(folder, opened, shown)
        elif before and isinstance(opened, LogView) and is_of_records(opened):
            yield changes.of_records(folder, opened, before, pin)
        else:
            by = changes.keys_since(folder, opened, before, pin) if before else None
            with changes.differing(folder, opened, shown, by) as found:
                yield found

    def _staged(self, rewrite: Rewrite, opened: Opened) -> list[Location]:
        """The rows as data files that nobody sees, sorted so that files prune."""
        assert rewrite.rows is not None
        rows, definition = rewrite.rows, opened.definition
        keys = pruning_columns(rows.schema, definition.view_keys)
        time_first = sorted(keys, key=lambda key: key != definition.time_column)
        number = 1 + rewrite.bytes // FILE_BYTES
        if number == 1 or not time_first:
            rows = rows.coalesce(number)
        else:
            rows = rows.repartitionByRange(number, *time_first)
        if time_first:
            rows = rows.sortWithinPartitions(*time_first)
        place = self.folder.staged / uuid4().hex
        rows.write.parquet(str(place))
        written = sorted(name for name in store.names(place) if name.endswith(".parquet"))
        return [place / name for name in written if rows_in(place / name)]

    def _measure(self) -> None:
        live = self.folder.files() if self.folder.exists else {}
        self._files, self._bytes = len(live), sum(file.bytes for file in live.values())

    def _drop_staged(self) -> None:
        store.delete_tree(self.folder.staged)

    def _refuse_twice(self, shown: DataFrame, rewrite: Rewrite, came: int) -> None:
        stay = [file for path, file in self.folder.files().items() if path not in rewrite.gone]
        if all(file.records is not None for file in stay):
            found = came + sum(file.records or 0 for file in stay)
            changes.refuse_twice(self.table, shown.count(), found)

    def _refuse_back(self, pin: Pin, release: int) -> None:
        """A reader that has seen a position, or a release, never sees an earlier one."""
        at = self._at
        if at is None or at.lake != self._lake_id:
            return
        if release < at.release:
            raise BusyError(
                f"release {release} is before the one that is published of {self.table}",
                f"release {at.release} was published already: the lake was restored to an earlier state",
                f"restore the newer one, or delete {self.folder.path}: the table is published again",
            )
        if behind := [topic for topic, batch in pin.position.items() if batch < at.position.get(topic, 0)]:
            topic = behind[0]
            raise BusyError(
                f"{pin.version} is behind what is published of it",
                f"it is at batch {pin.position[topic]} of {topic}, and batch {at.position[topic]} was "
                "published already",
                "nothing, if it catches up; if the lake was restored to an earlier state: restore the newer "
                f"one, or delete {self.folder.path}: the table is published again",
            )
