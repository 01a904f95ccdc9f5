"""The endpoint: who may read it, in which form, and that one registry has nothing of another."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import httpx
import pytest

from tests.metrics.scraping import get, parsed, scrape
from twinlake.base.errors import TwinlakeError
from twinlake.base.passwords import hashed, verify
from twinlake.metrics import catalogue
from twinlake.metrics.catalogue import LAKE, SQL, Metric, metrics_of
from twinlake.metrics.endpoint import Endpoint
from twinlake.metrics.events import Counts, Durations
from twinlake.metrics.process import ProcessMetrics, supervised
from twinlake.metrics.scrape import Collector, Scrape, registry_of

LOGIN = ("metrics", "for-tests-only")
LINE = hashed(*LOGIN)


def of(collector: Collector) -> Endpoint:
    return Endpoint(registry_of(collector), "127.0.0.1", 0, lambda *given: verify(LINE, *given))


def url(endpoint: Endpoint) -> str:
    return f"http://127.0.0.1:{endpoint.port}/metrics"


def alone(tmp_path: Path, *events: Counts | Durations) -> Collector:
    """A process of which nothing else is known, before it has a JVM."""
    process = ProcessMetrics(SQL, lambda: None, {"data": tmp_path})
    return Collector(SQL, process.groups(), events)


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    found = of(alone(tmp_path))
    found.start()
    yield found
    found.stop()


def test_who_shows_no_login_or_a_wrong_one_is_refused_whatever_is_asked_for(endpoint: Endpoint) -> None:
    asked = [
        get(url(endpoint)),
        get(url(endpoint), ("metrics", "wrong")),
        get(url(endpoint), ("analyst", LOGIN[1])),
        get(url(endpoint), Authorization="Basic nothing"),
        get(url(endpoint), Authorization=f"Bearer {LOGIN[1]}"),
        get(f"{url(endpoint)}/other"),
    ]

    assert {one.status_code for one in asked} == {401}
    assert asked[0].headers["www-authenticate"] == 'Basic realm="Twinlake metrics"'
    assert "metrics_password" in asked[0].json()["remedy"]
    assert get(f"{url(endpoint)}/other", LOGIN).status_code == 404


def test_prometheus_gets_text_and_who_prefers_it_openmetrics(endpoint: Endpoint) -> None:
    plain = get(url(endpoint), LOGIN)
    other = get(url(endpoint), LOGIN, Accept="application/openmetrics-text; version=1.0.0")

    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert other.headers["content-type"].startswith("application/openmetrics-text")
    assert other.text.endswith("# EOF\n")


def test_what_every_process_says_of_itself_is_there_before_it_has_a_jvm(endpoint: Endpoint) -> None:
    found = scrape(url(endpoint), LOGIN)

    assert set(found.families) >= {one.name for one in metrics_of(SQL) if one.type != "histogram"}
    (memory,) = found.having("twinlake_python_resident_memory_bytes").values()
    assert memory > 10e6
    assert 0 < (found.value("twinlake_disk_free_bytes", folder="data") or 0)
    assert not found.having("twinlake_jvm_heap_used_bytes")
    assert found.value("twinlake_scrape_failed_groups") == 0


def test_what_cannot_be_asked_is_left_out_and_counted(tmp_path: Path) -> None:
    def broken(scrape: Scrape) -> None:
        raise OSError("gone")

    process = ProcessMetrics(LAKE, lambda: None, {"data": tmp_path / "missing"})
    endpoint = of(Collector(LAKE, {**process.groups(), "broken": broken}))
    endpoint.start()
    try:
        found = scrape(url(endpoint), LOGIN)
    finally:
        endpoint.stop()

    assert found.value("twinlake_scrape_failed_groups") == 2
    assert found.having("twinlake_start_timestamp_seconds")


def test_two_servers_in_one_process_count_apart_and_nothing_answers_after_the_end(tmp_path: Path) -> None:
    counts = [Counts(catalogue.QUERIES) for _ in range(2)]
    endpoints = [of(alone(tmp_path, one)) for one in counts]
    for endpoint in endpoints:
        endpoint.start()
    counts[0].add("http", "ok")

    seen = [scrape(url(one), LOGIN).value("twinlake_queries_total", endpoint="http", outcome="ok")
            for one in endpoints]  # fmt: skip
    for endpoint in endpoints:
        endpoint.stop()

    assert seen == [1.0, None]
    with pytest.raises(httpx.ConnectError):
        get(url(endpoints[0]), LOGIN)


def test_a_port_that_is_taken_is_an_error_that_names_the_setting() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = Endpoint(registry_of(Collector(SQL, {})), "127.0.0.1", other.getsockname()[1], verify_none)

        with pytest.raises(TwinlakeError, match="cannot be served") as refused:
            taken.start()

    assert "[metrics]" in refused.value.remedy


def verify_none(user: str, password: str) -> bool:
    return False


def test_a_client_that_says_nothing_keeps_nobody_waiting(endpoint: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port)):
        began = monotonic()
        found = get(url(endpoint), LOGIN)

    assert found.status_code == 200 and monotonic() - began < 5


def test_a_series_of_what_is_gone_is_forgotten_and_the_librarys_own_are_left_out() -> None:
    steps = Durations(catalogue.STEP_TIME)
    for version in ("a-1", "a-2"):
        steps.observe(0.3, "orders", version)
    steps.observe(-1.0, "orders", "a-2")

    steps.keep([("orders", "a-2")])

    (family,) = steps.collect()
    assert {one.labels["version"] for one in family.samples} == {"a-2"}
    assert not [one for one in family.samples if one.name.endswith("_created")]
    sums = {one.name: one.value for one in family.samples if "le" not in one.labels}
    assert sums == {"twinlake_step_seconds_count": 2.0, "twinlake_step_seconds_sum": 0.3}


def test_a_sample_has_exactly_the_labels_of_its_metric() -> None:
    metric: Metric = catalogue.TOPIC_LAG

    with pytest.raises(ValueError, match="has the labels"):
        Scrape(LAKE).add(metric, 1, topic="orders", version="v")


def test_restarts_are_those_of_the_supervisors_records(tmp_path: Path) -> None:
    (tmp_path / "lake.json").write_text('{"part": "lake", "state": "ready", "restarts": 3}')
    (tmp_path / "sql.json").write_text('{"part": "sql", "state": "failed", "restarts": 1}')
    (tmp_path / "torn.json").write_text('{"part": "to')
    scrape = Scrape(LAKE)

    supervised(tmp_path)(scrape)
    supervised(tmp_path / "none")(scrape)

    samples = {
        (one.name, one.labels["service"]): one.value for made in scrape.families() for one in made.samples
    }
    assert samples == {
        ("twinlake_service_ready", "lake"): 1.0, ("twinlake_service_restarts_total", "lake"): 3.0,
        ("twinlake_service_ready", "sql"): 0.0, ("twinlake_service_restarts_total", "sql"): 1.0,
    }  # fmt: skip
    assert parsed("").families == {}
