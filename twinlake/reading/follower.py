"""Follower: keeps the views of the SQL server at what the release log says, within a fraction of a second.

It only reads the lake: `_delta_log` listings, commit metadata, the versions' and the topics' JSON, never the
working tree. The catalog is in memory: a fresh process makes every view again, the live release's first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import structlog

from twinlake.base import quote
from twinlake.base.errors import DamagedError, FormatError, TwinlakeError
from twinlake.base.location import Location
from twinlake.kinds.all import from_json
from twinlake.kinds.clock import OF_THE_LOG
from twinlake.kinds.kind import Kind, ViewClock, is_stored
from twinlake.lake import formats
from twinlake.lake.catalog import described
from twinlake.lake.catalog.maintained_version import read_by
from twinlake.lake.catalog.release_log import Release, releases, releases_path
from twinlake.lake.catalog.version import Version, load, unknown, version_file
from twinlake.lake.delta import delta
from twinlake.lake.log import active_topics, topic_views
from twinlake.lake.log.log import Log, late_after
from twinlake.reading import views, watermarks
from twinlake.reading.comments import Comments
from twinlake.reading.followed import Followed
from twinlake.reading.live import LiveTables
from twinlake.reading.served import Served
from twinlake.reading.views import View
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

journal = structlog.get_logger(__name__)

FOLLOW_S = 0.2
RETRY_S = 1.0
WATERMARK_S = 1.0
TABLES_S = 1.0
REFRESH_S = 30.0
"""So often every text is derived again: a log that met a new schema reads older records with its defaults."""


class Follower:
    """One thread changes the catalog; `followed` may be read from any.

    The views in `serve` are altered one by one, within `switching(release number)`.
    """

    def __init__(
        self,
        spark: SparkSession,
        lake: Location,
        switching: Callable[[int], AbstractContextManager[None]] = nullcontext,  # type: ignore[assignment]
    ) -> None:
        self.spark = spark
        self.followed = Followed()
        self._lake = lake
        self._switching = switching
        self._live = LiveTables(spark)
        self._serving: int | None = None
        self._present: dict[tuple[str, str], str] = {}
        self._served: dict[tuple[str, str], Served] = {}
        self._topics: dict[str, Topic] = {}
        self._of_logs: dict[str, str] | None = None
        """By name, the SELECTs over the logs of all topics."""
        self._seen: int | None = None
        self._published: dict[str, int | None] = {}
        self._comments = Comments(spark, lake)
        self._fixed: set[int] = set()
        self._tables: dict[str, Mapping[str, str]] = {}
        self._gone: set[int] = set()
        """Releases with a retired version; they never come back."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="release follower", daemon=True)

    def start(self) -> None:
        for schema in (views.SERVE, watermarks.META):
            self._execute(f"CREATE DATABASE IF NOT EXISTS {schema}")
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        every: dict[Callable[[], None], float] = {
            self._live.follow: TABLES_S,  # first: only here what has fallen behind is read from its start
            self.follow: FOLLOW_S, self.refresh: REFRESH_S, self.follow_watermarks: WATERMARK_S,
        }  # fmt: skip
        due = dict.fromkeys(every, 0.0) | {self.refresh: time.monotonic() + REFRESH_S}
        failing: dict[Callable[[], None], str] = {}
        while not self._stop.is_set():
            for work in every:  # each on its own: while a release cannot be followed, watermarks move on
                if time.monotonic() < due[work]:
                    continue
                error = self._tried(work, failing.pop(work, None))
                if error is not None:
                    failing[work] = error
                due[work] = time.monotonic() + (every[work] if error is None else RETRY_S)
            first = next(iter(failing.values()), None)
            self.followed = replace(self.followed, ready=self.followed.ready or not failing, error=first)
            self._stop.wait(FOLLOW_S)

    def _tried(self, work: Callable[[], None], known: str | None) -> str | None:
        """Why the work failed, None where it did not; an error that is known already is not logged again."""
        try:
            work()
        except Exception as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            if text != known:
                journal.exception("the lake could not be followed; it is tried again", work=work.__qualname__)
            return text
        return None

    def follow(self) -> None:
        """One look at the release log: `serve` first, then the schemas of releases that are not there yet.

        What the lake server has published since the last look changes every text. A lake whose format
        has changed is not read on: what was served of it goes.
        """
        try:
            formats.refuse_other(self._lake)
        except FormatError:
            self._withdraw()
            raise
        newest = delta.newest_version(releases_path(self._lake))
        published = {**active_topics.published(self._lake), "": described.published(self._lake)}
        if published != self._published:
            self.refresh()
            self._published = published
            self._comments.read()
        if newest == self._seen:
            return
        if history := releases(self._lake):
            self._follow(history)
        else:
            unreleased = views.unreleased_views(self._topic_views())
            self._apply(unreleased, views.SERVE)
            self._comments.set(unreleased, ())
        self._seen = newest

    def _follow(self, history: list[Release]) -> None:
        current = history[-1]
        self._serve(current)
        self._tables[views.SERVE] = current.tables
        self.followed = replace(
            self.followed, release=current.number, ready=True, tables={**self._tables},
            looked_up={table: self._version(table, name).looked for table, name in current.tables.items()},
        )  # fmt: skip
        for release in reversed(history):
            if release.number not in self._fixed | self._gone:
                self._fix(release)
            self._tables[views.release_schema(release.number)] = release.tables
        self.followed = replace(self.followed, tables={**self._tables})

    def _withdraw(self) -> None:
        """Nobody reads by texts that were made for another format."""
        for schema, name in [*self._present]:
            self._execute(f"DROP VIEW IF EXISTS {quote.name(schema)}.{quote.name(name)}")
            del self._present[(schema, name)]
        self._comments = Comments(self.spark, self._lake)
        self.refresh()
        self.followed, self._serving = Followed(), None

    def _serve(self, release: Release) -> None:
        served = [self._version(table, version) for table, version in sorted(release.tables.items())]
        self._watermarks(served)
        texts = self._texts(served), self._topic_views(), self._lates(served)
        wanted = views.served_views(release, *texts)
        self._switch(wanted, release.number)  # first: only what changed is altered, and readers wait for it
        self._comments.set(wanted, release.tables)
        if release.number not in self._fixed:
            self._apply_fixed(release, texts)
            self._fixed.add(release.number)

    def _topic_views(self) -> dict[str, str]:
        """By name, the SELECTs over the logs of all topics, whoever reads them."""
        if self._of_logs is None:
            of_logs = dict[str, str]()
            for topic in active_topics.active_topic_names(self._lake):
                of_logs = {**self._of_log(topic), **of_logs}
            self._of_logs = of_logs
        return self._of_logs

    def _of_log(self, topic: str) -> dict[str, str]:
        """Of one topic; a log that cannot be read stops no other."""
        try:
            log = self._log(topic)
            if not delta.exists(log.path):
                return {}
            return topic_views.texts(log, self._live.relation_sql(log.path))
        except DamagedError as error:
            return dict.fromkeys(topic_views.names(topic), self._damaged_sql(error))
        except (TwinlakeError, OSError):
            journal.exception("a topic has no views", topic=topic)
            return {}

    def _damaged_sql(self, error: DamagedError) -> str:
        return f"SELECT * FROM {self._live.damaged_sql(error)}"

    def _switch(self, wanted: list[View], number: int) -> None:
        if number == self._serving and not self._changes(wanted, views.SERVE):
            return  # a refresh that found nothing new makes nobody wait
        with self._switching(number):
            self._apply(wanted, views.SERVE)
        self._serving = number

    def _fix(self, release: Release) -> None:
        """An old release whose files are gone has no schema any more; that must not stop the newer ones."""
        try:
            schema = views.release_schema(release.number)
            versions = [self._stored(*named) for named in sorted(release.tables.items())]
            if any(version.retired_at for version in versions):  # files go: a reader must not start again
                self._execute(f"DROP DATABASE IF EXISTS {schema} CASCADE")
                self._present = {key: text for key, text in self._present.items() if key[0] != schema}
                self._gone.add(release.number)
                for version in versions:
                    if version.retired_at:
                        self._served.pop((version.table, version.name), None)
                        self._live.close(version.path(self._lake))
            else:
                served = [self._version(version.table, version.name) for version in versions]
                self._watermarks(served)
                texts = self._texts(served), self._topic_views(), self._lates(served)
                self._apply_fixed(release, texts)
        except Exception:
            journal.exception("a release has no views", release=release.number)
        self._fixed.add(release.number)

    def _apply_fixed(
        self, release: Release, texts: tuple[views.Texts, Mapping[str, str], views.Texts]
    ) -> None:
        fixed = views.fixed_views(release, *texts)
        self._apply(fixed, views.release_schema(release.number))
        self._comments.set(fixed, release.tables)

    def _apply(self, wanted: list[View], schema: str) -> None:
        self._execute(f"CREATE DATABASE IF NOT EXISTS {schema}")
        for view, statement in self._changes(wanted, schema):
            self._comments.forget(view.key)
            self._execute(statement)  # noted one by one: what is there must be known when a later one fails
            if view.sql:
                self._present[view.key] = view.sql
            else:
                del self._present[view.key]

    def _changes(self, wanted: list[View], schema: str) -> list[tuple[View, str]]:
        present = {key: text for key, text in self._present.items() if key[0] == schema}
        return views.statements(wanted, present, [schema])

    def follow_watermarks(self) -> None:
        """Bring `meta` to what the versions' newest commits say; a text that stays costs nothing."""
        self._watermarks(self._served.values())

    def _watermarks(self, served: Iterable[Served]) -> None:
        watermark = cache(watermarks.of_newest)  # each table is looked at once, whoever reads it
        for one in served:
            for topic, paths in one.watermarks.items() if one.shows_time else ():
                name = (one.version.table, one.version.name)
                try:
                    values = watermarks.least(map(watermark, paths))
                    view = watermarks.watermark_view(*name, topic, values)
                except DamagedError:  # whoever reads the table gets this error
                    continue
                present = self._present.get(view.key)
                if present != view.sql:
                    self._execute(view.create() if present is None else view.alter())
                    self._live.set_clocks(view.name, values)
                    self._present[view.key] = view.sql

    def refresh(self) -> None:
        """Forget what was read of versions, contracts and schemas; the next look alters what has changed."""
        self._served.clear()
        self._topics.clear()
        self._fixed.clear()
        self._of_logs = self._seen = None

    def _version(self, table: str, name: str) -> Served:
        """A version as served, read once until the next refresh. One that is damaged stops no other."""
        found = self._served.get((table, name))
        if found is None:
            try:
                found = self._sound(table, name)
            except DamagedError as error:
                found = Served(
                    version=self._stored(table, name), definition=None, sql=self._damaged_sql(error),
                    states=None, watermarks={}, late=None, damage=error,
                )  # fmt: skip
            self._served[(table, name)] = found
        return found

    def _sound(self, table: str, name: str) -> Served:
        version = load(version_file(self._lake, table, name))
        # exactly these versions, whatever is live: they are of every release that this one is of
        reads = {read: self._version(read, used) for read, used in version.reads.items()}
        for one in reads.values():
            if one.damage:
                raise one.damage
        definition = from_json(version.definition).bound(
            {read: one.definition for read, one in reads.items() if one.definition}
        )
        logs = read_by(version, {topic: self._log(topic) for topic in version.topics})
        states, paths = None, dict[str, tuple[Location, ...]]()
        if is_stored(definition):
            path = version.path(self._lake)
            states, paths = self._live.relation_sql(path), {topic: (path,) for topic in logs}
            relations = {definition.name: definition.gathered(states)}
        else:
            relations = {
                topic: f"({logs[topic].valid_sql(self._live.relation_sql(logs[topic].path))})"
                for topic in definition.inputs
            }
            paths = {topic: (logs[topic].path,) for topic in definition.inputs}
            for read, one in reads.items():
                for topic, places in one.watermarks.items():
                    paths[topic] = tuple(dict.fromkeys((*paths.get(topic, ()), *places)))
                if definition.reads_states and one.states is not None:
                    relations[read] = one.states
                else:
                    relations[read] = f"({one.sql})"
        view_clock = ViewClock(
            watermarks={topic: watermarks.watermark_sql(table, name, topic) for topic in logs},
            clocks={
                (topic, clock): watermarks.watermark_sql(table, name, topic, clock)
                for topic in logs
                for clock in OF_THE_LOG
            },
            late_after=late_after(logs),
        )
        return Served(
            version=version, definition=definition, sql=definition.view(relations, view_clock),
            states=states, watermarks=paths, late=self._late(definition, logs),
        )  # fmt: skip

    def _late(self, definition: Kind, logs: Mapping[str, Log]) -> str | None:
        """What came late for the definition's windows, where it has any."""
        (log, *_) = logs.values()
        if definition.late("") is None or not delta.exists(log.path):
            return None
        try:
            return definition.late(f"(\n{log.late_sql(self._live.relation_sql(log.path))}\n)")
        except DamagedError as error:
            return self._damaged_sql(error)

    def _stored(self, table: str, name: str) -> Version:
        """Without a definition where its file is torn."""
        served = self._served.get((table, name))
        try:
            return served.version if served else load(version_file(self._lake, table, name))
        except DamagedError:
            return unknown(table, name)

    def _texts(self, served: Iterable[Served]) -> dict[tuple[str, str], str]:
        return {(one.version.table, one.version.name): one.sql for one in served}

    def _lates(self, served: Iterable[Served]) -> dict[tuple[str, str], str]:
        return {(one.version.table, one.version.name): one.late for one in served if one.late}

    def _log(self, topic: str) -> Log:
        if topic not in self._topics:
            self._topics[topic] = active_topics.active_topic(self._lake, topic)
        return Log(self.spark, self._lake, self._topics[topic])

    def _execute(self, statement: str) -> None:
        self.spark.sql(statement)
