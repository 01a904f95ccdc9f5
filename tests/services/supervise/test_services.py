"""The broker and the registry, really started, through the command line."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.processes import of_home
from tests.project import OURS
from twinlake.base.errors import DifferenceError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services, Settings
from twinlake.topics.contract import Contract
from twinlake.topics.kafka import Kafka
from twinlake.topics.registering import register
from twinlake.topics.registry import Registry
from twinlake.topics.schema import Schema
from twinlake.topics.topic import Topic, load_topic

pytestmark = pytest.mark.services
SECRET = "CLOUD_ACCESS_TOKEN"


@dataclass(frozen=True, kw_only=True)
class Twinlake:
    settings: Settings

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "twinlake", *arguments], capture_output=True, text=True, timeout=240,
            env={**os.environ, "TWINLAKE_HOME": str(self.settings.home), SECRET: "of the shell"},
        )  # fmt: skip

    @property
    def services(self) -> Services:
        return self.settings.services()

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("status", "--json").stdout)
        return found

    def processes(self) -> list[psutil.Process]:
        return of_home(self.settings.home)


@pytest.fixture(scope="module")
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    command = Twinlake(settings=Settings(home=tmp_path_factory.mktemp("services"), in_project=OURS))
    started = command("up", "--only", "broker,registry")
    try:
        assert started.returncode == 0, started.stderr
        yield command
    finally:
        ended = command("down")
    assert ended.returncode == 0, ended.stderr
    assert command.processes() == []


def test_up_prints_one_line_for_each_service_that_answers(twinlake: Twinlake) -> None:
    again = twinlake("up", "--only", "broker,registry")

    assert again.returncode == 0
    assert sorted(line.split()[1] for line in again.stdout.splitlines()) == ["broker", "registry", "topics"]
    assert again.stderr.splitlines()[-1] == "next: twinlake status"  # no console was started


def test_a_second_up_is_quick_and_starts_nothing_anew(twinlake: Twinlake) -> None:
    before = sorted(process.pid for process in twinlake.processes())
    began = time.monotonic()

    twinlake("up", "--only", "broker,registry")

    assert time.monotonic() - began < 10
    assert sorted(process.pid for process in twinlake.processes()) == before


def test_the_topic_has_four_partitions_and_the_broker_sets_its_timestamps(twinlake: Twinlake) -> None:
    kafka = Kafka(twinlake.services.kafka("ingest"))
    topic = kafka.topic("orders")

    assert topic is not None
    assert topic.partitions == (0, 1, 2, 3)
    assert kafka.timestamp_type("orders") == "LogAppendTime"


def test_everything_listens_on_loopback_only(twinlake: Twinlake) -> None:
    listening = [
        connection.laddr.ip
        for process in twinlake.processes()
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]

    assert len(listening) >= 4
    assert {address.removeprefix("::ffff:") for address in listening} <= {"127.0.0.1", "::1"}


def test_no_part_sees_the_environment_of_the_shell_that_started_it(twinlake: Twinlake) -> None:
    seen = [process.environ() for process in twinlake.processes()]

    assert len(seen) >= 2
    assert not [environ for environ in seen if SECRET in environ]


def test_services_json_is_for_its_owner_only(twinlake: Twinlake) -> None:
    assert stat.S_IMODE(twinlake.settings.services_file.stat().st_mode) == 0o600


def test_an_incompatible_schema_is_refused_with_the_reason(twinlake: Twinlake) -> None:
    orders = load_topic("orders", OURS)
    fields = [*orders.newest.avro["fields"], {"name": "channel", "type": "string"}]  # without a default
    worse = Schema(
        topic="orders",
        number=2,
        file="orders.v2.avsc",
        fields=(),
        avro={**orders.newest.avro, "fields": fields},
    )
    contract: Contract = orders.contract
    topic = Topic(name="orders", contract=contract, schemas=(*orders.schemas, worse))

    with pytest.raises(DifferenceError) as caught:
        register(Registry(twinlake.services.registry_url), topic)

    assert "channel" in caught.value.why
    assert len(Registry(twinlake.services.registry_url).schemas("orders-value")) == 1


@pytest.mark.faults
def test_a_killed_broker_comes_back_with_its_topics_and_a_killed_registry_with_its_schemas(
    twinlake: Twinlake,
) -> None:
    before = Kafka(twinlake.services.kafka("ingest")).topic("orders")
    schemas = Registry(twinlake.services.registry_url).schemas("orders-value")
    killed = _pids(twinlake.status())
    for pid in killed:
        os.kill(pid, signal.SIGKILL)

    def back() -> bool | None:
        status = twinlake.status()
        return True if status["ready"] and not _pids(status) & killed else None

    wait_for("new processes of all parts", back, 90)

    assert Kafka(twinlake.services.kafka("ingest")).topic("orders") == before
    assert Kafka(twinlake.services.kafka("ingest")).cluster_id() == twinlake.services.cluster_id
    assert Registry(twinlake.services.registry_url).schemas("orders-value") == schemas


def _pids(status: dict[str, Any]) -> set[int]:
    return {part["pid"] for part in status["parts"] if part["pid"]}


def test_a_home_where_nothing_runs_is_not_reachable(tmp_path: Path) -> None:
    asked = Twinlake(settings=Settings(home=tmp_path / "none", in_project=OURS))("status", "--json")

    assert asked.returncode == 3
    assert json.loads(asked.stdout)["remedy"] == "run `twinlake up`"


def test_an_unknown_service_is_wrong_use(tmp_path: Path) -> None:
    asked = Twinlake(settings=Settings(home=tmp_path / "none", in_project=OURS))("up", "--only", "brokr")

    assert asked.returncode == 2
    assert "brokr" in asked.stderr
