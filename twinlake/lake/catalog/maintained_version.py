"""A version that is computed or read: a MaintainedVersion has rows of its own, a LogView those of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from twinlake.base import quote
from twinlake.base.errors import BusyError, ChangedTableError, LostHistoryError, LostVersionError
from twinlake.base.location import Location
from twinlake.base.times import parse_moment
from twinlake.kinds import evidence
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import Kind, StoredKind, ViewClock, is_stored
from twinlake.kinds.windows import ALL, Windows
from twinlake.lake.catalog.version import Pin, Version
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Appender
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log import fresh_rows, log_start
from twinlake.lake.log.fresh_rows import FreshRows
from twinlake.lake.log.log import Log, late_after
from twinlake.lake.log.log_clock import moment_sql
from twinlake.lake.log.log_start import LogStart
from twinlake.spark.prepared_plan import Newest, PreparedPlan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PROPERTIES = {
    "delta.checkpointInterval": "100",
    # the file count of the Delta log slows every commit of Spark's: 0.35 s at few, over 1.2 s at 60,000
    "delta.logRetentionDuration": "interval 1 days",
    "delta.enableExpiredLogCleanup": "false",  # batch/maintain.py does it, see there
    "delta.deletedFileRetentionDuration": "interval 6 hours",
    "delta.enableDeletionVectors": "false",
}
_PRUNING = frozenset("string tinyint smallint int bigint float double decimal date timestamp".split())


@dataclass(frozen=True, kw_only=True)
class MaintainedVersion:
    """A version of a stored kind: its definition, its log, its Delta table."""

    version: Version
    definition: StoredKind
    log: Log
    path: Location
    appender: Appender
    schema: StructType
    """The states' columns, then `_segment`."""
    _kept: Newest = field(default_factory=Newest, compare=False, repr=False)
    _kept_merge: Newest = field(default_factory=Newest, compare=False, repr=False)

    @property
    def spark(self) -> SparkSession:
        return self.log.spark

    @property
    def topic(self) -> str:
        return self.log.topic.name

    @property
    def logs(self) -> Mapping[str, Log]:
        return {self.topic: self.log}

    @property
    def table_id(self) -> str:
        """The Delta transaction app of steps."""
        return self.appender.table_id

    @property
    def batch_writer(self) -> str:
        """The Delta transaction app of rebuilds and merges."""
        return f"{self.table_id}:batch"

    @property
    def order(self) -> list[str]:
        """How files are sorted: by window, then by key, so that both prune."""
        return [*reversed(self.definition.state_keys)]

    @property
    def state_types(self) -> dict[str, str]:
        """The states' columns and their Spark types."""
        return _types(self.states)

    @property
    def states(self) -> StructType:
        """The states' columns."""
        from pyspark.sql.types import StructType

        return StructType([column for column in self.schema if column.name != evidence.SEGMENT])

    def partial_of(self, rows: FreshRows) -> pa.Table:
        """`definition.partial` of them, sorted, by a plan that is made once; the states' columns."""
        columns, read = self.log.columns(), self.log.read

        def make() -> PreparedPlan:
            return PreparedPlan(
                self.spark,
                fresh_rows.schema(self.log, read),
                lambda source: self.sorted(self.definition.partial(source.selectExpr(*columns))),
            )

        return self._kept.plan((columns, tuple(read.items())), make).run(rows.file(read))

    def merged(self, files: Iterable[str]) -> pa.Table:
        """`definition.merge` of these data files (paths below the table), like `partial_of`."""

        def make() -> PreparedPlan:
            return PreparedPlan(
                self.spark, self.states, lambda source: self.sorted(self.definition.merge(source))
            )

        read = self.spark.read.schema(self.states).parquet(*(str(self.path / name) for name in files))
        return self._kept_merge.plan(None, make).run(read)

    def computed(self, to: int, windows: Windows = ALL) -> DataFrame:
        """The batch result: the states that the log gives up to batch `to`, as `definition.partial` does."""
        return states_at(self.version, self.definition, self.log, to, windows)

    def shown(self, at: Pin) -> Windows:
        """The windows that its view shows at the pin: all of them where its definition has no retention."""
        ending = self.definition.ending
        return ending.shown(at.watermarks, at.clocks) if ending else ALL

    def sorted(self, states: DataFrame) -> DataFrame:
        """Within each partition, so that files prune."""
        return states.sortWithinPartitions(*self.order)

    def rows(self, delta_version: int | None = None) -> DataFrame:
        """The version's partial rows, `_segment` included, at a Delta version."""
        return delta.rows(self.spark, self.path, delta_version)

    @contextmanager
    def states_sql(self, pin: Pin) -> Iterator[str]:
        """What follows FROM to read its states, inside."""
        yield relation_sql(self.path, pin.delta_version)

    @contextmanager
    def view_sql(self, pin: Pin, scaled: tuple[str, ...] = ()) -> Iterator[str]:
        """The text of `view`, which can be analysed inside."""
        with self.states_sql(pin) as states:
            gathered = {self.definition.name: self.definition.gathered(states)}
            yield self.definition.view(gathered, view_clock_at(self.logs, pin), scaled)

    def view(self, pin: Pin, scaled: tuple[str, ...] = ()) -> DataFrame:
        """What readers of the version saw when it was pinned; `scaled` as in `Kind.view`."""
        with self.view_sql(pin, scaled) as text:
            return self.spark.sql(text)


@dataclass(frozen=True, kw_only=True)
class Computed:
    """A version of a stored kind read as what its definition makes of its log, at any position at all."""

    version: Version
    definition: StoredKind
    log: Log

    @property
    def logs(self) -> Mapping[str, Log]:
        return {self.log.topic.name: self.log}

    @contextmanager
    def states_sql(self, pin: Pin) -> Iterator[str]:
        """What follows FROM to read the states that its log gives, inside."""
        relation = f"computed_{uuid4().hex}"
        to = pin.position[self.log.topic.name]
        states_at(self.version, self.definition, self.log, to).createOrReplaceTempView(relation)
        try:
            yield relation
        finally:
            self.log.spark.catalog.dropTempView(relation)

    @contextmanager
    def view_sql(self, pin: Pin, scaled: tuple[str, ...] = ()) -> Iterator[str]:
        """The text of `view`, which can be analysed inside."""
        with self.states_sql(pin) as states:
            view_clock = view_clock_at(self.logs, pin)
            yield self.definition.view({self.definition.name: states}, view_clock, scaled)

    def view(self, pin: Pin, scaled: tuple[str, ...] = ()) -> DataFrame:
        """What readers of the version see at the pin's position; `scaled` as in `Kind.view`."""
        with self.view_sql(pin, scaled) as text:
            return self.log.spark.sql(text)


@dataclass(frozen=True, kw_only=True)
class LogView:
    """A version of a view kind: nothing is appended to it, nothing can drift from what it reads."""

    version: Version
    definition: Kind
    """Bound to the definitions of what it reads."""
    logs: Mapping[str, Log]
    """Those of every topic upstream; it reads those of `definition.inputs` itself."""
    reads: Mapping[str, Readable] = field(default_factory=dict)
    """By table, the versions that it reads: never any others of the same table."""
    among: str | None = None
    """A relation with the columns of `definition.by`: of the tables it reads, only rows behind its rows are
    read, see `Kind.behind`."""

    @property
    def spark(self) -> SparkSession:
        return next(iter(self.logs.values())).spark

    @property
    def computed(self) -> LogView:
        """The same view, but over what the logs give for every stored version upstream."""
        return replace(self, reads={name: as_computed(read) for name, read in self.reads.items()})

    @contextmanager
    def view_sql(self, pin: Pin, scaled: tuple[str, ...] = ()) -> Iterator[str]:
        """The text of `view`, which can be analysed inside."""
        relations = {
            name: f"({self.logs[name].rows_sql(pin.position[name])})" for name in self.definition.inputs
        }
        with ExitStack() as opened:
            for name, read in self.reads.items():
                if self.definition.reads_states and not isinstance(read, LogView):
                    relations[name] = opened.enter_context(read.states_sql(pin.reads[name]))
                else:
                    relation = f"({opened.enter_context(read.view_sql(pin.reads[name]))})"
                    if self.among is not None:
                        columns = read.definition.output
                        relation = f"({self.definition.behind(name, relation, columns, self.among)})"
                    relations[name] = relation
            yield self.definition.view(relations, view_clock_at(self.logs, pin), scaled)

    def view(self, pin: Pin, scaled: tuple[str, ...] = ()) -> DataFrame:
        """What readers of the version saw when it was pinned; `scaled` as in `Kind.view`."""
        with self.view_sql(pin, scaled) as text:
            return self.spark.sql(text)


def states_at(
    version: Version, definition: StoredKind, log: Log, to: int, windows: Windows = ALL
) -> DataFrame:
    """The states, one per key, that the version's definition makes of the log up to batch `to`: of its
    records, and of what retention has kept of those before its start.

    BusyError for a batch before that: nobody can compute it any more.
    """
    at, start = log.started()  # both by one commit, whatever is deleted from now on
    states = definition.partial(log.rows(0, to, at), windows)
    if start is None:
        return states
    if to < start.batch:
        raise BusyError(
            f"{version} cannot be computed up to batch {to} of topic {log.topic.name}",
            f"retention has deleted the records of its batches up to {start.batch}",
            "ask again: the position of now is later",
        )
    return with_kept(version, definition, log, start, states, windows)


def with_kept(
    version: Version, definition: StoredKind, log: Log, start: LogStart, states: DataFrame,
    windows: Windows = ALL,
) -> DataFrame:  # fmt: skip
    """The states that the log's records give, merged with those that are kept of the records before.

    LostHistoryError for a version of before that nothing is kept of: it was not fed any more.
    """
    kept = start.states_of(version)
    if kept is None:
        refuse_without_history(version, log.topic.name, start)
    if kept is None or not kept.files:
        return states
    place = log_start.folder(log.path, start.number)
    rows = log.spark.read.schema(states.schema).parquet(*(str(place / name) for name in kept.files))
    if grid := definition.cells:
        rows = rows.where(windows.predicate(grid.column))
    return definition.merge(rows.unionByName(states))


def refuse_without_history(version: Version, topic: str, start: LogStart) -> None:
    """LostHistoryError for a version that was there before the log's start, and of which nothing is kept."""
    if parse_moment(version.created_at) < parse_moment(start.made_at):
        raise LostHistoryError(
            f"{version} cannot be computed from the log of {topic} any more",
            f"retention has deleted records up to batch {start.batch}, and kept nothing for this version: "
            "it was not maintained then",
            "ask for a version that is, or build it again: it begins with the records that are left",
        )


Opened = MaintainedVersion | LogView
Readable = Opened | Computed
NOTHING_READ: Mapping[str, Readable] = {}


def feeds(opened: Readable) -> list[MaintainedVersion]:
    """The stored versions whose rows it is made of: itself, or those that it reads in the end, each once."""
    if isinstance(opened, MaintainedVersion):
        return [opened]
    if isinstance(opened, Computed):
        return []
    below = (feed for read in opened.reads.values() for feed in feeds(read))
    return list({(feed.version.table, feed.version.name): feed for feed in below}.values())


def as_computed(opened: Readable) -> Computed | LogView:
    """The version as its definition, and those upstream, make it of the logs alone."""
    if isinstance(opened, MaintainedVersion):
        return Computed(version=opened.version, definition=opened.definition, log=opened.log)
    return opened.computed if isinstance(opened, LogView) else opened


def view_clock_at(logs: Mapping[str, Log], pin: Pin) -> ViewClock:
    """What views of these logs say about time at the pin."""
    watermarks = {name: moment_sql(pin.watermarks.get(name)) for name in logs}
    clocks = {
        (name, clock): moment_sql(at) for name in logs for clock, at in pin.clocks.get(name, {}).items()
    }
    return ViewClock(watermarks=watermarks, clocks=clocks, late_after=late_after(logs))


def computed_version(
    version: Version, logs: Mapping[str, Log], reads: Mapping[str, Readable] = NOTHING_READ
) -> Computed | LogView:
    """The version as `as_computed` gives it, without a look at its own table, which may be damaged."""
    definition, logs = from_json(version.definition), read_by(version, logs)
    if is_stored(definition):
        return Computed(version=version, definition=definition, log=logs[definition.inputs[0]])
    return LogView(
        version=version,
        definition=definition.bound({name: read.definition for name, read in reads.items()}),
        logs=logs,
        reads=reads,
    )


def open_version(
    lake: Location, version: Version, logs: Mapping[str, Log], reads: Mapping[str, Readable] = NOTHING_READ,
    creates: bool = True,
) -> Opened:  # fmt: skip
    """Makes the version ready; `reads` are the opened versions of `version.reads`, by table. Where the Delta
    table of a stored kind is missing it is created, or it is a FileNotFoundError for who only reads."""
    from pyspark.sql.types import IntegerType

    definition = from_json(version.definition)
    logs = read_by(version, logs)
    if not is_stored(definition):
        made = computed_version(version, logs, reads)
        assert isinstance(made, LogView)
        return made
    log, path = logs[definition.inputs[0]], version.path(lake)
    schema = definition.partial(log.no_rows()).schema.add(evidence.SEGMENT, IntegerType())
    pruning = pruning_columns(schema, definition.state_keys)
    if creates:
        delta.create(log.spark, path, schema, {**PROPERTIES, **_statistics(pruning)}, (evidence.SEGMENT,))
    try:
        appender = Appender(path, [(key,) for key in pruning])
    except ChangedTableError as error:
        raise LostVersionError("altered", error.what, error.why) from error
    if changed := _types(schema).items() ^ _types(appender.schema()).items():
        raise LostVersionError(
            "other_columns",
            f"the table of {version} has other columns than its definition makes",
            f"they differ in {', '.join(sorted({name for name, _ in changed}))}: Twinlake itself has changed",
        )
    return MaintainedVersion(
        version=version, definition=definition, log=log, path=path, appender=appender, schema=schema
    )


def read_by(version: Version, logs: Mapping[str, Log]) -> dict[str, Log]:
    """The logs of the version's topics, as it reads them: by the schemas that it was made with."""
    made_with = version.schemas
    return {
        name: logs[name].as_of_schema(made_with[name]) if name in made_with else logs[name]
        for name in version.topics
    }


def stores_rows(version: Version) -> bool:
    """Whether the version has rows of its own, from its stored definition alone."""
    return is_stored(from_json(version.definition))


def _types(schema: StructType) -> dict[str, str]:
    return {column.name: column.dataType.simpleString() for column in schema}


def pruning_columns(schema: StructType, keys: Iterable[str]) -> list[str]:
    """Those of the keys by whose least and greatest values files are left out."""
    return [key for key in keys if schema[key].dataType.simpleString().split("(")[0] in _PRUNING]


def _statistics(pruning: Iterable[str]) -> dict[str, str]:
    """Statistics on the columns that prune, and on no other: they are paid for in every step."""
    named = ",".join(map(quote.name, pruning))
    return {"delta.dataSkippingStatsColumns": named} if named else {"delta.dataSkippingNumIndexedCols": "0"}
