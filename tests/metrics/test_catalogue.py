"""Every metric is named as Prometheus' users expect, said in one sentence, and in docs/metrics.md."""

from __future__ import annotations

import re

import pytest

from twinlake.metrics.catalogue import BYTES, COUNTER, HISTOGRAM, METRICS, SECONDS, Metric

LABELS = {
    "endpoint", "folder", "of", "outcome", "output", "page", "process", "service", "state", "status", "table",
    "topic", "verdict", "version",
}  # fmt: skip
"""Each is a name that the lake gives, or one of a fixed list: no value of a record, no statement, no path."""


def test_no_two_metrics_have_one_name() -> None:
    assert len({one.name for one in METRICS}) == len(METRICS) > 40


@pytest.mark.parametrize("metric", METRICS, ids=lambda one: one.name)
def test_a_metric_is_named_by_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"twinlake(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.type == COUNTER)
    assert metric.name.endswith("_seconds") == (metric.unit == SECONDS)
    assert metric.name.endswith("_bytes") == (metric.unit == BYTES)
    assert bool(metric.buckets) == (metric.type == HISTOGRAM)
    assert set(metric.labels) <= LABELS
    assert metric.of and not metric.meaning[0].islower() and metric.meaning.endswith(".")
