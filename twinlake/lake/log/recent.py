"""Recent: the newest batches of a log that together hold so many records, by the statistics of its files.

Of a file with one batch they say all; of one with several, two columns are read. No Spark.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.base.location import Location
from twinlake.base.times import EPOCH, parse_moment
from twinlake.kinds.grid import micros
from twinlake.lake.delta.data_file import BATCH_ROWS, UNDECODABLE
from twinlake.lake.delta.table_state import LiveFile
from twinlake.lake.log.log import Log
from twinlake.lake.storage import store
from twinlake.lake.storage.damage import damaged


@dataclass(frozen=True, kw_only=True)
class Batches:
    """The batches in (after, to] of a log, and the data files (paths below the table) that have them."""

    after: int
    to: int
    files: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Held:
    """So many records, whatever their verdict, and the earliest and the latest time in microseconds that
    Kafka gave one of them."""

    records: int
    begin: int
    end: int

    def with_more(self, other: Held | None) -> Held:
        if other is None:
            return self
        begin, end = min(self.begin, other.begin), max(self.end, other.end)
        return Held(records=self.records + other.records, begin=begin, end=end)


@dataclass(frozen=True, kw_only=True)
class Recent:
    """The newest batches of a log, and by number what each holds that holds some.

    `of_records` are all that the log holds up to there.
    """

    batches: Batches
    held: Mapping[int, Held]
    of_records: int

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return self.batches.after == 0

    @property
    def records(self) -> int:
        return sum(one.records for one in self.held.values())


@dataclass(frozen=True)
class _File:
    """A data file of the log with its first and its last batch, as far as its statistics tell."""

    path: str
    live: LiveFile

    @property
    def first(self) -> float:
        found = self.live.least("batch")
        return 0 if found is None else found

    @property
    def last(self) -> float:
        found = self.live.greatest("batch")
        return math.inf if found is None else found

    def held(self, table: Location) -> Iterator[tuple[int, Held]]:
        """What it has of each of its batches."""
        records, times = self.live.records, (self.live.least("timestamp"), self.live.greatest("timestamp"))
        if self.first != self.last or records is None or None in times:
            yield from _read(table / self.path)
        else:
            begin, end = (micros(parse_moment(one) - EPOCH) for one in times)
            yield int(self.first), Held(records=records, begin=begin, end=end)


def newest(log: Log, to: int, most: int) -> Recent:
    """The newest batches up to batch `to` that together hold at most so many records; always the newest one
    that holds some."""
    files = sorted(_files(log, to), key=lambda one: one.last, reverse=True)
    found, seen, floor = dict[int, Held](), 0, 0.0
    for number, file in enumerate(files):
        for batch, held in file.held(log.path):
            found[batch] = held.with_more(found.get(batch))
            seen += held.records
        floor = files[number + 1].last if number + 1 < len(files) else 0.0
        if seen > most and sum(found[batch].records for batch in found if floor < batch <= to) > most:
            break
    records, taken, after = 0, dict[int, Held](), int(floor)
    for batch in sorted((batch for batch in found if floor < batch <= to), reverse=True):
        records += found[batch].records
        if taken and records > most:
            after = batch
            break
        taken[batch] = found[batch]
    return Recent(
        batches=Batches(after=after, to=to, files=tuple(one.path for one in files if one.last > after)),
        held=taken,
        of_records=sum(one.live.records or 0 for one in files),
    )


def everything(log: Log, to: int) -> Batches:
    """All batches up to batch `to`."""
    return Batches(after=0, to=to, files=tuple(one.path for one in _files(log, to)))


def _files(log: Log, to: int) -> list[_File]:
    """Those that may have records of the batches up to that one."""
    found = (_File(unquote(path), live) for path, live in log.appender.files().items())
    return [one for one in found if one.first <= to]


def _read(file: Location) -> Iterator[tuple[int, Held]]:
    """What a data file has of each batch, part by part; DamagedError where it cannot be read."""
    try:
        stored = pq.ParquetFile(store.reader(file), page_checksum_verification=True)
        for part in stored.iter_batches(BATCH_ROWS, columns=["batch", "timestamp"]):
            at = part["timestamp"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            rows = pa.table({"batch": part["batch"], "at": at}).group_by("batch")
            for row in rows.aggregate([([], "count_all"), ("at", "min"), ("at", "max")]).to_pylist():
                times = {"begin": row["at_min"], "end": row["at_max"]}
                yield row["batch"], Held(records=row["count_all"], **times)
    except FileNotFoundError as error:
        raise damaged(file, "it is not there", "a data file of the log") from error
    except UNDECODABLE as error:
        raise damaged(file, str(error), "a data file of the log") from error
