"""Known ids: the index of the ids in a topic's log, as of its end; this machine keeps it over restarts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from twinlake.base.errors import DamagedError
from twinlake.ingest import ids
from twinlake.ingest.duplicates import Duplicates, Seen
from twinlake.ingest.kept_ids import KeptIds
from twinlake.ingest.log_end import LogEnd
from twinlake.kinds.grid import micros
from twinlake.lake.log.log import Log


class KnownIds:
    """Of one topic, for its ingest. `folder` is where they are kept."""

    def __init__(self, log: Log, folder: Path) -> None:
        self._log = log
        self._kept = KeptIds(folder)
        self._state = b""  # that of the log which the index knows
        self._way: bytes | None = None
        self.index = self._nobody()

    def _nobody(self) -> Duplicates:
        within = self._log.topic.contract.unique_within
        return Duplicates(micros(within) if within else 0, partial(ids.since, self._log))

    def open(self, end: LogEnd) -> None:
        """The index is as of the log's end: what is kept of it, and what came since; else it asks the log,
        once a record asks it."""
        if self._state == (state := ids.state(end)):
            return
        self.index, self._way = self._nobody(), ids.way(self._log)
        if self._way and (kept := self._kept.load(self._way, end.batch, self._state_at)):
            self.index.remember(kept.since, kept.chunks, kept.more)
            if kept.batch < end.batch:
                came = ids.of(self._log, kept.batch, end.batch)
                self.index.add(came.high, came.low, came.times)
        self._state = state

    def _state_at(self, batch: int) -> bytes | None:
        """Names the log's end at this batch; None where nobody knows it any more."""
        try:
            metadata = self._log.metadata(batch)
        except DamagedError:  # an older commit: a start does not need it
            return None
        return ids.state(LogEnd.of(self._log.topic.name, metadata)) if metadata else None

    def add(self, before: LogEnd, end: LogEnd, seen: Seen, now_micros: int | None = None) -> None:
        """Those of the batch by which the log got from one end to the other; whom no record of that time asks
        for is forgotten."""
        self.index.add(seen.high, seen.low, seen.times)
        if now_micros is not None:
            self.index.evict(now_micros)
        if end.schemas.keys() != before.schemas.keys():
            self._way = ids.way(self._log)  # how a field is read depends on whose records there are
        after, self._state = self._state, ids.state(end)
        if self._way:
            self._kept.add(seen, self.index, self._way, after=after, batch=end.batch, state=self._state)

    def close(self) -> None:
        """No file is open, and none is being written, until ids are added."""
        self._kept.close()
