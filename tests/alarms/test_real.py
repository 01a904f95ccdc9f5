"""Alarms that are made to happen to real services, and a real receiver that hears of each once."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from tests.alarms.platform import Platform, copy_of_ours, running
from tests.alarms.test_receivers import Hook, listening
from tests.metrics.recording import (
    STEP_S,
    Fires,
    any_of,
    check,
    grown,
    older,
    rules_with,
)
from tests.metrics.test_alerts import needs_promtool
from tests.metrics.test_otlp import Receiving, receiving

pytestmark = [pytest.mark.faults, pytest.mark.services]
SALES = "sales_per_region"
FRESHNESS_S, FREQUENCY_S, DOWN_S = 5, 30, 80
FRESH, INGESTED = "twinlake_table_freshness_seconds", "twinlake_topic_ingested_timestamp_seconds"
BOUNDS = {
    f"{FRESH} > 300": f"{FRESH} > {FRESHNESS_S}",
    f"{INGESTED} > 86400": f"{INGESTED} > {FREQUENCY_S}",
    "twinlake_disk_free_bytes < 0.05 *": "twinlake_disk_free_bytes < 0.99 *",
}
"""Those of this run's settings and contract, for the rules whose own take hours."""
FIRE = (
    Fires(alert="TwinlakeDown", is_true=any_of("up", lambda up: up == 0), for_s=60),
    Fires(
        alert="TwinlakeTableLate",
        is_true=any_of(FRESH, lambda s: s > FRESHNESS_S),
    ),
    Fires(alert="TwinlakeTopicQuiet", is_true=older(INGESTED, FREQUENCY_S)),
    Fires(
        alert="TwinlakeQuarantine",
        is_true=any_of("twinlake_topic_records", lambda n: n > 0, verdict="invalid"),
    ),
    Fires(alert="TwinlakeRestarts", is_true=grown("twinlake_service_restarts_total", 3, service="registry")),
    Fires(alert="TwinlakeDisk", is_true=any_of("twinlake_disk_free_bytes", lambda _: True)),
)
NEVER = ("TwinlakeStalled", "TwinlakeUnequal", "TwinlakeDamaged", "TwinlakeCertificateOld")
"""Of these the run makes nothing happen."""


@pytest.fixture(scope="module")
def receiver() -> Iterator[Hook]:
    yield from listening()


@pytest.fixture(scope="module")
def otlp() -> Iterator[Receiving]:
    yield from receiving()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, receiver: Hook, otlp: Receiving) -> Iterator[Platform]:
    """Of a project whose topic may be quiet for half a minute."""
    project = copy_of_ours(tmp_path_factory.mktemp("of_alarms") / "project")
    with (project / "contracts" / "orders.yaml").open("a") as contract:
        contract.write(
            f"\nslaProperties:\n  - {{property: frequency, value: {FREQUENCY_S}, unit: seconds}}\n"
        )
    settings = (
        f'[alarms]\nwebhook_url = "{receiver.url}"\nfreshness_seconds = {FRESHNESS_S}\n'
        "disk_free_percent = 99\napproval_minutes = 1\n"
        f'[metrics]\notlp_url = "{otlp.url}"\notlp_seconds = 2\n[limits]\nstart_seconds = 400\n'
    )
    with running(Platform(tmp_path_factory.mktemp("alarms"), project, receiver), settings) as made:
        yield made


def test_a_test_message_comes_to_each_receiver(platform: Platform) -> None:
    said = platform.out("alarm", "test")
    assert "webhook has accepted it" in said and "log has accepted it" in said
    assert len(platform.heard("test", "topic")) == 1


def test_a_disk_with_less_room_than_the_bound_is_one(platform: Platform) -> None:
    assert "bytes are free" in platform.until_heard("raised", "disk")["why"]
    assert "disk" in platform.out("alarm", "list")


def test_a_table_that_lacks_what_kafka_has_is_late_until_it_has_it(platform: Platform) -> None:
    platform("pause", "sales_per_region", "--table", "--reason", "a test")
    platform("produce", "orders", "--count", "200")
    late = platform.until_heard("raised", "freshness")
    platform.recorded("the lateness", FIRE[1])
    platform("resume", "sales_per_region", "--table")
    platform.until_heard("over", "freshness")

    assert late["title"] == "sales_per_region" and "freshness_seconds" in late["why"]
    titles = {one["title"] for one in platform.heard("raised", "freshness")}
    assert len(platform.heard("raised", "freshness")) == len(titles)


def test_records_that_are_refused_are_one(platform: Platform) -> None:
    servers = platform.settings.services().kafka("ingest").bootstrap_servers
    producer = Producer({"bootstrap.servers": servers})
    for number in range(50):
        producer.produce("orders", b"nothing that a schema knows %d" % number)
    assert producer.flush(30) == 0
    assert "were refused" in platform.until_heard("raised", "quarantine")["what"]


def test_a_receiver_that_is_away_and_a_kill_of_the_watch_lose_nothing_and_send_nothing_twice(
    platform: Platform,
) -> None:
    platform.receiver.status = 503
    lake = platform.python("lake")
    os.kill(lake.pid, signal.SIGSTOP)
    try:
        platform.until("an alarm that waits", lambda: _unsent(platform))
        platform.python("alarms").kill()
        platform.until("the watch again", lambda: platform.ready_again("alarms", 1))
        assert _unsent(platform)
        platform.receiver.sent.clear()
        platform.receiver.status = 200
        dead = platform.until_heard("raised", "service")
        platform.until("a minute without an answer", lambda: _down_s(platform) >= DOWN_S)
    finally:
        psutil.Process(lake.pid).resume()
    platform.until_heard("over", "service")

    assert dead["title"] in ("lake", "sql")
    ids = [body["id"] for _, body in platform.receiver.sent]
    assert len(ids) == len(set(ids))


def test_a_service_that_is_started_again_and_again_is_one(platform: Platform) -> None:
    for restart in range(1, 4):
        platform.python("registry").kill()
        platform.until("the registry", lambda n=restart: platform.ready_again("registry", n))
    assert platform.until_heard("raised", "restarts")["title"] == "registry"


def test_what_is_silenced_is_on_the_list_and_not_sent(platform: Platform) -> None:
    platform("alarm", "silence", "freshness", "--until", "10 minutes", "--reason", "a test")
    before = len(platform.heard("raised", "freshness"))
    platform("pause", "sales_per_region", "--table", "--reason", "a test")
    platform("produce", "orders", "--count", "200")
    platform.until("the alarm", lambda: "  silenced  " in platform.out("alarm", "list"))
    platform("resume", "sales_per_region", "--table")

    assert len(platform.heard("raised", "freshness")) == before


def test_a_topic_is_quiet_until_a_record_comes(platform: Platform) -> None:
    platform("produce", "orders", "--count", "10")
    platform.receiver.sent.clear()
    quiet = platform.until_heard("raised", "quiet")
    platform("produce", "orders", "--count", "10", "--seed", "1")
    platform.until_heard("over", "quiet")

    assert quiet["title"] == "topic orders" and quiet["what"].startswith("no record has come since")
    assert f"every {FREQUENCY_S} seconds" in quiet["why"]


def test_a_plan_that_passed_its_gate_waits_until_somebody_decides(platform: Platform) -> None:
    file = platform.project / "jobs" / "tables" / f"{SALES}.py"
    written = file.read_text()
    assert written.count('    keys=("region",),\n') == 1
    file.write_text(written.replace("    keys=(", "    where=\"status <> 'cancelled'\",\n    keys=("))
    for act in ("plan", "build", "gate"):
        platform(act)
    waits = platform.until_heard("raised", "approval")
    platform("reject", "--reason", "a test")
    platform.until_heard("over", "approval")

    assert SALES in waits["why"] and "it passed its gate at" in waits["why"]
    assert waits["title"].removeprefix("plan ") in waits["remedy"]


def test_a_receiver_of_opentelemetry_has_the_figures_of_both_servers(
    platform: Platform, otlp: Receiving
) -> None:
    platform.until("figures of the SQL server", lambda: otlp.metrics("twinlake-sql"))
    lake, sql = otlp.metrics("twinlake-lake"), otlp.metrics("twinlake-sql")

    assert lake["twinlake_topic_lag_records"].unit == "{records}"
    assert (
        lake["twinlake_topic_lag_records"].gauge.data_points[0].attributes[0].value.string_value == "orders"
    )
    assert lake["twinlake_version_lag_seconds"].unit == "s"
    fresh = (lake | sql)[FRESH]
    told = {point.attributes[0].value.string_value for point in fresh.gauge.data_points}
    assert fresh.unit == "s" and told == {"latest_order", SALES}, "of stored tables alone"


@needs_promtool
def test_prometheus_would_have_fired_each_alert_of_this_run_at_its_time(
    platform: Platform, tmp_path: Path
) -> None:
    """Of what was scraped while the tests above made it happen."""
    moments = [*platform.recorder.moments]
    rules = rules_with(tmp_path / "rules.yml", BOUNDS)
    print(f"{len(moments)} scrapes; {[(one.alert, one.at(moments)) for one in FIRE]}")

    assert check(moments, rules, FIRE, NEVER, tmp_path) == ""


def _down_s(platform: Platform) -> int:
    """How long the lake server has not answered by the record, until now."""
    seconds = 0
    for moment in reversed([*platform.recorder.moments]):
        if not any(
            name == "up" and ("instance", "lake") in of and up == 0 for (name, of), up in moment.items()
        ):
            break
        seconds += STEP_S
    return seconds


def _unsent(platform: Platform) -> bool:
    found = json.loads(platform.out("alarm", "list", "--json"))
    return found["unsent"].get("webhook", 0) > 0 and any(one["kind"] == "service" for one in found["alarms"])
