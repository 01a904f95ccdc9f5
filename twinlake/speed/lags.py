"""Lags: how far each topic's log is, as the server last heard, for lags without a look at the disk."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlake.lake.log.log import Log
from twinlake.topics.verdict import rows_in

REMEMBERED = 10_000
"""Batches of each topic whose arrival is remembered."""


@dataclass(frozen=True, kw_only=True)
class End:
    """The end of a log: its newest batch, how many records that is in all, its watermark in microseconds, and
    how far its own clocks have come. `appended_at` is when Kafka had appended the newest record of a batch
    that has some, in microseconds."""

    batch: int = 0
    records: int = 0
    watermark: int | None = None
    clocks: dict[str, int | None] = field(default_factory=dict)
    appended_at: int | None = None


class Lags:
    def __init__(self, logs: Mapping[str, Log]) -> None:
        self._lock = threading.Lock()
        self._ends: dict[str, End] = {}
        self._arrived: dict[str, deque[tuple[int, float]]] = {}
        for name, log in logs.items():
            self.heard(name, log.metadata())

    def heard(self, topic: str, metadata: Mapping[str, Any]) -> None:
        """The topic's log is at this commit now."""
        end = End(
            batch=int(metadata.get("batch", 0)),
            records=rows_in(metadata.get("counts", {})),
            watermark=metadata.get("watermark"),
            clocks=metadata.get("clocks", {}),
            appended_at=_newest(metadata),
        )
        with self._lock:
            self._ends[topic] = end
            arrived = self._arrived.setdefault(topic, deque(maxlen=REMEMBERED))
            arrived.append((end.batch, time.monotonic()))

    def end(self, topic: str) -> End:
        return self._ends.get(topic, End())

    def waiting_s(self, topic: str, position: int) -> float:
        """How long the first batch after the position has been in the log, as far as this process saw."""
        with self._lock:
            arrived = list(self._arrived.get(topic, ()))
        heard = next((at for batch, at in arrived if batch > position), None)
        return 0.0 if heard is None else time.monotonic() - heard


def _newest(metadata: Mapping[str, Any]) -> int | None:
    return max(metadata.get("seen", {}).values(), default=None) if metadata.get("records") else None
