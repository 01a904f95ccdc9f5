"""SampledLog: a log as though it had some of its batches alone, for versions that are computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from twinlake.lake.log.log import Log
from twinlake.lake.log.log_start import LogStart
from twinlake.lake.log.recent import Batches
from twinlake.topics.earlier import MadeWith

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SampledLog(Log):
    """It is only read: by the names of its data files, not by Delta's snapshot. It has no start: what
    retention has kept of records of before is not in it."""

    def __init__(self, log: Log, batches: Batches, views: list[str]) -> None:
        """`views` get the names of the temporary views that it makes."""
        super().__init__(log.spark, log.lake, log.topic)
        self._log, self._batches, self._views = log, batches, views

    def started(self) -> tuple[int, LogStart | None]:
        return self._log.started()[0], None

    def end(self) -> int:
        return self._batches.to

    def rows(self, after: int, to: int, at: int | None = None) -> DataFrame:
        after, to = max(after, self._batches.after), min(to, self._batches.to)
        if not self._batches.files:
            return self.no_rows()
        return self._log.rows_of(self._batches.files, f"batch > {after} AND batch <= {to}")

    def rows_sql(self, to: int) -> str:
        name = f"sampled_{uuid4().hex}"
        self.rows(0, to).createOrReplaceTempView(name)
        self._views.append(name)
        return f"SELECT * FROM {name}"

    def as_of_schema(self, made_with: MadeWith | None) -> Log:
        return SampledLog(self._log.as_of_schema(made_with), self._batches, self._views)


@contextmanager
def sampled(logs: Mapping[str, Log], batches: Mapping[str, Batches]) -> Iterator[dict[str, Log]]:
    """The logs of these topics as though they had these batches alone, inside."""
    views: list[str] = []
    try:
        yield {name: SampledLog(logs[name], one, views) for name, one in batches.items()}
    finally:
        for view in views:
            next(iter(logs.values())).spark.catalog.dropTempView(view)
