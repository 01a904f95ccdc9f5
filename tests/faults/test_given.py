"""A lake whose Kafka and registry are somebody else's: another installation's, really started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.gate import Gate
from tests.processes import parts_of_home
from tests.project import PROJECT
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.services.ports import free_port
from twinlake.topics.kafka import Kafka
from twinlake.topics.registry import Registry

RECORDS = 2_000
ENDLESS = """SELECT count(*) FROM serve.orders a CROSS JOIN serve.orders b CROSS JOIN serve.orders c
    CROSS JOIN serve.orders d WHERE sqrt(a.order_id + b.order_id) + c.order_id + d.order_id < 0"""


@dataclass(frozen=True)
class Twinlake:
    """The command line, in a home of its own."""

    home: Path

    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "twinlake", *arguments], capture_output=True, text=True, timeout=600,
            cwd=PROJECT, env={**os.environ, "TWINLAKE_HOME": str(self.home), **environ},
        )  # fmt: skip

    def told(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").stdout)

    def wrong(self) -> list[dict[str, str]]:
        """The errors that `doctor` finds."""
        return [one["error"] for one in self.told("doctor")["checks"] if not one["ok"]]

    @property
    def services(self) -> Services:
        return Settings(home=self.home).services()

    @property
    def services_json(self) -> str:
        return (self.home / "services.json").read_text()

    def settings(self, text: str) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "twinlake.toml").write_text(text)

    def parts(self) -> set[str]:
        """What runs for this home."""
        return parts_of_home(self.home)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    """A broker and a registry without any topic or schema of ours, but for those of their home."""
    made = Twinlake(tmp_path_factory.mktemp("theirs") / "home")
    port = free_port()
    made.settings(f"[ports]\nbroker = {port}\n")
    started = made("up", "--only", "broker,registry")
    try:
        assert started.returncode == 0, started.stderr
        assert made.services.bootstrap_servers == f"127.0.0.1:{port}", "a fixed port"
        yield made
    finally:
        ended = made("down")
    assert ended.returncode == 0 and made.parts() == set()


@pytest.fixture
def ours(theirs: Twinlake, tmp_path: Path) -> Iterator[Twinlake]:
    made = Twinlake(tmp_path / "home")
    made.settings(given(theirs))
    yield made
    made("down")
    assert made.parts() == set()


def given(theirs: Twinlake) -> str:
    services = theirs.services
    return (
        f'[kafka]\nbootstrap_servers = "{services.bootstrap_servers}"\n'
        f'[registry]\nurl = "{services.registry_url}"\n'
    )


def admin(theirs: Twinlake) -> AdminClient:
    return _admin(theirs.services.bootstrap_servers)


@cache
def _admin(servers: str) -> AdminClient:
    """Kept: what it was asked ends with it."""
    return AdminClient({"bootstrap.servers": servers, "log_level": 0})


def configure(theirs: Twinlake, topic: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    (done,) = (
        admin(theirs)
        .incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])])
        .values()
    )
    done.result(20)


def remake(theirs: Twinlake, topic: str, **config: str) -> None:
    """The topic without a record, with this configuration."""
    kafka = Kafka(theirs.services.kafka("ingest"))
    if kafka.topic(topic):
        admin(theirs).delete_topics([topic])[topic].result(20)
        wait_for("the topic to be gone", lambda: kafka.topic(topic) is None or None, 20)
    admin(theirs).create_topics([NewTopic(topic, 2, 1, config=config)])[topic].result(20)
    wait_for("the topic", lambda: kafka.topic(topic), 20)


@pytest.fixture
def gate(theirs: Twinlake, tmp_path: Path) -> Iterator[Gate]:
    """Their registry, over TLS and with a password."""
    made = Gate(theirs.services.registry_url, tmp_path / "tls", ("twin", "first-password"))
    yield made
    made.close()


def test_what_another_installation_runs_is_used_and_not_started(
    ours: Twinlake, theirs: Twinlake, gate: Gate
) -> None:
    before = theirs.parts()
    password = ours.home / "password"
    password.write_text("first-password\n")
    password.chmod(0o600)
    ours.settings(
        f'[kafka]\nbootstrap_servers = "{theirs.services.bootstrap_servers}"\n'
        f'[registry]\nurl = "{gate.url}"\n'
        f'username = "twin"\npassword_file = "password"\nca_file = "{gate.ca_file}"\n'
        "[limits]\nquery_seconds = 60\n"
    )

    up = ours("up", "--without", "airflow")

    assert up.returncode == 0, up.stderr
    whose = {line.split()[1]: line.split()[2] for line in up.stdout.splitlines() if line.startswith("ok")}
    assert {name: whose[name] for name in ("broker", "registry", "lake", "sql")} == {
        "broker": "external", "registry": "external", "lake": "embedded", "sql": "embedded",
    }  # fmt: skip
    assert ours.parts() == {"supervisor", "lake", "sql", "alarms", "console"} and theirs.parts() == before
    assert ours.services.bootstrap_servers == theirs.services.bootstrap_servers
    assert ours.services.cluster_id == theirs.services.cluster_id

    sent = ours("produce", "orders", "--count", str(RECORDS), "--seed", "7")

    assert sent.returncode == 0, sent.stderr

    def arrived() -> dict[str, Any] | None:
        now = ours.told("status")
        lags = any(one["lag_records"] for one in now["versions"])
        return now if now["topics"][0]["records"] == RECORDS and not lags else None

    status = wait_for("the records", arrived, 300, every_s=1)
    assert status["ready"] and status["supervisor"]
    assert {part["part"]: part["given"] for part in status["parts"]} == {
        "broker": True, "registry": True, "topics": False, "lake": False, "sql": False, "alarms": False,
        "console": False,
    }  # fmt: skip
    counted = ours.told("query", "SELECT count(*) AS n FROM serve.orders")
    assert isinstance(counted, list), counted
    assert counted[0]["n"] > 0.9 * RECORDS
    endless = ours("query", ENDLESS)
    assert endless.returncode != 0 and "longer than 60 s" in endless.stderr
    assert ours.wrong() == []
    assert gate.answers[200] and not gate.answers[401]
    shown = ours("doctor").stdout + ours("doctor", "--json").stdout + ours("status", "--json").stdout
    assert "password_file" in shown and "first-password" not in shown + ours.services_json

    gate.login = ("twin", "second-password")
    denied = ours("produce", "orders", "--count", "1")
    password.write_text("second-password\n")

    assert denied.returncode == 1 and "does not let user 'twin'" in denied.stderr
    assert ours("produce", "orders", "--count", "1").returncode == 0, "a new password needs no restart"
    assert "not ours" in ours("logs", "broker").stderr

    changed = ours("up", "--without", "airflow", TWINLAKE_LIMITS_JDBC_SECONDS="60")
    assert changed.returncode == 2 and "settings have changed" in changed.stderr
    assert ours("down").returncode == 0 and theirs.parts() == before


def test_a_topic_with_the_producers_time_is_refused_until_its_cure_is_done(
    ours: Twinlake, theirs: Twinlake
) -> None:
    remake(theirs, "orders", **{"message.timestamp.type": "CreateTime"})

    (error,) = ours.wrong()
    up = ours("up")

    assert error["what"] == "topic orders has timestamps that producers set (CreateTime)"
    assert "--add-config message.timestamp.type=LogAppendTime" in error["remedy"]
    assert up.returncode == 2 and error["what"] in up.stderr and ours.parts() == set()
    assert not (ours.home / "run").exists(), "nothing was begun"

    configure(theirs, "orders", "message.timestamp.type", "LogAppendTime")
    configure(theirs, "orders", "cleanup.policy", "compact")
    (compacted,) = ours.wrong()
    configure(theirs, "orders", "cleanup.policy", "delete")

    assert compacted["what"] == "topic orders is compacted (compact)"
    assert ours.wrong() == []


def test_a_topic_that_is_not_there_is_told_and_left_to_up(ours: Twinlake, theirs: Twinlake) -> None:
    admin(theirs).delete_topics(["orders"])["orders"].result(20)
    kafka = Kafka(theirs.services.kafka("ingest"))
    wait_for("the topic to be gone", lambda: kafka.topic("orders") is None or None, 20)

    found = {one["checked"]: one for one in ours.told("doctor")["checks"]}

    assert found["topic orders"]["ok"] and "`twinlake up` makes it" in found["topic orders"]["found"]
    assert kafka.topic("orders") is None, "a check makes nothing"
    assert ours("up", "--only", "topics").returncode == 0
    assert kafka.timestamp_type("orders") == "LogAppendTime"


def test_a_rule_of_a_subject_that_lets_breaking_schemas_pass_is_refused(
    ours: Twinlake, theirs: Twinlake
) -> None:
    registry = Registry(theirs.services.registry())
    client = registry._client
    try:
        client.set_compatibility("orders-value", "NONE")
        (error,) = ours.wrong()
        client.set_compatibility("orders-value", "FULL")
        assert ours.wrong() == []
        assert ours("up", "--only", "topics").returncode == 0
        assert registry.rule("orders-value") == "FULL", "a stricter one is left as it is"
    finally:
        client.set_compatibility("orders-value", "BACKWARD")

    assert error["what"] == "subject orders-value has the rule NONE"


def test_a_wrong_address_and_a_registry_that_is_none_are_told_before_anything_starts(
    ours: Twinlake, theirs: Twinlake
) -> None:
    servers = theirs.services.bootstrap_servers
    ours.settings(f'[kafka]\nbootstrap_servers = "127.0.0.1:1"\n[registry]\nurl = "http://{servers}"\n')

    broker, registry = ours.wrong()
    up = ours("up")

    assert broker["what"] == "nobody listens at 127.0.0.1:1" and "bootstrap_servers" in broker["remedy"]
    assert registry["error"] == "UnreachableError" and "[registry]" in registry["remedy"]
    assert up.returncode == 3 and broker["what"] in up.stderr
    assert ours.parts() == set() and not (ours.home / "run").exists()


def test_a_registry_as_a_kafka_is_told(ours: Twinlake, theirs: Twinlake) -> None:
    address = theirs.services.registry_url.split("/")[2]
    ours.settings(f'[kafka]\nbootstrap_servers = "{address}"\n')

    (error,) = ours.wrong()

    assert address in error["what"] and error["remedy"]


def test_a_broker_that_goes_away_is_told_by_status_and_comes_back_by_itself(
    ours: Twinlake, theirs: Twinlake
) -> None:
    environ = {
        "TWINLAKE_KAFKA_BOOTSTRAP_SERVERS": theirs.services.bootstrap_servers,
        "TWINLAKE_REGISTRY_URL": theirs.services.registry_url,
    }  # fmt: skip
    ours.settings("")  # other shells know nothing of the first one's environment
    assert ours("up", "--only", "topics", **environ).returncode == 0
    other = ours("up", "--only", "topics")
    assert other.returncode == 2 and "settings have changed" in other.stderr
    assert theirs("down").returncode == 0
    try:
        away = ours.told("status")
        code = ours("status").returncode
    finally:
        assert theirs("up", "--only", "broker,registry").returncode == 0
    back = ours("status")

    answers = {part["part"]: part["answers"] for part in away["parts"]}
    assert (answers["broker"], answers["registry"], code) == (False, False, 3)
    assert back.returncode == 0, back.stdout
    assert "`twinlake down`, then `twinlake up`" in other.stderr
    assert ours("down").returncode == 0
    assert ours("up", "--only", "topics", TWINLAKE_LIMITS_JDBC_SECONDS="60", **environ).returncode == 0


def test_a_fixed_port_that_somebody_else_holds_keeps_its_part_from_starting(tmp_path: Path) -> None:
    made = Twinlake(tmp_path / "home")
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        made.settings(f"[ports]\nbroker = {stranger.getsockname()[1]}\n")
        away = made("status")

        up = made("up", "--only", "broker")

    assert made("down").returncode == 0 and made.parts() == set()
    assert up.returncode == 3 and "[ports] broker fixes it" in up.stderr
    made.settings(f"[ports]\nbroker = {free_port()}\n")
    again, running = made("up", "--only", "broker"), made("status")
    assert made("down").returncode == 0 and again.returncode == 0, again.stderr
    assert (
        away.returncode == 3 and "Twinlake is not running" in away.stderr and "`twinlake up`" in away.stderr
    )
    assert running.returncode == 0, running.stdout
