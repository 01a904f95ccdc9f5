"""Events: counters and histograms that are added to where something happens, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.metrics_core import Metric as Family

from twinlake.metrics.catalogue import Metric

CREATED = "_created"
"""The client library's own samples beside each: when a series began, which `rate` does not need."""


class Durations:
    """A histogram; `keep` forgets series of what is gone, so that there are no more than what is there."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._histogram = Histogram(
            metric.name, metric.meaning, metric.labels, registry=None, buckets=metric.buckets
        )
        self._lock = threading.Lock()
        self._series: set[tuple[str, ...]] = set()

    def observe(self, seconds: float, *labels: str) -> None:
        """`labels` in the order of the metric's; a clock that was set back counts as 0."""
        with self._lock:
            series = self._histogram.labels(*labels) if labels else self._histogram
            self._series.add(labels)
            series.observe(max(0.0, seconds))

    def keep(self, series: Collection[tuple[str, ...]]) -> None:
        """Forget all others."""
        with self._lock:
            for gone in self._series - set(series):
                self._histogram.remove(*gone)
                self._series.discard(gone)

    def collect(self) -> Iterator[Family]:
        with self._lock:
            yield from _without_created(self._histogram)


class Counts:
    """A counter; series that are known before anything happens begin with 0."""

    def __init__(self, metric: Metric, known: Collection[tuple[str, ...]] = ()) -> None:
        self.metric = metric
        self._counter = Counter(metric.name, metric.meaning, metric.labels, registry=None)
        self._lock = threading.Lock()
        self._series = set(known)
        for labels in known:
            self._counter.labels(*labels)

    def add(self, *labels: str) -> None:
        """`labels` in the order of the metric's."""
        with self._lock:
            self._series.add(labels)
            self._counter.labels(*labels).inc()

    def keep(self, series: Collection[tuple[str, ...]]) -> None:
        """Forget all others; those of these that nothing has been counted of count 0."""
        with self._lock:
            for gone in self._series - set(series):
                self._counter.remove(*gone)
            for one in series:
                self._counter.labels(*one)
            self._series = set(series)

    def collect(self) -> Iterator[Family]:
        with self._lock:
            yield from _without_created(self._counter)


def _without_created(metric: Counter | Histogram) -> Iterator[Family]:
    for family in metric.collect():
        family.samples = [one for one in family.samples if not one.name.endswith(CREATED)]
        yield family
