"""Answers: the rows of a statement as Arrow, on their way to a reader; their bytes are limited and counted.

A small answer is in memory, any other in files of the scratch folder that are mapped: sent piece by piece,
they are never in memory as a whole, however slowly a reader takes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import BusyError, UsageError
from twinlake.reading import json_rows, wire
from twinlake.reading.prepared import Prepared
from twinlake.reading.spool import FULL, NO_ROOM, TOO_LARGE, Bounds, Spool

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

STOPPED = "the query was stopped"
"""What is said of one that took too long, or has to make room."""
MOST_BYTES = 256 << 20
"""Of one answer, as Arrow."""
MOST_BYTES_IN_ALL = 1 << 30
"""Of all answers that are being made or sent."""
FOR_LESS = "ask for fewer rows or columns, for a file (`twinlake query --format`), or use JDBC"


@dataclass
class Answer:
    """At most `limit` rows, all for None, and what is known of them; to be closed once they are sent."""

    columns: list[dict[str, str]]
    found: pa.Table
    limit: int | None
    known: dict[str, Any] = field(default_factory=dict)
    is_by_plan: bool = False
    """Whether its plan was there before it was asked for."""
    _release: Callable[[], None] | None = None

    @property
    def facts(self) -> dict[str, Any]:
        return {**self.known, "truncated": self.limit is not None and self.found.num_rows > self.limit}

    def rows(self) -> Iterator[list[dict[str, Any]]]:
        """The rows as JSON has them, in pieces; UnicodeError, at once, for a text that is not UTF-8."""
        return json_rows.rows(self.found.slice(0, self.limit))

    def json(self) -> Iterator[bytes]:
        """One object, its rows last, each on a line of its own; what breaks off on the way is not valid JSON.
        UnicodeError as `rows`."""
        return self._json(self.rows())

    def _json(self, rows: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
        head = _encoded({"columns": self.columns, **self.facts})
        yield f'{head[:-1]},"rows":['.encode()
        comma = "\n"
        for piece in rows:
            yield (comma + ",\n".join(map(_encoded, piece))).encode()
            comma = ",\n"
        yield b"\n]}"

    def arrow(self) -> Iterator[bytes]:
        """An Arrow stream; see `wire.METADATA`."""
        shown = self.found.slice(0, self.limit)
        return arrow_stream(shown.schema, self.facts, iter(shown.to_batches()))

    def table(self) -> pa.Table:
        """The rows, and what is known of them as `wire.METADATA` says."""
        shown = self.found.slice(0, self.limit)
        return shown.replace_schema_metadata(wire.described(shown.schema, self.facts).metadata)

    def close(self) -> None:
        if self._release:
            self._release()


_ARROW_BYTES = 1 << 20


def arrow_stream(
    schema: pa.Schema, facts: Mapping[str, Any], batches: Iterator[pa.RecordBatch]
) -> Iterator[bytes]:
    """A stream in pieces, with the facts in the metadata of its schema."""
    import pyarrow as pa

    sink = _Pieces()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), wire.described(schema, facts)) as stream:
        yield from sink.taken()
        for piece in pieces(batches):
            stream.write_batch(piece)
            yield from sink.taken()
    yield from sink.taken()


def pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, a megabyte at once."""
    for batch in batches:
        at = 0
        while at < batch.num_rows:
            count = max(1, batch.num_rows * _ARROW_BYTES // max(1, batch.nbytes))
            yield batch.slice(at, count)
            at += count


def arrow_columns(stream: bytes) -> pa.Schema:
    """Those of an Arrow stream without rows."""
    import pyarrow as pa

    with pa.ipc.open_stream(stream) as read:
        return read.schema


class _Pieces:
    """A file that gives away what is written to it."""

    closed = False

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, some: bytes) -> int:
        self._written.append(bytes(some))
        return len(some)

    def flush(self) -> None:
        """Nothing is kept back."""

    def taken(self) -> Iterator[bytes]:
        taken, self._written = self._written, []
        if taken:
            yield b"".join(taken)


class Answers:
    """Makes answers; at most so many bytes of each, and of all that are not closed."""

    def __init__(
        self, spark: SparkSession, most: int = MOST_BYTES, most_in_all: int = MOST_BYTES_IN_ALL,
        pool: str = "answer", kept_free: int = 0,
    ) -> None:  # fmt: skip
        """Those of a `pool` are counted together; `kept_free` is what their disk has to keep free."""
        self._spool = Spool(
            spark, Bounds(pool=pool, most=most, most_in_all=most_in_all, kept_free=kept_free)
        )
        self._most, self._most_in_all = most, most_in_all

    @property
    def bytes_held(self) -> int:
        return self._spool.bytes_held

    def of(self, frame: DataFrame, limit: int | None) -> Answer:
        """The first rows, with one more than the limit where there are more."""
        import pyarrow as pa

        try:
            spooled = self._spool.of(frame)
        except Exception as error:
            raise self._known(error) from error
        try:
            found = spooled.table
            if found is None:
                found = pa.concat_tables(map(_mapped, spooled.files))
            spooled.delete()  # what is mapped stays readable
        except BaseException:
            spooled.release()
            raise
        return Answer(columns=spooled.columns, found=found, limit=limit, _release=spooled.release)

    def prepared(self, found: Prepared, limit: int | None) -> Answer:
        """Rows that are computed already, counted as any answer."""
        try:
            release = self._spool.hold(found.rows.nbytes)
        except Exception as error:
            raise self._known(error) from error
        return Answer(
            columns=found.columns, found=found.rows, limit=limit, is_by_plan=found.is_kept, _release=release
        )  # fmt: skip

    def _known(self, error: Exception) -> Exception:
        if TOO_LARGE in str(error):
            why = f"the answer has more than {self._most:,} bytes"
            return UsageError("the query was stopped", why, FOR_LESS)
        if FULL in str(error):
            why = f"the answers that are being sent have {self._most_in_all:,} bytes together"
            return BusyError(STOPPED, why, "ask again later, or for fewer rows or columns")
        if NO_ROOM in str(error):
            why = "the disk of the SQL server's scratch folder has no room for its rows"
            return BusyError(STOPPED, why, "make room there, and ask again")
        return error


def _mapped(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
