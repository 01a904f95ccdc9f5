"""Compaction of a log while it grows: the small files of neighbouring batches become one, beside the ingest.

In memory and by a commit of our own; readers see the same rows before and after. What is larger, or was left,
the hourly clean-up compacts by Delta's OPTIMIZE.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import structlog

from twinlake.lake.catalog.segments import first_to_merge
from twinlake.lake.delta import data_file
from twinlake.lake.delta.appender import Appender
from twinlake.lake.log.log import Log

EVERY_BATCHES = 32
LARGE_BYTES = 16 << 20
"""Files as large as this are left as they are."""

journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class LogFile:
    """A data file of the log, the first batch that it holds, and its size in bytes."""

    path: str
    batch: int
    bytes: int


class Compaction:
    """One at a time, in a thread of its own; what one that fails has left is taken the next time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"compact {log.topic.name}")
        self._running: Future[None] | None = None
        self._batches = 0

    def after_batch(self) -> None:
        """To be called after every commit of the log; returns at once."""
        self._batches += 1
        if self._batches >= EVERY_BATCHES and (self._running is None or self._running.done()):
            self._batches = 0
            self._running = self._worker.submit(self._compact)

    def _compact(self) -> None:
        try:
            with self._log.lock:
                compact(self._log.appender)
        except Exception:
            journal.exception("the log was not compacted", topic=self._log.topic.name)


def compact(appender: Appender) -> list[LogFile]:
    """Writes the newest small files as one, and what fits to them; which ones."""
    chosen = choose(small_files(appender))
    tables = [data_file.read(appender.path / unquote(file.path)) for file in chosen]
    alike = next(
        (at for at in reversed(range(len(tables))) if tables[at].schema.types != tables[-1].schema.types), -1
    )
    chosen, tables = chosen[alike + 1 :], tables[alike + 1 :]  # a field that the log has gained parts them
    if len(chosen) < 2:
        return []
    added = appender.write(pa.concat_tables(tables, promote_options="permissive"))
    app_id = f"{appender.table_id}:compaction"
    metadata = {"kind": "compaction", "from_batch": chosen[0].batch}
    removed = [file.path for file in chosen]
    appender.commit(added, app_id, appender.transaction(app_id) + 1, metadata, removed)
    return chosen


def small_files(appender: Appender) -> list[LogFile]:
    """The files that are worth merging, in order of their batches."""
    found = []
    for path, file in appender.files().items():
        first = file.least("batch")
        if first is not None and file.bytes < LARGE_BYTES:
            found.append(LogFile(path=path, batch=first, bytes=file.bytes))
    return sorted(found, key=lambda file: file.batch)


def choose(files: list[LogFile]) -> list[LogFile]:
    """The newest ones, and older ones of like size, up to a large file's size."""
    chosen = files[first_to_merge([file.bytes for file in files]) :]
    held = 0
    for index in reversed(range(len(chosen))):
        held += chosen[index].bytes
        if held > 2 * LARGE_BYTES:
            return chosen[index + 1 :]
    return chosen
