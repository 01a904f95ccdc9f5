"""Answers: the rows of a statement as Arrow, on their way to a reader; their bytes are limited and counted.

A small answer is in memory, any other in files of the scratch folder that are mapped: sent piece by piece,
they are never in memory as a whole, however slowly a reader takes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.base.errors import BusyError, UsageError
from twinlake.reading import json_rows, wire
from twinlake.spark.prepared_plan import small
from twinlake.spark.session import scratch_folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

STOPPED = "the query was stopped"
"""What is said of one that took too long, or has to make room."""
MOST_BYTES = 256 << 20
"""Of one answer, as Arrow."""
MOST_BYTES_IN_ALL = 1 << 30
"""Of all answers that are being made or sent."""
MOST_FIELDS = 2_000
"""Columns, or fields inside them: for each of them every task holds some 50 kB outside the heap."""


@dataclass
class Answer:
    """At most `limit` rows, all for None, and what is known of them; to be closed once they are sent."""

    columns: list[dict[str, str]]
    found: pa.Table
    limit: int | None
    known: dict[str, Any] = field(default_factory=dict)
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
        import pyarrow as pa

        shown = self.table()
        sink = _Pieces()
        with pa.ipc.new_stream(pa.PythonFile(sink, "w"), shown.schema) as stream:
            for batch in pieces(shown):
                stream.write_batch(batch)
                yield from sink.taken()
        yield from sink.taken()

    def table(self) -> pa.Table:
        """The rows, and what is known of them as `wire.METADATA` says."""
        facts = {wire.METADATA: json.dumps(self.facts)}
        return self.found.slice(0, self.limit).replace_schema_metadata(facts)

    def close(self) -> None:
        if self._release:
            self._release()


_ARROW_BYTES = 1 << 20


def pieces(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows, a megabyte at once."""
    for batch in rows.to_batches():
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
        self, spark: SparkSession, most: int = MOST_BYTES, most_in_all: int = MOST_BYTES_IN_ALL
    ) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.twinlake.lake.Spool
        self._folder = scratch_folder(spark)
        self._most, self._most_in_all = most, most_in_all

    @property
    def bytes_held(self) -> int:
        held: int = self._java.inAll()
        return held

    def of(self, frame: DataFrame, limit: int | None) -> Answer:
        """The first rows, with one more than the limit where there are more."""
        columns = [{"name": name, "type": type_} for name, type_ in frame.dtypes]
        _refuse_unknown(columns)
        _refuse_many(_fields(frame.schema))
        name = str(self._folder / f"answer-{uuid4().hex}")

        def release() -> None:
            self._java.release(name)

        try:
            found = self._computed(frame, name)
        except BaseException as error:
            release()
            raise self._known(error) from error
        return Answer(columns=columns, found=found, limit=limit, _release=release)

    def _computed(self, frame: DataFrame, name: str) -> pa.Table:
        """A small result in this thread, others by Spark's tasks."""
        import pyarrow as pa

        found = small(frame)
        if found is not None:
            self._java.hold(name, found.nbytes, self._most, self._most_in_all)
            return found
        # planned again: a sort that was begun in this thread cannot be sent to tasks
        again = frame.select("*")
        try:
            count = self._java.write(again._jdf, name, self._most, self._most_in_all)
            names = [f"{name}-schema", *(f"{name}-{number}" for number in range(count))]
            return pa.concat_tables([_mapped(one) for one in names if Path(one).exists()])
        finally:
            for path in Path(name).parent.glob(f"{Path(name).name}-*"):
                path.unlink(missing_ok=True)  # what is mapped stays readable

    def _known(self, error: BaseException) -> BaseException:
        if "Spool$TooLarge" in str(error):
            why = f"the answer has more than {self._most:,} bytes"
            return UsageError("the query was stopped", why, "ask for fewer rows or columns, or use JDBC")
        if "Spool$Full" in str(error):
            why = f"the answers that are being sent have {self._most_in_all:,} bytes together"
            return BusyError(STOPPED, why, "ask again later, or for fewer rows or columns")
        return error


def _refuse_unknown(columns: list[dict[str, str]]) -> None:
    """Arrow for Python does not know intervals of years and months."""
    for column in columns:
        if "interval year" in column["type"] or "interval month" in column["type"]:
            raise UsageError(
                "the query failed", f"{column['name']} is {column['type']}, which cannot be shown",
                "select it as text: cast(... AS string)",
            )  # fmt: skip


def _refuse_many(fields: int) -> None:
    if fields > MOST_FIELDS:
        why = f"its answer has {fields:,} columns and fields, and at most {MOST_FIELDS:,} are sent over HTTP"
        raise UsageError("the query was refused", why, "select fewer of them, or use JDBC")


def _fields(type_: DataType) -> int:
    """Of a type with all that is inside it."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type_, StructType):
        return sum(_fields(one.dataType) for one in type_.fields)
    if isinstance(type_, ArrayType):
        return _fields(type_.elementType)
    if isinstance(type_, MapType):
        return _fields(type_.keyType) + _fields(type_.valueType)
    return 1


def _mapped(path: str) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
