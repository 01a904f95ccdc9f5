"""Folder: a published table on disk, which is a Delta table that asks nothing special of its readers.

The name of a data file begins with `final` where all of its rows are, with `open` where some are not, and
with `part` where its table does not say, or somebody else has written it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import UsageError
from twinlake.base.location import Location
from twinlake.lake.catalog.maintained_version import pruning_columns
from twinlake.lake.delta import appender, data_file, delta
from twinlake.lake.delta.appender import Added, Appender
from twinlake.lake.delta.data_file import Column
from twinlake.lake.delta.delta import Commit
from twinlake.lake.delta.table_state import LiveFile
from twinlake.lake.storage import store
from twinlake.published.position import APP, Position

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

OPEN, SETTLED = "open", "final"
STAGED = "_staged"
"""Below the table, where what is computed lies until it is taken in; Delta's clean-up passes over it."""
PROPERTIES = {
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.enableExpiredLogCleanup": "false",  # batch/maintain.py does it
    "delta.deletedFileRetentionDuration": "interval 6 hours",
    "delta.enableDeletionVectors": "false",
}
_PLAIN = (
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "binary", "date",
    "timestamp",
)  # fmt: skip


class Folder:
    """Of one table; its newest state is looked up again at each use, for others may write to it."""

    def __init__(self, path: Location, table: str) -> None:
        self.path = path
        self._table = table
        self._appender: Appender | None = None
        self._statistics: tuple[Column, ...] = ()

    @property
    def exists(self) -> bool:
        return self.newest >= 0

    @property
    def newest(self) -> int:
        """Its newest version, -1 where there is no table."""
        return delta.newest_version(self.path)

    @property
    def staged(self) -> Location:
        return self.path / STAGED

    def columns(self) -> StructType:
        return self._opened().schema()

    def files(self) -> dict[str, LiveFile]:
        """The live data files by path."""
        return self._opened().files()

    def position(self) -> Position | None:
        """What its newest commit says; None where there is no table, or where somebody else has written to it
        since, or while that commit was computed, so that nobody knows what its rows are."""
        newest = delta.newest_version(self.path)
        if newest < 0:
            return None
        found = delta.newest_commit(self.path, lambda metadata: metadata.get("kind") == "published")
        if found is None:
            return None
        made = Position.from_json(found.metadata)
        after = found.version - 1 if made is None or made.after is None else made.after
        others = {*range(after + 1, newest + 1)} - {found.version}
        commits = (delta.commit(self.path, version) for version in sorted(others))
        return None if any(one is None or one.changes_data for one in commits) else made

    def begin(
        self, columns: StructType, keys: Sequence[str], files: Sequence[Location], at: Position
    ) -> None:
        """The table with these rows, in its first commit; the files stay."""
        statistics = [(key,) for key in pruning_columns(columns, keys)]
        with store.telling_of_no_room(self.path):
            added = [
                data_file.adopt(file, self.path, {}, statistics, _prefix(file, columns)) for file in files
            ]
        appender.begin(self.path, columns, PROPERTIES, added, {APP: 1, **at.marks()}, at.to_json())

    def take(
        self,
        files: Sequence[Location],
        at: Position,
        *,
        removed: Collection[str],
        columns: StructType,
        keys: Sequence[str],
        breakpoint: Any,
    ) -> Commit:
        """One commit: the rows of these files instead of those of the live files `removed`; the files stay.

        What is raised leaves the table as it was.
        """
        opened = self._opened(columns, keys)
        added: list[Added] = []
        for file in files:
            added += opened.adopt([file], prefix=_prefix(file, columns))
        breakpoint()
        other = columns if opened.schema() != columns else None
        number = opened.transaction(APP) + 1
        made = opened.commit(
            added, APP, number, at.to_json(), removed, same=False, marks=at.marks(), columns=other
        )
        if other is not None:
            self.forget()
        return made

    def forget(self) -> None:
        """What is known of the table: it is read again."""
        self._appender = None

    def _opened(self, columns: StructType | None = None, keys: Sequence[str] = ()) -> Appender:
        """With statistics of the keys, where somebody is about to append to it."""
        statistics = self._statistics
        if columns is not None:
            statistics = tuple((key,) for key in pruning_columns(columns, keys))
        if self._appender is None or self._statistics != statistics:
            self._appender = Appender(self.path, statistics)
            self._statistics = statistics
        return self._appender


def plain(columns: StructType) -> StructType:
    """The columns as every engine reads them: any value may be missing, and nothing is said beside."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(one.name, _nullable(one.dataType)) for one in columns])


def refuse_types(table: str, columns: StructType) -> None:
    """UsageError for a column that other engines have no type for."""
    for column in columns:
        if (name := _strange(column.dataType)) is not None:
            raise UsageError(
                f"table {table} cannot be published", f"column {column.name} has the type {name}, which not "
                "every reader of Delta tables knows", "cast the column, or leave it out of the table",
            )  # fmt: skip


def _strange(of: DataType) -> str | None:
    kind, known = of.typeName(), of
    if kind == "array":
        return _strange(known.elementType)  # type: ignore[attr-defined]
    if kind == "map":
        return _strange(known.keyType) or _strange(known.valueType)  # type: ignore[attr-defined]
    if kind == "struct":
        return next(filter(None, (_strange(one.dataType) for one in known)), None)  # type: ignore[attr-defined]
    return None if kind in _PLAIN else of.simpleString()


def _nullable(of: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType

    if of.typeName() == "array":
        return ArrayType(_nullable(of.elementType))
    if of.typeName() == "map":
        return MapType(_nullable(of.keyType), _nullable(of.valueType))
    return plain(of) if of.typeName() == "struct" else of


def _prefix(file: Location, columns: StructType) -> str:
    """What the name of the file shall say of its rows."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from twinlake.kinds.late import FINAL

    if FINAL not in columns.names or columns[FINAL].dataType.typeName() != "boolean":
        return data_file.PART
    found = pq.read_table(store.reader(file), columns=[FINAL]).column(FINAL)
    is_final = pc.all(pc.fill_null(found, False)).as_py()
    return SETTLED if is_final in (True, None) else OPEN
