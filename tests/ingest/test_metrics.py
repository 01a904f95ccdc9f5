"""What a scrape of a whole lake server says: a real broker, real records, a real JVM, Prometheus' parser."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from jobs.tables import sales_per_region
from tests.ingest.stage import Stage
from tests.ingest.test_reload import send
from tests.ingest.whole_server import WholeServer
from tests.metrics.scraping import Scraped, get, scrape
from tests.unopened import make_live
from twinlake.base.passwords import hashed, verify
from twinlake.metrics.catalogue import LAKE, metrics_of
from twinlake.metrics.endpoint import Endpoint
from twinlake.metrics.scrape import registry_of
from twinlake.server.serving import metrics_of as collector_of
from twinlake.services.folders import folders_of
from twinlake.services.supervise import record
from twinlake.services.supervise.record import Record

LOGIN = ("metrics", "for-tests-only")
MOST_CPU_S = 0.05
"""Of the thread that answers a scrape: how long it takes by the clock says how busy the machine is."""
RAISES_ON = 13


@pytest.fixture
def stage(faked: Stage) -> Stage:
    return faked


@pytest.fixture
def url(whole: WholeServer, stage: Stage) -> Iterator[str]:
    line = hashed(*LOGIN)
    collector = collector_of(whole.server, whole.server.settings, lambda: stage.spark)
    endpoint = Endpoint(registry_of(collector), "127.0.0.1", 0, lambda *given: verify(line, *given))
    endpoint.start()
    yield f"http://127.0.0.1:{endpoint.port}/metrics"
    endpoint.stop()


def built(whole: WholeServer) -> tuple[str, str]:
    """Two tables over the topic, maintained from now on: sales, and one whose steps raise on one record; the
    names of their versions."""
    sales = replace(sales_per_region.TABLE, name="sales", inputs=(whole.name,))
    raising = replace(sales, name="raising", where=f"1 / (order_id - {RAISES_ON}) < 2")
    tables = (sales, raising)
    plan = whole.do("plan", definitions={table.name: table.to_json() for table in tables})
    whole.do("build", plan=plan["id"])
    first, second = (whole.server.lake.version(table.name).name for table in tables)
    return first, second


def test_a_scrape_says_what_the_lake_server_knows(whole: WholeServer, stage: Stage, url: str) -> None:
    lake, topic = whole.server.lake, whole.name
    version, other = built(whole)
    make_live(whole.server.settings.lake, {"sales": version})
    folders = folders_of(whole.server.settings)
    folders.make()
    record.save(folders, Record(part="lake", state="ready", restarts=2))
    sent_at = time.time()
    send(stage, topic, "a", "b", "c", customer="somebody-of-the-records")
    send(stage, topic, "d", status="refunded")
    send(stage, topic, "e", order_id=RAISES_ON)
    whole.until_records(5)

    def now() -> Scraped:
        return scrape(url, LOGIN)

    def is_seen() -> bool:
        found = now()
        of_other = found.value("twinlake_version_stalled", table="raising", version=other)
        lags = (found.value("twinlake_version_lag_records", table="sales", version=version),
                found.value("twinlake_topic_lag_records", topic=topic))  # fmt: skip
        return of_other == 1 and lags == (0, 0)

    whole.until("the stalled version", is_seen, 400)
    before = now()
    assert before.active("twinlake_certificate_verdict", "verdict") == []
    whole.do("verify", table="sales")
    done = threading.Event()

    def rebuild() -> None:
        try:
            whole.do("rebuild", table="sales")
        finally:
            done.set()

    rebuilding = threading.Thread(target=rebuild)
    rebuilding.start()
    took, meanwhile = [], 0
    while not done.is_set() or len(took) < 20:
        began = time.monotonic()
        found = now()
        took.append(time.monotonic() - began)
        meanwhile += not done.is_set()
    rebuilding.join()
    print(f"scrapes: {len(took)}, {meanwhile} beside a rebuild, median {statistics.median(took) * 1000:.0f} "
          f"ms, {len(found.text):,} characters, {len(found.samples)} samples")  # fmt: skip
    found = now()

    assert meanwhile > 0
    registry = registry_of(collector_of(whole.server, whole.server.settings, lambda: stage.spark))
    assert statistics.median(_cpu_s(registry) for _ in range(10)) < MOST_CPU_S
    assert {one.name: one.type for one in metrics_of(LAKE)} == found.families
    assert found.value("twinlake_scrape_failed_groups") == 0
    assert found.value("twinlake_ready") == 1
    _of_the_process(found)
    assert found.active("twinlake_topic_state", "state", topic=topic) == ["running"]
    counts = found.having("twinlake_topic_records", topic=topic)
    assert {dict(of)["verdict"]: n for of, n in counts.items() if n} == {"valid": 4, "invalid": 1}
    assert found.value("twinlake_topic_deleted_records", topic=topic) == 0
    ingested = found.value("twinlake_topic_ingested_timestamp_seconds", topic=topic) or 0
    assert sent_at - 60 < ingested < time.time() + 60
    assert (found.value("twinlake_batch_seconds_count", topic=topic) or 0) >= 1
    for of in ("log", "table"):
        assert 0 < _mean(found, "twinlake_commit_seconds", of=of) < 5
    sales = {"table": "sales", "version": version}
    assert 0 < _mean(found, "twinlake_step_seconds", **sales) < 60
    assert 0 < _mean(found, "twinlake_freshness_seconds", **sales) < 120
    assert found.value("twinlake_version_live", **sales) == 1
    assert found.value("twinlake_version_stalled", **sales) == 0
    assert found.value("twinlake_version_failures_total", **sales) == 0
    assert (found.value("twinlake_version_failures_total", table="raising", version=other) or 0) >= 1
    assert found.value("twinlake_version_live", table="raising", version=other) == 0
    assert found.value("twinlake_release_number") == 1
    assert found.value("twinlake_table_freshness_seconds", table="sales") == 0
    assert found.active("twinlake_certificate_verdict", "verdict", table="sales") == ["equal"]
    assert time.time() - (found.value("twinlake_certificate_timestamp_seconds", table="sales") or 0) < 600
    assert found.active("twinlake_witness_verdict", "verdict", table="sales") == ["equal"]
    assert found.active("twinlake_topic_witness_verdict", "verdict", topic=topic) == ["equal"]
    assert found.value("twinlake_damaged_files") == 0
    assert found.value("twinlake_service_restarts_total", service="lake") == 2
    hidden = (LOGIN[1], "somebody-of-the-records", str(whole.server.settings.home), "order_id -")
    assert [one for one in hidden if one in found.text] == []
    assert get(url).status_code == 401

    at = "2026-01-31T12:00:00Z"
    lake.versions.retire(lake.version("raising", other), at)
    assert not [labels for name, labels in now().samples if ("version", other) in labels]


def _of_the_process(found: Scraped) -> None:
    """Figures that no process can lack, and no machine exceed."""
    heap, most = (found.value(f"twinlake_jvm_heap_{name}_bytes") or 0 for name in ("used", "max"))
    assert 10e6 < heap < most < 1e12
    assert (found.value("twinlake_python_resident_memory_bytes") or 0) > 50e6
    assert (found.value("twinlake_jvm_resident_memory_bytes") or 0) > 100e6
    for folder in ("data", "lake"):
        free = found.value("twinlake_disk_free_bytes", folder=folder) or 0
        assert 0 < free < (found.value("twinlake_disk_size_bytes", folder=folder) or 0)
    assert 0 < time.time() - (found.value("twinlake_start_timestamp_seconds") or 0) < 86_400


def _cpu_s(registry: CollectorRegistry) -> float:
    began = time.thread_time()
    assert generate_latest(registry)
    return time.thread_time() - began


def _mean(found: Scraped, name: str, **labels: str) -> float:
    count = found.value(f"{name}_count", **labels) or 0
    assert count >= 1, (name, labels)
    return (found.value(f"{name}_sum", **labels) or 0) / count
