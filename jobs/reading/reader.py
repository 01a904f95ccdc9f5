"""Reader: runs one statement at a time for whoever asks, each in a session of its own over the shared views.

A statement ends with its time, with the server, and with the client that asked for it; what is cancelled is
interrupted. A short one finds a task slot beside long ones: see `java/twinlake/reading/FairSlots`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from jobs.as_json import to_json
from jobs.configuration import Limits
from jobs.errors import BusyError, TwinlakeError, UsageError
from jobs.lake.kept_plan import TooLargeError, computed, small
from jobs.lake.read_errors import damage_in
from jobs.reading.explain import Question, explain
from jobs.reading.follower import Followed
from jobs.reading.past_tables import PastTables
from jobs.spark import cancel

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
TOLD = "twinlake"
_AGAIN_S = 0.5
"""A statement that is being parsed or planned has no job to cancel yet; so it is tried until it has ended."""


class Reader:
    """Runs statements for readers, each in a session of its own over the shared views."""

    def __init__(
        self,
        spark: SparkSession,
        followed: Callable[[], Followed],
        release: Callable[[], int | None],
        past: PastTables | None = None,
        longest_s: float = Limits().query_seconds,
    ) -> None:
        """`release` is that of this thread's last statement; without `past` nobody reads AS OF a moment."""
        self._spark = spark
        self._followed = followed
        self._longest_s = longest_s
        self._release = release
        self._past = past

    def read(self, sql: str, limit: int, left: threading.Event, as_of: str | None = None) -> dict[str, Any]:
        """The columns, at most `limit` rows, the release; UsageError says what is wrong with the statement.

        `left` is set when nobody waits for the answer any more. With `as_of` tables are as they were then,
        and the answer tells which release, at which position, and what was computed from the log.
        """

        def shown(frame: DataFrame) -> dict[str, Any]:
            found = _collected(frame)
            columns = [{"name": name, "type": type_} for name, type_ in frame.dtypes]
            rows = [to_json(row) for row in found[:limit]]
            return {"columns": columns, "rows": rows, "truncated": len(found) > limit}

        found, told = self._answered(sql, limit, left, as_of, shown)
        return {**found, **told}

    def table(self, sql: str, limit: int, left: threading.Event, as_of: str | None = None) -> pa.Table:
        """The same rows as Arrow; what is told of them is JSON at `TOLD` in the schema's metadata."""
        found, told = self._answered(sql, limit, left, as_of, _computed)
        told["truncated"] = found.num_rows > limit
        return found.slice(0, limit).replace_schema_metadata({TOLD: json.dumps(told)})

    def explain(self, asked: Question, left: threading.Event) -> dict[str, Any]:
        """The records behind a row of a view, see `reading/explain.py`; it ends like a statement."""
        if self._past is None:
            raise UsageError("the question was refused", "nobody reads tables as they were here")
        past = self._past
        return self._in_words(lambda: self._in_time(left, lambda: explain(past, asked)))

    def _answered(
        self,
        sql: str,
        limit: int,
        left: threading.Event,
        as_of: str | None,
        collect: Callable[[DataFrame], T],
    ) -> tuple[T, dict[str, Any]]:
        """What `collect` makes of the result, which has a row more than the limit where it goes beyond, and
        what is told of it."""

        def read() -> tuple[T, dict[str, Any]]:
            with self._bound(as_of, sql) as past:
                frame = self._spark.newSession().sql(sql)
                release = past["as_of"]["release"] if past else self._release()
                found = collect(frame.limit(limit + 1).toDF(*_unique(frame.columns)))
            return found, {"release": release, **past}

        return self._in_words(lambda: self._in_time(left, read))

    def _in_words(self, work: Callable[[], T]) -> T:
        """The same, its errors in words for who has asked."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            return work()
        except (PySparkException, Py4JJavaError) as error:
            raise damage_in(error) or self._failed(error) from error
        except TooLargeError as error:
            raise UsageError("the query failed", str(error), "ask for fewer rows or columns") from error
        except UnicodeError as error:
            raise UsageError(
                "the query failed", f"a text is not UTF-8: {error}"[:300], "select it as hex(...)"
            ) from error
        except (OverflowError, ValueError) as error:  # Python knows the years 1 to 9999
            why = f"a value, of a date or time for instance, cannot be shown: {error}"[:300]
            raise UsageError("the query failed", why, "select it as text: cast(... AS string)") from error

    def _failed(self, error: Exception) -> TwinlakeError:
        from pyspark.errors import UnsupportedOperationException

        why = re.sub(r"\bas_of_[0-9a-f]{16}\b", "serve", _message(error))  # the name that was asked for
        if "OneRelease$Busy" in str(error):
            return BusyError("the query was not started", why, "ask again in a moment")
        if isinstance(error, UnsupportedOperationException):
            return UsageError("the query was refused", why)
        if "TABLE_OR_VIEW_NOT_FOUND" not in why:
            return UsageError("the query failed", why, "correct the statement")
        followed = self._followed()
        if followed.release is None and followed.error:
            what = "the query failed: the release log cannot be followed"
            return BusyError(what, followed.error, "see `twinlake status`")
        if followed.release is None:
            return UsageError(
                "the query failed",
                f"{why} Nothing has been released yet, so there are no views.",
                "`twinlake up` makes the first release; `twinlake status` shows the live one",
            )
        return UsageError("the query failed", why, "see what there is with SHOW VIEWS IN serve")

    def _in_time(self, left: threading.Event, work: Callable[[], T]) -> T:
        with self._ended_in_time(left) as late:
            try:
                return work()
            except Exception as error:
                if late.is_set():
                    raise BusyError(
                        "the query was stopped",
                        f"it ran longer than {self._longest_s:g} s",
                        "ask for less, use JDBC for long queries, or set query_seconds in [limits] of "
                        "twinlake.toml",
                    ) from error
                raise

    @contextmanager
    def _bound(self, as_of: str | None, sql: str) -> Iterator[dict[str, Any]]:
        """What the answer tells of the moment beside the rows; nothing for one that reads what is live."""
        if as_of is None:
            yield {}
        elif self._past is None:
            raise UsageError("the query was refused", "nobody reads tables as they were here")
        else:
            with self._past.bound(as_of, sql) as told:
                yield {"as_of": {"asked": as_of, **told}}

    @contextmanager
    def _ended_in_time(self, left: threading.Event) -> Iterator[threading.Event]:
        """Cancels this thread's Spark jobs when nobody waits for them, or too long; the event says so."""
        context, tag = self._spark.sparkContext, f"query-{uuid4().hex}"
        late, ended = threading.Event(), threading.Event()

        def watch() -> None:
            if not left.wait(self._longest_s):
                late.set()
            while not ended.wait(_AGAIN_S):
                cancel(context, tag)

        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        watcher = threading.Thread(target=watch, name=f"watch {tag}", daemon=True)
        watcher.start()
        try:
            yield late
        finally:
            ended.set()
            left.set()
            context.removeJobTag(tag)
            watcher.join()


def _computed(frame: DataFrame) -> pa.Table:
    """All rows as Arrow; a small result in this thread, others by Spark's tasks."""
    found = small(frame)
    return computed(frame.select("*")) if found is None else found


def _collected(frame: DataFrame) -> list[Any]:
    """All rows; a small result in this thread, others by Spark's tasks, by Arrow (faster) unless a column is
    nested: it refuses fields that are never null."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if any(
        isinstance(column.dataType, (ArrayType, MapType, StructType, VariantType)) for column in frame.schema
    ):
        return frame.collect()
    found = small(frame)
    if found is None:  # planned anew: a sort that was begun in this thread cannot be sent to tasks
        found = frame.select("*").toArrow()
    try:
        rows: list[Any] = found.to_pylist()
    except (OverflowError, ValueError):
        columns = (map(_known, column) for column in found.columns)
        rows = [dict(zip(found.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
    return rows


def _known(value: pa.Scalar) -> Any:
    """In Python; of a time outside of its years 1 to 9999 the ISO 8601 text."""
    import pyarrow as pa

    if not pa.types.is_temporal(value.type):
        return value.as_py()
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        text = str(value.cast(pa.string()).as_py()).replace(" ", "T").replace(".000000", "")
        return f"+{text}" if text.find("-") > len("9999") else text


def _unique(names: list[str]) -> list[str]:
    """Rows are objects: a second column of the same name gets a number that no other column has."""
    made: list[str] = []
    for name in names:
        free = (f"{name}_{number}" for number in count(2))
        made.append(name if name not in made else next(one for one in free if one not in {*names, *made}))
    return made


def _message(error: Exception) -> str:
    """What Spark says, without its plans and JVM stack traces; of what it waited for, why that failed."""
    while "Exception thrown in awaitResult" in str(error) and (cause := getattr(error, "_cause", None)):
        error = cause
    raised = getattr(error, "java_exception", None)  # of a kind that PySpark does not know
    while raised and "ExecutionException" in raised.getClass().getName() and raised.getCause():
        raised = raised.getCause()
    text = str((raised.getMessage() or raised.toString()) if raised else error)
    text, _, _ = text.partition("\n\nJVM stacktrace:")
    return re.split(r";\n|\nTo tolerate|\nIf you did not qualify", text.strip())[0].strip()
