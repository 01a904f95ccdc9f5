"""Metrics by OTLP: what a receiver of OpenTelemetry's gets, and what happens while there is none."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from structlog.testing import capture_logs

from tests.broker import free_port
from tests.metrics.scraping import scrape
from tests.metrics.test_endpoint import LINE, LOGIN
from tests.posted import posted_to
from twinlake.base.errors import UsageError
from twinlake.base.waiting import wait_for
from twinlake.config.sections import Metrics
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import LAKE
from twinlake.metrics.events import Durations
from twinlake.metrics.options import Started, add_options, start_metrics, words, words_to_send
from twinlake.metrics.otlp import Pusher, Receiver, headers_of, unit_of
from twinlake.metrics.process import ProcessMetrics
from twinlake.metrics.scrape import Collector, Scrape
from twinlake.services.metrics import refuse_without_sdk

TOKEN = "t0ken-of-the-tests"


@dataclass
class Receiving:
    """A receiver of OTLP over HTTP; it keeps what it takes."""

    status: int = 200
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    taken: list[ExportMetricsServiceRequest] = field(default_factory=list)

    def metrics(self, service: str) -> dict[str, Metric]:
        """The newest that the process has sent, by name."""
        for request in reversed(self.taken):
            (of,) = request.resource_metrics
            names = {one.key: one.value.string_value for one in of.resource.attributes}
            if names["service.name"] == service:
                return {one.name: one for one in of.scope_metrics[0].metrics}
        return {}


@pytest.fixture
def receiver() -> Iterator[Receiving]:
    yield from receiving()


def receiving() -> Iterator[Receiving]:
    """One on a real port."""
    made = Receiving()

    def take(path: str, headers: dict[str, str], body: bytes) -> int:
        made.headers.append({"path": path, **{name.lower(): value for name, value in headers.items()}})
        if made.status == 200:
            made.taken.append(ExportMetricsServiceRequest.FromString(body))
        return made.status

    with posted_to(take) as url:
        made.url = f"{url}/v1/metrics"
        yield made


def collector(tmp_path: Path) -> Collector:
    """A lake server's, which knows some figures of one topic and one table."""
    freshness = Durations(catalogue.FRESHNESS)
    for seconds in (0.03, 0.2, 0.2, 500.0):
        freshness.observe(seconds, "sales", "v-1")

    def figures(scrape: Scrape) -> None:
        scrape.add(catalogue.TOPIC_LAG, 7, topic="orders")
        scrape.add(catalogue.VERSION_BEHIND, 1.5, table="sales", version="v-1")

    process = ProcessMetrics(LAKE, lambda: None, {"data": tmp_path})
    return Collector(LAKE, {**process.groups(), "figures": figures}, [freshness])


def started(tmp_path: Path, *arguments: str) -> Started:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return start_metrics(parser.parse_args(arguments), collector(tmp_path))


def secret(tmp_path: Path, line: str) -> Path:
    file = tmp_path / "headers"
    file.touch(mode=0o600)
    file.write_text(line)
    return file


def attributes(point: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in point.attributes}


def test_what_prometheus_scrapes_is_sent_too_with_units_and_with_the_receivers_secret(
    tmp_path: Path, receiver: Receiving
) -> None:
    port, password = free_port(), tmp_path / "password"
    password.write_text(LINE)
    file = secret(tmp_path, f"Authorization=Bearer {TOKEN},X-Tenant=lake")
    made = started(
        tmp_path, *words("127.0.0.1", port, password), *words_to_send(receiver.url, file, 1)
    )  # fmt: skip
    wait_for("two sendings", lambda: len(receiver.taken) > 1 or None, 30)
    scraped = scrape(f"http://127.0.0.1:{port}/metrics", LOGIN)
    made.stop()

    sent = receiver.metrics("twinlake-lake")
    lag, seconds, freshness = (
        sent[name]
        for name in (
            "twinlake_topic_lag_records",
            "twinlake_version_lag_seconds",
            "twinlake_freshness_seconds",
        )
    )
    assert (lag.unit, lag.gauge.data_points[0].as_double) == ("{records}", 7.0)
    assert attributes(lag.gauge.data_points[0]) == {"topic": "orders"}
    assert (seconds.unit, seconds.gauge.data_points[0].as_double) == ("s", 1.5)
    assert freshness.unit == "s"
    assert (
        freshness.histogram.aggregation_temporality
        == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    (point,) = freshness.histogram.data_points
    assert (point.count, sum(point.bucket_counts), attributes(point)["table"]) == (4, 4, "sales")
    counts = dict(zip([*point.explicit_bounds, float("inf")], point.bucket_counts, strict=True))
    assert {bound: many for bound, many in counts.items() if many} == {0.05: 1, 0.25: 2, float("inf"): 1}
    assert not point.HasField("min") and point.sum == pytest.approx(500.43)
    names = {name.removesuffix("_total") for name in sent}
    assert names == {
        one for one in scraped.families if any(name.startswith(one) for name, _ in scraped.samples)
    }
    assert sent["twinlake_disk_free_bytes"].unit == "By"
    assert {(one["path"], one["authorization"], one["x-tenant"]) for one in receiver.headers} == {
        ("/v1/metrics", f"Bearer {TOKEN}", "lake")
    }  # fmt: skip


def test_a_receiver_that_is_away_or_takes_nothing_is_said_once_and_what_is_sent_again_has_all(
    tmp_path: Path, receiver: Receiving, caplog: pytest.LogCaptureFixture
) -> None:
    to = Receiver(url=receiver.url, headers_file=secret(tmp_path, f"Authorization={TOKEN}"), every_s=1)
    pusher = Pusher(LAKE, collector(tmp_path).collect, to)
    with capture_logs() as lines:
        receiver.status = 400
        refused = [pusher.push() for _ in range(3)]
        receiver.status = 200
        taken = [pusher.push() for _ in range(2)]
        (tmp_path / "headers").unlink()
        gone = [pusher.push() for _ in range(2)]

    assert refused == [False] * 3 and taken == [True] * 2 and gone == [False] * 2
    assert [(one["log_level"], one["event"]) for one in lines] == [
        ("warning", "metrics are not sent; they are tried again"), ("info", "metrics are sent again"),
        ("warning", "metrics are not sent; they are tried again"),
    ]  # fmt: skip
    assert TOKEN not in str(lines) + caplog.text and "/v1/metrics" not in str(lines)
    assert "twinlake_topic_lag_records" in receiver.metrics("twinlake-lake")


def test_where_nobody_listens_the_metrics_are_served_and_the_process_ends_at_once(tmp_path: Path) -> None:
    port, password = free_port(), tmp_path / "password"
    password.write_text(LINE)
    away = f"http://127.0.0.1:{free_port()}/v1/metrics"
    made = started(tmp_path, *words("127.0.0.1", port, password), *words_to_send(away, None, 1))
    assert scrape(f"http://127.0.0.1:{port}/metrics", LOGIN).having("twinlake_topic_lag_records")
    made.stop()


@pytest.mark.parametrize("line", ["", "Bearer", "=x", "a=b,c"])
def test_a_line_that_is_none_of_headers_is_refused_without_being_said(line: str) -> None:
    with pytest.raises(ValueError, match="NAME=VALUE") as refused:
        headers_of(line)
    assert not line or line not in str(refused.value)
    assert headers_of("a=b=c, d = e") == {"a": "b=c", "d": "e"}


def test_every_metric_has_a_unit() -> None:
    assert {unit_of(one.unit) for one in catalogue.METRICS} >= {"s", "By", "1", "{records}", "{statements}"}


def test_without_the_packages_up_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "twinlake.metrics.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    refuse_without_sdk(Metrics())

    with pytest.raises(UsageError) as refused:
        refuse_without_sdk(Metrics(otlp_url="http://collector:4318/v1/metrics"))

    assert "is not installed" in refused.value.why and "twinlake[otel]" in refused.value.remedy
