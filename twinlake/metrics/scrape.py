"""Scrape: the samples that one request gets, asked group by group of what the process holds in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import COUNTER, HISTOGRAM, Metric, Process

journal = structlog.get_logger(__name__)


class Scrape:
    """A family for each metric of a process that is asked for; those that count what happens are Events."""

    def __init__(self, process: Process, counted: Iterable[Metric] = ()) -> None:
        """`counted` are the metrics that come from Events."""
        others = {one.name for one in counted}
        self._families = {
            one.name: _family(one)
            for one in catalogue.metrics_of(process)
            if one.type != HISTOGRAM and one.name not in others
        }

    def add(self, metric: Metric, value: float | None, **labels: str) -> None:
        """One sample; none for None. ValueError for labels that are not the metric's."""
        if labels.keys() != set(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {sorted(labels)}")
        if value is not None:
            values = [labels[name] for name in metric.labels]
            self._families[metric.name].add_metric(values, float(value))

    def one_of(self, metric: Metric, known: Iterable[str], active: str, **labels: str) -> None:
        """1 for the active one of the known values of the metric's last label, 0 for the others."""
        for value in dict.fromkeys((*known, active)):
            self.add(metric, value == active, **labels, **{metric.labels[-1]: value})

    def families(self) -> Iterable[Family]:
        return self._families.values()


class Events(Protocol):
    """What counts or times what happens, since the process has started."""

    metric: Metric

    def collect(self) -> Iterable[Family]: ...


Group = Callable[[Scrape], None]
"""Adds the samples of one source; it may raise, which leaves out what it had not added."""


class Collects(Protocol):
    def collect(self) -> Iterable[Family]: ...


class Collector:
    """What a registry asks at each scrape: nothing is kept between two of them but Events."""

    def __init__(self, process: Process, groups: Mapping[str, Group], events: Sequence[Events] = ()) -> None:
        self.process, self._groups, self._events = process, dict(groups), tuple(events)

    def collect(self) -> Iterator[Family]:
        scrape = Scrape(self.process, [one.metric for one in self._events])
        failed = 0
        for name, group in self._groups.items():
            try:
                group(scrape)
            except Exception as error:
                failed += 1
                journal.warning("metrics are missing", group=name, why=str(error)[:300])
        scrape.add(catalogue.UNANSWERED, failed)
        yield from scrape.families()
        for one in self._events:
            yield from one.collect()


def registry_of(collector: Collects) -> CollectorRegistry:
    """A registry of its own: two servers in one process have nothing in common."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)  # type: ignore[arg-type]
    return registry


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    made = CounterMetricFamily if metric.type == COUNTER else GaugeMetricFamily
    return made(metric.name, metric.meaning, labels=metric.labels)
