"""Alarms that are made to happen to real services, and a real receiver that hears of each once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from tests.alarms.test_receivers import Hook, listening
from tests.faults.twinlake import Twinlake
from tests.processes import of_home
from tests.project import PROJECT
from twinlake.base.waiting import wait_for

pytestmark = [pytest.mark.faults, pytest.mark.services]
WAIT_S = 150.0
SERVICES = "broker,registry,lake,sql,alarms"


class Platform(Twinlake):
    """Services with a receiver of their own."""

    def __init__(self, home: Path, receiver: Hook) -> None:
        super().__init__(home)
        self.receiver = receiver

    def out(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "twinlake", *arguments]
        environ = {**os.environ, "TWINLAKE_HOME": str(self.settings.home)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environ, cwd=PROJECT)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def heard(self, event: str, kind: str) -> list[dict[str, Any]]:
        return [body for _, body in self.receiver.sent if (body["event"], body["kind"]) == (event, kind)]

    def until(self, what: str, true: Callable[[], Any]) -> None:
        wait_for(what, lambda: true() or None, WAIT_S, every_s=0.1)

    def until_heard(self, event: str, kind: str) -> dict[str, Any]:
        self.until(f"{event} {kind}", lambda: self.heard(event, kind))
        return self.heard(event, kind)[0]


@pytest.fixture(scope="module")
def receiver() -> Iterator[Hook]:
    yield from listening()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, receiver: Hook) -> Iterator[Platform]:
    home = tmp_path_factory.mktemp("alarms")
    (home / "twinlake.toml").write_text(
        f'[alarms]\nwebhook_url = "{receiver.url}"\nfreshness_seconds = 5\ndisk_free_percent = 99\n'
    )
    made = Platform(home, receiver)
    try:
        made("up", "--only", SERVICES)
        yield made
    finally:
        made("down")
    assert of_home(home) == []


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


def _unsent(platform: Platform) -> bool:
    found = json.loads(platform.out("alarm", "list", "--json"))
    return found["unsent"].get("webhook", 0) > 0 and any(one["kind"] == "service" for one in found["alarms"])
