"""OTLP: sends the metrics of a process to a receiver of OpenTelemetry's, by its own exporter over HTTP.

They are the families that Prometheus gets, by the same names; the catalogue knows their units. A receiver
that is away, or takes nothing, costs the process nothing: what counts is in the next sending, too, for sums
are of the whole time since the start.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import requests
import structlog
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from twinlake.base.files import read_secret
from twinlake.base.version import VERSION
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import BYTES, SECONDS, YES, Process

TIMEOUT_S = 10.0
"""For one sending, with what the exporter tries again of itself."""
STOP_S = 3.0
UNITS = {SECONDS: "s", BYTES: "By", YES: "1", "1": "1"}
"""As UCUM writes them; of all else the unit is a word in braces."""
BY_NAME = {one.name: one for one in catalogue.METRICS}
Collect = Callable[[], Iterable[Family]]
journal = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """`headers_file` holds one line of headers, like `Authorization=Bearer ...,X-Tenant=a`."""

    url: str
    headers_file: Path | None
    every_s: float


class Pusher:
    """A thread that sends what `collect` finds, from `start` to `stop`, which sends it once more."""

    def __init__(self, process: Process, collect: Collect, to: Receiver) -> None:
        self._collect, self._to = collect, to
        self._resource = Resource.create(
            {"service.namespace": "twinlake", "service.name": f"twinlake-{process}",
             "service.version": VERSION}
        )  # fmt: skip
        self._since = time.time_ns()
        self._taken = True
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)

    def start(self) -> None:
        # what it says at each try is said here, once; it names the whole address, which may be a secret
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._ending.wait(self._to.every_s):
            self.push()
        self.push()

    def push(self) -> bool:
        """Sends it all now; whether it was taken. It raises nothing."""
        why = ""
        try:
            if self._exporter().export(self._data()) is not MetricExportResult.SUCCESS:
                why = "it does not answer, or takes nothing"
        except Exception as error:  # a secret that is gone, code of others
            why = f"{type(error).__name__}: {error}"[:300]
        if bool(why) == self._taken:
            host = urlsplit(self._to.url).netloc
            if why:
                journal.warning("metrics are not sent; they are tried again", to=host, why=why)
            else:
                journal.info("metrics are sent again", to=host)
        self._taken = not why
        return self._taken

    def _exporter(self) -> OTLPMetricExporter:
        """One each time: the secret may be renewed, and a connection that is kept would end meanwhile."""
        session = requests.Session()
        session.trust_env = False  # no proxy, as elsewhere
        file = self._to.headers_file
        headers = headers_of(read_secret(file)) if file else {}
        timeout = STOP_S if self._ending.is_set() else TIMEOUT_S
        return OTLPMetricExporter(endpoint=self._to.url, headers=headers, timeout=timeout, session=session)

    def _data(self) -> MetricsData:
        metrics = [*converted(self._collect(), self._since, time.time_ns())]
        scope = ScopeMetrics(InstrumentationScope("twinlake", VERSION), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])


def headers_of(line: str) -> dict[str, str]:
    """ValueError, without the secret, for a line that is none of headers."""
    pairs = [one.partition("=") for one in line.split(",") if one.strip()]
    if not pairs or not all(name.strip() and equals for name, equals, _ in pairs):
        raise ValueError("the file of headers must hold NAME=VALUE, with commas between several")
    return {name.strip(): value.strip() for name, _, value in pairs}


def converted(families: Iterable[Family], since: int, now: int) -> Iterator[Metric]:
    """The same as OpenTelemetry's metrics, but what has no samples; times in nanoseconds since 1970."""
    for family in families:
        if not family.samples:
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        known = BY_NAME[name]
        yield Metric(name, family.documentation, unit_of(known.unit), _data_of(family, since, now))


def unit_of(unit: str) -> str:
    return UNITS.get(unit) or "{" + unit + "}"


def _data_of(family: Family, since: int, now: int) -> Gauge | Sum | Histogram:
    if family.type == "histogram":
        points = [
            _histogram(dict(labels), samples, since, now) for labels, samples in _series(family.samples)
        ]
        return Histogram(points, AggregationTemporality.CUMULATIVE)
    begin = since if family.type == "counter" else 0
    numbers = [NumberDataPoint(one.labels, begin, now, one.value) for one in family.samples]
    if family.type == "counter":
        return Sum(numbers, AggregationTemporality.CUMULATIVE, True)
    return Gauge(numbers)


def _series(samples: Iterable[Sample]) -> Iterable[tuple[tuple[tuple[str, str], ...], list[Sample]]]:
    """By labels, without the one that names a bucket."""
    found: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for one in samples:
        labels = tuple((name, value) for name, value in one.labels.items() if name != "le")
        found.setdefault(labels, []).append(one)
    return found.items()


def _histogram(labels: dict[str, str], samples: Sequence[Sample], since: int, now: int) -> HistogramDataPoint:
    """Prometheus' buckets hold all that is below their bound, OpenTelemetry's what is in them alone."""
    below = sorted((float(one.labels["le"]), int(one.value)) for one in samples if "le" in one.labels)
    counts = [many - before for (_, many), (_, before) in zip(below, [(0.0, 0), *below], strict=False)]
    total = next(one.value for one in samples if one.name.endswith("_sum"))
    bounds = [bound for bound, _ in below[:-1]]
    unknown = cast("float", None)  # the least and the greatest: the protocol may leave them out
    return HistogramDataPoint(labels, since, now, below[-1][1], total, counts, bounds, unknown, unknown)
