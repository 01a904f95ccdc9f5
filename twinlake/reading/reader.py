"""Reader: runs one statement at a time for whoever asks, each in a session of its own over the shared views.

A statement ends with its time, with the server, and with the client that asked for it; what is cancelled is
interrupted. A short one finds a task slot beside long ones: see `java/twinlake/reading/FairSlots`.
"""

from __future__ import annotations

import json
import re
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from twinlake.base.errors import BusyError, TwinlakeError, UsageError
from twinlake.base.location import Location
from twinlake.config.sections import Limits
from twinlake.lake.delta.read_errors import damage_in
from twinlake.reading.answer import STOPPED, Answer, Answers, arrow_columns
from twinlake.reading.explain import Question, explain
from twinlake.reading.export import Export, Exports
from twinlake.reading.followed import Followed
from twinlake.reading.past_tables import PastTables
from twinlake.reading.prepared import PreparedStatements, unique
from twinlake.reading.reports import WITHHELD, Reports
from twinlake.reading.views import SERVE
from twinlake.spark.session import cancel
from twinlake.topics.change import RELEASE_WIDER

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
A = TypeVar("A", Answer, Export)
_AGAIN_S = 0.5
"""A statement may begin a job after it was cancelled, or miss an interrupt: it is tried till it has ended."""
_LESS = "ask for less"


@dataclass(frozen=True)
class Time:
    """What a statement has, what to do beside setting more, and what it is set by."""

    longest_s: float
    remedy: str
    setting: str


class Reader:
    """Runs statements for readers, each in a session of its own over the shared views."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Location,
        followed: Callable[[], Followed],
        release: Callable[[], int | None],
        past: PastTables | None = None,
        longest_s: float = Limits().query_seconds,
        answers: Answers | None = None,
        reports: Reports | None = None,
        exports: Exports | None = None,
        longest_export_s: float = Limits().export_seconds,
        prepared: PreparedStatements | None = None,
    ) -> None:
        """`release` is that of this thread's last statement; without `past` nobody reads AS OF a moment,
        without `reports` nothing is known of the lake server, without `prepared` all is planned each time."""
        self._spark = spark
        self._lake = lake
        self._followed = followed
        self._time = Time(longest_s, f"{_LESS}, use JDBC for long queries", "query_seconds")
        self._export_time = Time(longest_export_s, _LESS, "export_seconds")
        self._release = release
        self._past = past
        self._answers = answers or Answers(spark)
        self._exports = exports or Exports(spark)
        self._reports = reports
        self._prepared = prepared
        self._cancelled: dict[str, tuple[float, Time]] = {}
        jvm: Any = spark._jvm
        self._views = jvm.twinlake.reading.NamedViews
        self._ending = jvm.twinlake.reading.Ending
        self._live = jvm.twinlake.reading.LiveTable
        self._default = jvm.twinlake.reading.DefaultSchema
        self._near = jvm.twinlake.reading.NearNames.of
        self._listing = jvm.twinlake.reading.Listing
        self._rights = jvm.twinlake.reading.Rights
        self._parameters = jvm.twinlake.reading.Parameters
        self._columns = jvm.twinlake.reading.ArrowColumns.of

    def answer(
        self, sql: str, limit: int | None, left: threading.Event, as_of: str | None = None,
        tag: str | None = None, user: str = "", parameters: bytes = b"", is_placed: bool = False,
    ) -> Answer:  # fmt: skip
        """At most `limit` rows, all where it is None, and what is known of them: the release, which of the
        tables do not keep up with their logs, for how long nobody has reported that, and with `as_of` (tables
        are as they were then) which release, at which position, and what was computed from the log; where it
        `is_placed` the position of what is live, too.

        `left` is set when nobody waits for the answer any more; `tag` is that of its Spark jobs. It is by the
        rights of `user`, or of the server itself. `parameters` are values for the `?` of the statement, as an
        Arrow stream: it is computed for each of its rows. UsageError says what is wrong with the statement.
        The answer is to be closed.
        """

        def made(frame: DataFrame) -> Answer:
            return self._answers.of(_named(_first(frame, limit)), limit)

        def at_once() -> Answer | None:
            if self._prepared is None or limit is None or as_of is not None or parameters:
                return None
            if (found := self._prepared.answer(sql, limit, user)) is None:
                return None
            answer = self._answers.prepared(found, limit)
            answer.known = self._known(found.views, user, is_placed)
            return answer

        return self._answer(sql, left, as_of, tag, user, made, self._time, parameters, is_placed, at_once)

    def export(
        self, sql: str, limit: int | None, left: threading.Event, as_of: str | None = None,
        tag: str | None = None, user: str = "",
    ) -> Export:  # fmt: skip
        """The same for rows of any number, all of them without a limit; it may take longer."""

        def made(frame: DataFrame) -> Export:
            return self._exports.of(_named(_first(frame, limit)), limit)

        return self._answer(sql, left, as_of, tag, user, made, self._export_time)

    def _answer(
        self, sql: str, left: threading.Event, as_of: str | None, tag: str | None, user: str,
        made: Callable[[DataFrame], A], within: Time, parameters: bytes = b"", is_placed: bool = False,
        at_once: Callable[[], A | None] = lambda: None,
    ) -> A:  # fmt: skip
        def read() -> A:
            if (ready := at_once()) is not None:
                return ready
            with self._bound(as_of, sql) as past:
                frame = self._asked(sql, user, parameters)
                known = self._known([] if past else self._views.of(frame._jdf), user, is_placed)
                if past:
                    known["release"] = past["as_of"]["release"]
                found = made(frame)
            found.known |= {**known, **past}
            return found

        return self.in_words(lambda: self._in_time(left, read, tag, within), user)

    def _known(self, views: Iterable[str], user: str, is_placed: bool) -> dict[str, Any]:
        """Of this thread's last statement, which reads these views."""
        place = {"position": json.loads(self._live.ofLastStatement())} if is_placed else {}
        return {"release": self._release(), **place, **self.freshness(views, user)}

    def columns(
        self, sql: str, left: threading.Event, as_of: str | None = None, tag: str | None = None,
        user: str = "", parameters: bytes = b"",
    ) -> pa.Schema:  # fmt: skip
        """What `answer` would have; nothing is computed."""

        def read() -> bytes:
            with self._bound(as_of, sql):
                frame = self._asked(sql, user, parameters)
                return bytes(self._columns(_named(frame)._jdf))

        return arrow_columns(self.in_words(lambda: self._in_time(left, read, tag), user))

    def _asked(self, sql: str, user: str, parameters: bytes) -> DataFrame:
        from pyspark.sql import DataFrame

        session = self.session(user)
        if not parameters:
            return session.sql(sql)
        return DataFrame(self._parameters.sql(session._jsparkSession, sql, parameters), session)

    def parameters(self, sql: str) -> int:
        """How many `?` a statement has."""
        found: int = self._parameters.count(sql)
        return found

    def read(self, sql: str, limit: int, left: threading.Event, as_of: str | None = None) -> dict[str, Any]:
        """The same, its rows in memory: for few of them."""
        found = self.answer(sql, limit, left, as_of)
        try:
            rows = self.in_words(lambda: [row for piece in found.rows() for row in piece])
        finally:
            found.close()
        return {"columns": found.columns, "rows": rows, **found.facts}

    def json(self, answer: Answer) -> Iterator[bytes]:
        """An answer as JSON, in pieces; UsageError, at once, for what cannot be shown."""
        return self.in_words(answer.json)

    def explain(
        self, asked: Question, left: threading.Event, tag: str | None = None,
        refuse_hidden: Callable[[Sequence[str]], object] = list, user: str = "",
    ) -> dict[str, Any]:  # fmt: skip
        """The records behind a row of a view, see `reading/explain.py`; it ends like a statement."""
        if self._past is None:
            raise UsageError("the question was refused", "nobody reads tables as they were here")
        past = self._past
        found = self.in_words(lambda: self._in_time(left, lambda: explain(past, asked, refuse_hidden), tag))
        views = [] if asked.as_of else [f"{SERVE}.{asked.table}"]
        return {**found, **self.freshness(views, user)}

    def session(self, user: str) -> SparkSession:
        """One by this user's rights: another one for each statement."""
        from pyspark.sql import SparkSession

        begun = self._default.begin(self._spark._jsparkSession, user)
        return SparkSession(self._spark.sparkContext, begun)

    def names(self, user: str = "") -> dict[str, Any]:
        """What this user may read, as one release has it: `schemas`, and of `serve` the `tables`, each with
        its `columns`, of which each has a `name` and a `type`."""
        found: dict[str, Any] = json.loads(self._listing.names(self.session(user)._jsparkSession))
        return found

    def schemas(self, pattern: str | None, user: str = "") -> list[str]:
        """Those that this user may read and that fit a pattern of SQL's."""
        found: list[str] = json.loads(self._listing.schemas(self.session(user)._jsparkSession, pattern))
        return found

    def tables(
        self, schema_pattern: str | None, table_pattern: str | None, user: str = ""
    ) -> list[tuple[str, str, pa.Schema]]:
        """Schema, name and columns of what this user may read and fits. The metadata of a column has its
        `type`, as Spark writes it, and its `comment`."""
        session = self.session(user)._jsparkSession
        found = json.loads(self._listing.tables(session, schema_pattern, table_pattern))
        return [(one["schema"], one["name"], _described(one)) for one in found]

    def is_table(self, schema: str, name: str) -> bool:
        """Whether a view is that of a table of a release: others show a topic, or what came late."""
        return next(self._followed().versions([f"{schema}.{name}"]), None) is not None

    def unending(self, for_s: float, is_large: bool = False) -> int:
        """How many statements, or large results, were cancelled so many seconds ago and go on: what computes
        without a look at anything, a function over a long array for instance, cannot be ended."""
        until, of = time.monotonic() - for_s, self._export_time if is_large else self._time
        return sum(since < until and within is of for since, within in list(self._cancelled.values()))

    def no_report(self) -> dict[str, Any] | None:
        """For how long the lake server has not reported; None where it has lately."""
        return self._reports.missing() if self._reports else None

    def freshness(self, views: Iterable[str], user: str = "") -> dict[str, Any]:
        """What readers of these views should know of how fresh they are. An error may tell of values, so why
        is for who sees everything."""
        versions = self._followed().versions(views)
        stalled = self._reports.stalled(versions) if self._reports else []
        if stalled and not self._rights.seesEverything(user):
            stalled = [{**one, "why": WITHHELD} for one in stalled]
        return {"stalled": stalled, "no_report": self.no_report()}

    def in_words(self, work: Callable[[], T], user: str = "") -> T:
        """The same, its errors in words for who has asked, by the rights of `user`."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            return work()
        except (PySparkException, Py4JJavaError) as error:
            raise damage_in(error, self._lake) or self._failed(error, user) from error
        except UnicodeError as error:
            raise UsageError(
                "the query failed", f"a text is not UTF-8: {error}"[:300], "select it as hex(...)"
            ) from error
        except (OverflowError, ValueError) as error:  # Python knows the years 1 to 9999
            why = f"a value, of a date or time for instance, cannot be shown: {error}"[:300]
            raise UsageError("the query failed", why, "select it as text: cast(... AS string)") from error

    def _failed(self, error: Exception, user: str) -> TwinlakeError:
        from pyspark.errors import UnsupportedOperationException

        why = re.sub(r"\bas_of_[0-9a-f]{16}\b", "serve", _message(error))  # the name that was asked for
        if "OneRelease$Busy" in str(error):
            return BusyError("the query was not started", why, "ask again in a moment")
        if "StackOverflowError" in why:
            deep = "something is nested or repeated too deeply, by a pattern such as (a|b)* for instance"
            return UsageError("the query failed", deep, "take shorter values, or a simpler pattern")
        if isinstance(error, UnsupportedOperationException):
            why, _, remedy = why.partition(". Use ")
            remedy = f"use {remedy}" if remedy else "correct the statement"
            return UsageError("the query was refused", why, remedy)
        if RELEASE_WIDER in why:
            why, _, _ = why.partition(f": {RELEASE_WIDER}")
            return UsageError("the query failed", why, f"leave out its column, or {RELEASE_WIDER}")
        if "TABLE_OR_VIEW_NOT_FOUND" not in why:
            return UsageError("the query failed", why, "correct the statement")
        followed = self._followed()
        if followed.release is None and followed.error:
            what = "the query failed: the release log cannot be followed"
            return BusyError(what, followed.error, "see `twinlake status`")
        if followed.release is None:
            return UsageError(
                "the query failed",
                f"{why} Nothing has been released yet: only topics have views, see SHOW VIEWS IN serve.",
                "`twinlake up` makes the first release; `twinlake status` shows the live one",
            )
        there = "see what there is with SHOW VIEWS IN serve; a topic has its views once its log is opened"
        near = self._near(self.session(user)._jsparkSession, why)
        meant = f"did you mean {near}? " if near else ""
        return UsageError("the query failed", why, f"{meant}{there}, see `twinlake status`")

    def _in_time(
        self, left: threading.Event, work: Callable[[], T], tag: str | None, within: Time | None = None
    ) -> T:
        within = within or self._time
        with self._ended_in_time(left, tag or f"query-{uuid4().hex}", within) as late:
            try:
                return work()
            except Exception as error:
                if late.is_set():
                    raise BusyError(
                        STOPPED, f"it ran longer than {within.longest_s:g} s",
                        f"{within.remedy}, or set {within.setting} in [limits] of twinlake.toml",
                    ) from error  # fmt: skip
                raise

    @contextmanager
    def _bound(self, as_of: str | None, sql: str) -> Iterator[dict[str, Any]]:
        """What the answer tells of the moment beside the rows; nothing for one that reads what is live."""
        if as_of is None:
            yield {}
        elif self._past is None:
            raise UsageError("the query was refused", "nobody reads tables as they were here")
        else:
            with self._past.bound(as_of, sql) as summary:
                yield {"as_of": {"asked": as_of, **summary}}

    @contextmanager
    def _ended_in_time(self, left: threading.Event, tag: str, within: Time) -> Iterator[threading.Event]:
        """Cancels what this thread does when nobody waits for it, or too long; the event says so."""
        context = self._spark.sparkContext
        late, ended = threading.Event(), threading.Event()

        def watch() -> None:
            if not left.wait(within.longest_s):
                late.set()
            self._cancelled[tag] = time.monotonic(), within
            try:
                while not ended.wait(_AGAIN_S):
                    cancel(context, tag)
                    self._ending.cancel(tag)
            finally:
                del self._cancelled[tag]

        context.addJobTag(tag)
        context.setInterruptOnCancel(True)
        self._ending.begin(tag)
        watcher = threading.Thread(target=watch, name=f"watch {tag}", daemon=True)
        watcher.start()
        try:
            yield late
        finally:
            ended.set()
            self._ending.ended(tag)
            left.set()
            context.removeJobTag(tag)
            watcher.join()


def _described(listed: dict[str, Any]) -> pa.Schema:
    columns = arrow_columns(b64decode(listed["columns"]))
    for at, (type_, comment) in enumerate(zip(listed["types"], listed["comments"], strict=True)):
        named = columns.field(at).with_metadata({"type": type_, "comment": comment})
        columns = columns.set(at, named)
    return columns


def _first(frame: DataFrame, limit: int | None) -> DataFrame:
    """With one more than the limit where there are more."""
    return frame if limit is None else frame.limit(limit + 1)


def _named(frame: DataFrame) -> DataFrame:
    names = unique(frame.columns)
    return frame if names == frame.columns else frame.toDF(*names)


def _message(error: Exception) -> str:
    """What Spark says, without its plans and JVM stack traces; of what it waited for, why that failed."""
    while "Exception thrown in awaitResult" in str(error) and (cause := getattr(error, "_cause", None)):
        error = cause
    raised = getattr(error, "java_exception", None)  # of a kind that PySpark does not know
    while raised and "ExecutionException" in raised.getClass().getName() and raised.getCause():
        raised = raised.getCause()
    text = str((raised.getMessage() or raised.toString()) if raised else error)
    text, _, _ = text.partition("\n\nJVM stacktrace:")
    shown = re.split(r";\n|\nTo tolerate|\nIf you did not qualify", text.strip())[0].strip()
    place = re.search(r"; line \d+ pos \d+", text)
    return shown + place[0] if place and place[0] not in shown else shown
