"""What a rebuild computes, as data files by chunk in its job's staging folder.

They are written once: compared where they lie, then taken into the table by the commit that replaces rows.
Each computation has a folder that nobody else writes to, and is known by the names of its files: an executor
that outlives the driver of an earlier attempt, and finishes a file late, adds nothing to this one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote
from uuid import uuid4

import pyarrow.parquet as pq

from twinlake.base.errors import BusyError
from twinlake.base.location import Location
from twinlake.batch.merge import files_for
from twinlake.difference.touched import within
from twinlake.kinds.windows import Windows
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.segments import Closed
from twinlake.lake.storage import store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHUNK = "_chunk"


class Staged:
    """States of the feed's definition, sorted as its files are."""

    def __init__(self, feed: MaintainedVersion, place: Location) -> None:
        self.feed = feed
        self._place = place
        self._folder = place
        """Below the place: that of the computation which is used."""
        self._computed: dict[str, int] = {}
        """The bytes of each file, by its path from the place."""

    def compute(self, closed: Closed, windows: Windows, parts: Sequence[Windows]) -> dict[str, int]:
        """The batch result of these windows, which `parts` are together, in one pass over the log: what
        `take_over` takes."""
        from pyspark.sql import functions as F

        feed = self.feed
        batch = feed.computed(closed.pin.position[feed.topic], windows)
        cases = (f"WHEN {within(feed, part)} THEN {number}" for number, part in enumerate(parts[1:], start=1))
        chunk = f"CASE {' '.join(cases)} ELSE 0 END" if len(parts) > 1 else "0"
        chunked = batch.withColumn(CHUNK, F.expr(chunk)).sortWithinPartitions(CHUNK, *feed.order)
        self.drop()
        self._folder = folder = self._new_folder()
        chunked.write.partitionBy(CHUNK).parquet(str(folder))
        written = sorted(store.tree(folder).items())
        files = {name: file.bytes for name, file in written if name.endswith(".parquet")}
        self._computed = {f"{folder.name}/{name}": size for name, size in files.items()}
        return self._computed

    def take_over(self, computed: dict[str, int]) -> bool:
        """Goes on with what an earlier attempt has computed, if that is there and whole: whether it is."""
        if not computed:
            return False
        self._computed = computed
        self._folder = self._place / min(computed).split("/")[0]
        there = store.tree(self._place)
        return all(name in there and there[name].bytes == size for name, size in computed.items())

    def files(self, number: int) -> list[Location]:
        """Those of one chunk; BusyError where one is there no more: rows would be replaced by fewer."""
        folder = f"{CHUNK}={number}"
        files = [self._place / name for name in self._computed if name.split("/")[1] == folder]
        for file in files:
            if not store.exists(file):
                raise self._gone(file)
        return files

    def rows(self, number: int) -> DataFrame:
        """The states of one chunk."""
        read, files = self.feed.spark.read.schema(self.feed.states), self.files(number)
        return read.parquet(*map(str, files)) if files else read.parquet(str(self._folder)).limit(0)

    def beside(self, files: Mapping[str, int], windows: Windows) -> list[Location]:
        """The rows of these files (paths as Delta writes them, bytes) that are in none of the windows."""
        if not files:
            return []
        feed = self.feed
        stored = feed.spark.read.schema(feed.states).parquet(
            *(str(feed.path / unquote(name)) for name in files)
        )
        kept = stored.where(f"NOT coalesce({within(feed, windows)}, false)")
        kept = kept.coalesce(files_for(sum(files.values())))
        folder = self._new_folder()
        feed.sorted(kept).write.parquet(str(folder))
        written = [folder / name for name in store.names(folder) if name.endswith(".parquet")]
        if not written:  # Spark writes one of no rows at least
            raise self._gone(folder)
        return [file for file in written if pq.read_metadata(store.reader(file)).num_rows]

    def drop(self) -> None:
        """What was computed at another position, or not to its end; what somebody is late to write there
        stays for the clean-up."""
        with suppress(OSError):
            store.delete_tree(self._place)

    def _new_folder(self) -> Location:
        return self._place / uuid4().hex

    def _gone(self, place: Location) -> BusyError:
        return BusyError(
            f"what the rebuild of {self.feed.version} has computed is gone",
            f"{place} was deleted beside it",
            "start the rebuild again; nothing was replaced by less than all",
        )
