"""Changes: which rows of a published table have to become others, and the files that hold them.

Three ways, each exact, the cheapest that can be had: the records that have come since, where rows are
records; the keys that steps have touched since, and those that the watermark has passed; all keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.base.times import parse_moment
from twinlake.difference.changed import ALL_KEYS, RECORDS, TOUCHED, new_records
from twinlake.difference.diff import Side, changes
from twinlake.difference.pinned import only, without
from twinlake.difference.touched import touched
from twinlake.kinds.grid import micros
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, Opened, view_clock_at
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta.table_state import LiveFile
from twinlake.published.folder import SETTLED, Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NEW = "all rows"
SMALL_BYTES = 4 << 20
"""Files below it are written together once there are MANY_SMALL of them."""
MANY_SMALL = 8
_FILE = "_in_file"


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """The rows that come instead of those of the live files `gone`, about so many bytes; None for none."""

    way: str
    rows: DataFrame | None
    gone: tuple[str, ...] = ()
    bytes: int = 0
    changed: int | None = None
    """How many rows differ; None where all of `rows` are new."""


def of_everything(folder: Folder, opened: Opened, shown: DataFrame) -> Rewrite:
    """All that the view shows, instead of all that is there."""
    gone = tuple(folder.files()) if folder.exists else ()
    return Rewrite(way=NEW, rows=shown, gone=gone, bytes=_bytes_behind(opened))


def of_records(folder: Folder, opened: LogView, old: Pin, new: Pin) -> Rewrite:
    """The rows of the batches since."""
    rows = new_records(opened, old, new).select(*opened.definition.output)
    files = folder.files()
    gone = _small(files, ())
    return Rewrite(
        way=RECORDS, rows=_read(folder, opened, gone).unionByName(rows) if gone else rows, gone=gone,
        bytes=_bytes(files, gone),
    )  # fmt: skip


def keys_since(folder: Folder, opened: Opened, old: Pin, new: Pin) -> DataFrame | None:
    """The values of `by` of all rows that may have to become others; None where that is not known."""
    if not isinstance(opened, MaintainedVersion) or old.version != new.version:
        return None
    definition = opened.definition
    found = touched(opened, old, new)
    if found is None or definition.timeless == definition.output:
        return found
    follow = definition.follows_watermark(view_clock_at(opened.logs, new))
    if follow is None:
        return None
    unsettled = [path for path in folder.files() if not path.startswith(SETTLED)]
    differs = " OR ".join(f"NOT ({quote.name(name)} <=> ({sql}))" for name, sql in follow.items())
    flipped = _read(folder, opened, unsettled).where(differs or "false")
    return found.union(flipped.select(*found.columns)).distinct()


@contextmanager
def differing(folder: Folder, opened: Opened, shown: DataFrame, by: DataFrame | None) -> Iterator[Rewrite]:
    """The rows that differ from what is shown, of all keys or of those with these values of `by`; they are
    kept for use inside."""
    from pyspark.sql import functions as F

    keys, files = opened.definition.view_keys, folder.files()
    looked, way = list(files), ALL_KEYS
    new = Side(rows=shown)
    if by is not None:
        by, way = by.persist(), TOUCHED
        if (span := _span(opened, by)) is not None:
            time, first, last = span
            looked = [path for path, file in files.items() if _may_have(file, time, first, last)]
            between = f"{quote.name(time)} BETWEEN timestamp_micros({first}L) AND timestamp_micros({last}L)"
            new = Side(rows=shown.where(between))
        new = only(new, by)
    old = Side(rows=_read(folder, opened, looked, beside=True))
    if by is not None:
        old = only(old, by)
    found = changes(old, new, keys, carried=(_FILE,)).persist()
    try:
        ((changed, held),) = found.agg(F.count("*"), F.collect_set(f"l.{_FILE}")).collect()
        if not changed:
            yield Rewrite(way=way, rows=None, changed=0)
            return
        gone = [path for path in files if unquote(path).rpartition("/")[2] in held]
        gone += _small(files, gone)
        came = found.where("r IS NOT NULL").select("r.*")
        gone_keys = found.where("l IS NOT NULL").select(
            *(F.col("l").getField(key).alias(key) for key in keys)
        )
        stays = without(_read(folder, opened, gone), gone_keys)
        records = sum(file.records or 0 for file in files.values())
        each = sum(file.bytes for file in files.values()) / records if records else 100
        yield Rewrite(
            way=way, rows=stays.unionByName(came), gone=tuple(gone),
            bytes=_bytes(files, gone) + int(changed * each), changed=changed,
        )  # fmt: skip
    finally:
        found.unpersist()
        if by is not None:
            by.unpersist()


def refuse_twice(table: str, expected: int, found: int) -> None:
    """UsageError where there are not as many rows as are shown."""
    if expected != found:
        raise UsageError(
            f"table {table} cannot be published",
            f"it shows {expected:,} rows, of which {found:,} have keys of their own: its `keys` do not tell "
            "its rows apart",
            "name more columns in `keys` of its definition, and release it",
        )


def _read(folder: Folder, opened: Opened, paths: Collection[str], beside: bool = False) -> DataFrame:
    """The rows of these live files; with the name of the file beside each, if asked for."""
    from pyspark.sql import functions as F

    columns = folder.columns()
    if not paths:
        nothing = [F.lit(None).cast(one.dataType).alias(one.name) for one in columns]
        named = [F.lit(None).cast("string").alias(_FILE)] if beside else []
        return opened.spark.range(0).select(*nothing, *named)
    read = opened.spark.read.schema(columns).parquet(*(str(folder.path / unquote(path)) for path in paths))
    return read.select("*", F.col("_metadata.file_name").alias(_FILE)) if beside else read


def _span(opened: Opened, by: DataFrame) -> tuple[str, int, int] | None:
    """The column of time that is one of `by`, with its least and greatest value in microseconds; None where
    there is none, or a value without a time."""
    from pyspark.sql import functions as F

    time = opened.definition.time_column
    if time is None or time not in by.columns or dict(by.dtypes)[time] != "timestamp":
        return None
    at = F.unix_micros(quote.name(time))
    (row,) = by.agg(F.min(at), F.max(at), F.count_if(at.isNull())).collect()
    return None if row[0] is None or row[2] else (time, row[0], row[1])


def _may_have(file: LiveFile, time: str, first: int, last: int) -> bool:
    least, greatest = file.least(time), file.greatest(time)
    if least is None or greatest is None:
        return True
    return _micros(least) <= last and first <= _micros(greatest)


def _micros(text: str) -> int:
    moment: Any = parse_moment(text)
    return micros(moment - parse_moment("1970-01-01T00:00:00Z"))


def _small(files: Mapping[str, LiveFile], gone: Sequence[str]) -> tuple[str, ...]:
    """The small files that stay, once they are many: they are written together with what is new."""
    found = [path for path, file in files.items() if file.bytes < SMALL_BYTES and path not in gone]
    return tuple(found) if len(found) >= MANY_SMALL else ()


def _bytes(files: Mapping[str, LiveFile], paths: Collection[str]) -> int:
    return sum(files[path].bytes for path in paths)


def _bytes_behind(opened: Opened) -> int:
    """About how many bytes a view is made of."""
    if isinstance(opened, MaintainedVersion):
        return sum(file.bytes for file in opened.appender.files().values())
    below = [one for one in opened.reads.values() if isinstance(one, (MaintainedVersion, LogView))]
    logs = (opened.logs[topic] for topic in opened.definition.inputs)
    return sum(map(_bytes_behind, below)) + sum(
        file.bytes for log in logs for file in log.appender.files().values()
    )
