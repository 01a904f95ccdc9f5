"""Exports: all rows of a statement, however many, from files of the scratch folder, one batch at a time.

They are computed whole before the first is sent, so an error is an error. A file is deleted once it is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import BusyError, FullDiskError, UsageError
from twinlake.config.sections import Limits
from twinlake.reading.answer import STOPPED, arrow_stream
from twinlake.reading.spool import FULL, NO_ROOM, TOO_LARGE, Bounds, Spool, Spooled
from twinlake.spark.session import scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

MOST_EXPORTED = 2_000_000_000
"""As a limit: Spark takes a number of 32 bits."""
GIGABYTE = 1_000_000_000
MOST_BYTES = Limits().export_gigabytes * GIGABYTE
KEPT_FREE = GIGABYTE
"""Of the scratch folder's disk, for whatever else is on it."""


@dataclass
class Export:
    """All rows, or the first `limit`, and what is known of them; to be closed once they are sent."""

    spooled: Spooled
    limit: int | None
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        counted = [(batch.num_rows, batch.nbytes) for batch in self._batches(mapped=True)]
        self._rows, self._bytes = (sum(one[at] for one in counted) for at in (0, 1))

    @property
    def facts(self) -> dict[str, Any]:
        """With `rows` and `bytes`, as Arrow, of what is sent: who gets fewer rows has not got all."""
        rows = self._rows if self.limit is None else min(self._rows, self.limit)
        size = self._bytes * rows // max(1, self._rows)
        columns = {"columns": self.spooled.columns}
        return {**self.known, **columns, "truncated": self._rows > rows, "rows": rows, "bytes": size}

    def arrow(self) -> Iterator[bytes]:
        """An Arrow stream; see `wire.METADATA`. To be read once."""
        return arrow_stream(self._schema(), self.facts, self._sent())

    def close(self) -> None:
        self.spooled.release()

    def _sent(self) -> Iterator[pa.RecordBatch]:
        left = self.facts["rows"]
        for batch in self._batches():
            if left <= 0:
                return
            yield batch.slice(0, left)
            left -= batch.num_rows

    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        if self.spooled.table is not None:
            return self.spooled.table.schema
        with pa.OSFile(str(self.spooled.files[0])) as file, pa.ipc.open_stream(file) as stream:
            return stream.schema

    def _batches(self, mapped: bool = False) -> Iterator[pa.RecordBatch]:
        """One at a time: mapped to be counted, which reads no values; else to be sent, and deleted then."""
        if self.spooled.table is not None:
            yield from self.spooled.table.to_batches()
        for path in self.spooled.files:
            yield from _read(path, mapped)
            if not mapped:
                path.unlink(missing_ok=True)


def _read(path: Path, mapped: bool) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with (
        (pa.memory_map if mapped else pa.OSFile)(str(path)) as file,
        pa.ipc.open_stream(file) as stream,
    ):
        yield from stream


class Exports:
    """Makes exports; at most so many bytes of all that are not closed, and none that would fill the disk."""

    def __init__(self, spark: SparkSession, most: int = MOST_BYTES, kept_free: int = KEPT_FREE) -> None:
        bounds = Bounds(pool="export", most=most, most_in_all=most, kept_free=kept_free)
        self._spool, self._most, self._kept_free = Spool(spark, bounds), most, kept_free
        self._folder = scratch_folder(spark)

    @property
    def bytes_held(self) -> int:
        return self._spool.bytes_held

    def of(self, frame: DataFrame, limit: int | None) -> Export:
        """Of a relation with one row more than the limit where there are more."""
        try:
            spooled = self._spool.of(frame)
        except Exception as error:
            raise self._known(error) from error
        try:
            return Export(spooled=spooled, limit=limit)
        except BaseException:
            spooled.release()
            raise

    def _known(self, error: Exception) -> Exception:
        if TOO_LARGE in str(error):
            why = f"its rows have more than {self._most:,} bytes, which wait on the SQL server's disk"
            remedy = "ask for fewer rows or columns, or set export_gigabytes in [limits] of twinlake.toml"
            return UsageError(STOPPED, why, remedy)
        if FULL in str(error):
            why = f"the large results that are being sent have more than {self._most:,} bytes together"
            return BusyError(STOPPED, why, "ask again later, or for fewer rows or columns")
        if NO_ROOM in str(error):
            return FullDiskError(
                f"the disk of {self._folder} has no room for a large result",
                f"{self._kept_free:,} bytes of it are kept free",
                "make room there, and ask again; or ask for fewer rows or columns",
            )
        return error
