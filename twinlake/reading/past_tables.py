"""Past tables: views of tables as they were at a moment, made for a statement that asks AS OF it.

A stored table is read at the Delta version that had come exactly to the moment's position, as long as that is
kept; after that, as its stored definition makes it of the log, which is the same rows, at the log's cost.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from twinlake.base import quote
from twinlake.base.location import Location
from twinlake.base.times import Clock, utc_now
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import Kind, StoredKind, ViewClock, is_stored
from twinlake.lake import formats
from twinlake.lake.catalog.maintained_version import (
    read_by,
    refuse_without_history,
    view_clock_at,
    with_kept,
)
from twinlake.lake.catalog.version import Pin, Version, load, version_file
from twinlake.lake.delta import kept_commits
from twinlake.lake.delta.table_state import TableState
from twinlake.lake.log import active_topics, topic_views
from twinlake.lake.log.clock_fold import LogClock
from twinlake.lake.log.log import Log
from twinlake.lake.log.log_clock import clock_at
from twinlake.lake.log.log_start import LogStart
from twinlake.reading import views
from twinlake.reading.as_of import AsOf, parse_as_of
from twinlake.reading.live import LiveTables, actions
from twinlake.reading.past import Past, position_of, release_of, step_place
from twinlake.reading.views import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Behind = tuple[str, tuple[str, ...], str, str | None]
_NAMED = re.compile(r"\bserve`?\s*\.\s*`?(\w+)")
MOST = 32
"""So many moments keep their views: more than statements run at once, which need them only at their start.
Those whose texts are being made keep theirs besides."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A version at the moment: the SELECT of its view, and what follows FROM to read its states, if any."""

    definition: Kind
    sql: str
    states: str | None = None


class PastTables:
    """Owns the schemas of moments in the catalog of the session that keeps the views."""

    def __init__(self, spark: SparkSession, lake: Location, clock: Clock = utc_now) -> None:
        jvm: Any = spark._jvm
        self._spark, self._lake, self.clock = spark, lake, clock
        self._java = jvm.twinlake.reading.PastTables
        self._named = jvm.twinlake.reading.NamedViews
        self._java.register(spark._jsparkSession)
        self._live = LiveTables(spark)
        self._schemas: OrderedDict[str, dict[tuple[str, str], str]] = OrderedDict()
        self._making: list[str] = []
        self._lock = threading.Lock()

    @contextmanager
    def bound(self, as_of: str, sql: str) -> Iterator[dict[str, Any]]:
        """Inside, statements of this thread read the views that `sql` names as they were. Yields
        the release, the position, and by table why it was computed from the log.

        UsageError or NotFoundError for a moment that is none, or that was not.
        """
        schema, summary = self._made(as_of, sql)
        self._java.bind(schema)
        try:
            yield summary
        finally:
            self._java.bind(None)

    @contextmanager
    def instead(self, table: str, rows: DataFrame) -> Iterator[None]:
        """Inside, statements of this thread that read the table read these rows of it, by the same rights."""
        schema = f"as_of_{uuid4().hex[:16]}"
        name = f"{schema}/{table}"
        self._java.keep(name, rows._jdf)
        text = f"SELECT * FROM {self._java.FUNCTION}({quote.string(name)})"
        view = View(schema=schema, name=table, sql=text)
        try:
            self._spark.sql(f"CREATE DATABASE {schema}")
            self._spark.sql(view.create())
            self._java.bind(schema)
            yield
        finally:
            self._java.bind(None)
            self._spark.sql(f"DROP DATABASE IF EXISTS {schema} CASCADE")
            self._java.drop(f"{schema}/")

    def schema(self, as_of: str, sql: str) -> str:
        """Where the views are that `sql` names, as they were; errors as of `bound`."""
        return self._made(as_of, sql)[0]

    @contextmanager
    def texts(self, as_of: str | None, names: Collection[str]) -> Iterator[PastTexts]:
        """The texts of the tables, and of the topics' logs, whose views' names are among these (in lower
        case), at a moment; without one where the live release is now."""
        formats.refuse_other(self._lake)
        asked = parse_as_of(as_of) if as_of is not None else AsOf(text="now")
        now = self.clock()
        release = release_of(self._lake, asked, now)
        if as_of is None:
            asked = replace(asked, release=release.number)
        versions = [
            load(version_file(self._lake, table, name))
            for table, name in sorted(release.tables.items())
            if {table.lower(), views.late_name(table).lower()} & set(names)
        ]
        asked_logs = set(names) - {table.lower() for table in release.tables}
        of_logs = [
            topic
            for topic in active_topics.active_topic_names(self._lake)
            if {name.lower() for name in topic_views.names(topic)} & asked_logs
        ]
        topics = sorted({*of_logs, *(topic for version in versions for topic in version.topics)})
        known = {topic: active_topics.active_topic(self._lake, topic) for topic in topics}
        logs = {name: Log(self._spark, self._lake, topic) for name, topic in known.items()}
        starts = {name: log.started() for name, log in logs.items()}
        past = Past(release=release, position=position_of(self._lake, asked, release, versions, logs, now))
        made = PastTexts(
            tables=self, past=past, logs=logs, versions=versions, of_logs=of_logs, starts=starts
        )  # fmt: skip
        with self._lock:
            self._making.append(made.schema)
        try:
            self._show(made.schema, ())
            yield made
        finally:
            with self._lock:
                self._making.remove(made.schema)

    def _made(self, as_of: str, sql: str) -> tuple[str, dict[str, Any]]:
        # more, as in a comment, do no harm: nothing of them is read
        names = {*_NAMED.findall(sql.lower()), *(name.lower() for name in self._named.alone(sql))}
        with self.texts(as_of, names) as made:
            self._show(made.schema, [*made.views()])
            return made.schema, made.summary

    def computed_sql(
        self, name: str, version: Version, definition: StoredKind, log: Log, records: str,
        start: LogStart | None,
    ) -> str:  # fmt: skip
        """What follows FROM to read the states that records of the log give, and what is kept of those before
        its start; it is there by that name."""
        states = definition.partial(self._spark.sql(log.valid_sql(records)))
        if start is not None:
            states = with_kept(version, definition, log, start, states)
        self._java.keep(name, states._jdf)
        return f"{self._java.FUNCTION}({quote.string(name)})"

    def pinned_sql(self, name: str, path: Location, version: int) -> str:
        """What follows FROM to read a table at a version that is kept, which is there by that name."""
        # not by Delta's own time travel: its snapshots are queries over files, which no reader may ask
        self._java.keepFiles(name, str(path), actions(TableState(path, appends=False, at=version)))
        return f"{self._java.FUNCTION}({quote.string(name)})"

    def log_sql(self, log: Log, to: int) -> str:
        """What follows FROM to read the log's rows up to a batch: verdicts of later replays are not there."""
        return f"(SELECT * FROM {self._live.relation_sql(log.path)} WHERE batch <= {to})"

    @property
    def spark(self) -> SparkSession:
        return self._spark

    @property
    def lake(self) -> Location:
        return self._lake

    def _show(self, schema: str, wanted: Iterable[View]) -> None:
        """Makes the views that lack or say something else; the moment that was asked longest ago goes.

        Only this is done by one statement at a time: to look for a moment, or to fold its clocks, reads logs.
        """
        with self._lock:
            if schema not in self._schemas:
                self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
            present = self._schemas.setdefault(schema, {})
            self._schemas.move_to_end(schema)
            for view, statement in views.statements(wanted, present, ()):
                self._spark.sql(statement)
                present[view.key] = view.sql
            oldest = next(one for one in self._schemas if one == schema or one not in self._making)
            if len(self._schemas) > MOST and oldest != schema:
                del self._schemas[oldest]
                self._spark.sql(f"DROP DATABASE IF EXISTS {oldest} CASCADE")
                self._java.drop(f"{oldest}/")


@dataclass(frozen=True, kw_only=True)
class PastTexts:
    """The views of one moment as text; `computed` gains why a table is computed from the log."""

    tables: PastTables
    past: Past
    logs: Mapping[str, Log]
    versions: Sequence[Version]
    of_logs: Sequence[str]
    starts: Mapping[str, tuple[int, LogStart | None]]
    """By topic a version of its log's Delta table, and where the log starts by it: read throughout."""
    computed: dict[str, str] = field(default_factory=dict)
    _clocks: dict[str, LogClock] = field(default_factory=dict)

    @property
    def schema(self) -> str:
        """Where the views of this moment are; the name tells it."""
        starts = {topic: start.number for topic, (_, start) in self.starts.items() if start}
        identity = [str(self.tables.lake), self.past.release.number, self.past.position, starts]
        return f"as_of_{hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]}"

    @property
    def summary(self) -> dict[str, Any]:
        """The moment, and what was computed, once the texts are made."""
        computed = [{"table": table, "why": why} for table, why in sorted(self.computed.items())]
        position = self.past.position
        return {"release": self.past.release.number, "position": position, "computed": computed}

    def views(self) -> Iterator[View]:
        for version in self.versions:
            shown = self.shown(version)
            yield View(schema=self.schema, name=version.table, sql=shown.sql)
            (topic, *_) = version.topics
            late = shown.definition.late(f"(\n{self._log(version, topic).late_sql(self._log_sql(topic))}\n)")
            if late is not None:
                yield View(schema=self.schema, name=views.late_name(version.table), sql=late)
        taken = {table.lower() for table in self.past.release.tables}
        for topic in self.of_logs:
            for name, sql in topic_views.texts(self.logs[topic], self._log_sql(topic)).items():
                if name.lower() not in taken:
                    yield View(schema=self.schema, name=name, sql=sql)

    def behind(self, version: Version, rows: str, through: tuple[str, ...] = ()) -> Iterator[Behind]:
        """The records behind rows of a version's view: by topic and the tables on the way there, SELECT text
        with the columns of `Log.traced_sql`, and which of them is the id.
        `rows` is what follows FROM to read the view's rows."""
        definition, way = self.shown(version).definition, (*through, version.table)
        for topic in definition.inputs:
            log = self._log(version, topic)
            columns = [name for name, _ in log.topic.columns]
            records = f"({log.traced_sql(self._log_sql(topic))})"
            yield topic, way, definition.behind(topic, records, columns, rows), log.topic.contract.unique
        for table, name in version.reads.items():
            read = load(version_file(self.tables.lake, table, name))
            one = self.shown(read)
            found = definition.behind(table, f"({one.sql})", one.definition.output, rows)
            yield from self.behind(read, f"({found})", way)

    def shown(self, version: Version) -> Shown:
        """The version over the logs up to the moment, or over versions that are."""
        reads = {
            table: self.shown(load(version_file(self.tables.lake, table, name)))
            for table, name in version.reads.items()
        }
        bound = {table: one.definition for table, one in reads.items()}
        definition = from_json(version.definition).bound(bound)
        view_clock = self._view_clock(definition, version)
        if is_stored(definition):
            states = self._states(version, definition)
            sql = definition.view({definition.name: states}, view_clock)
            return Shown(definition=definition, sql=sql, states=states)
        relations = {
            topic: f"({self._log(version, topic).valid_sql(self._records_sql(version, topic))})"
            for topic in definition.inputs
        }
        for table, one in reads.items():
            takes_states = definition.reads_states and one.states is not None
            relations[table] = str(one.states) if takes_states else f"({one.sql})"
        return Shown(definition=definition, sql=definition.view(relations, view_clock))

    def _states(self, version: Version, definition: StoredKind) -> str:
        (topic,) = definition.inputs
        at, path = self.past.position[topic], version.path(self.tables.lake)

        def place(metadata: dict[str, Any]) -> int | None:
            return step_place(topic, metadata)

        kept = kept_commits.last_at(path, place, at)
        name, now_s = f"{self.schema}/{version.table}/{version.name}", self.tables.clock().timestamp()
        if kept and place(kept.metadata) == at and kept_commits.readable(path, kept.version, now_s):
            return self.tables.pinned_sql(f"{name}/{kept.version}", path, kept.version)
        why = f"no commit of version {version.name} that ended at {topic} batch {at} is kept"
        self.computed[version.table] = why
        log = self._log(version, topic)
        _, start = self.starts[topic]
        return self.tables.computed_sql(
            f"{name}/log", version, definition, log, self._log_sql(topic), start
        )  # fmt: skip

    def _view_clock(self, definition: Kind, version: Version) -> ViewClock:
        """What time says at the moment; not asked for a table that shows nothing of it."""
        if not definition.reads and definition.timeless == definition.output:
            return ViewClock()
        clocks = {topic: self._clock(topic) for topic in version.topics}
        pin = Pin(
            version=version, position=self.past.position,
            watermarks={topic: clock.watermark for topic, clock in clocks.items()},
            clocks={topic: clock.clocks for topic, clock in clocks.items()},
        )  # fmt: skip
        return view_clock_at({topic: self.logs[topic] for topic in version.topics}, pin)

    def _clock(self, topic: str) -> LogClock:
        if topic not in self._clocks:
            self._clocks[topic] = clock_at(self.logs[topic], self.past.position[topic])
        return self._clocks[topic]

    def _log(self, version: Version, topic: str) -> Log:
        """The log as the version reads it."""
        return read_by(version, self.logs)[topic]

    def _records_sql(self, version: Version, topic: str) -> str:
        """The log for a version whose rows are its records; LostHistoryError for one of before its start."""
        _, start = self.starts[topic]
        if start is not None:
            refuse_without_history(version, topic, start)
        return self._log_sql(topic)

    def _log_sql(self, topic: str) -> str:
        at, start = self.starts[topic]
        log, to = self.logs[topic], self.past.position[topic]
        if start is None:
            return self.tables.log_sql(log, to)
        # what retention deletes meanwhile is read
        records = self.tables.pinned_sql(f"{self.schema}/log/{topic}", log.path, at)
        return f"(SELECT * FROM {records} WHERE batch <= {to})"
