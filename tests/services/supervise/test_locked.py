"""The embedded broker with a lock, really started: who gets in, what each may do, how it is locked."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException

from records import Sample
from tests.faults.twinlake import files_of
from tests.oracle.topic import TopicError, client_of, end_offsets, read
from tests.processes import of_home
from tests.project import OURS
from twinlake.base.errors import DeniedError
from twinlake.config.login import ROLES, Login, Role
from twinlake.config.settings import Services, Settings
from twinlake.services.broker_security import certificates, supervisor_access
from twinlake.services.certificates import SUPERVISOR, Certificates
from twinlake.services.supervise.control import context_of
from twinlake.topics.kafka import Kafka
from twinlake.topics.produce import produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.services, pytest.mark.faults]
LOCKED = '[kafka]\nsecurity = "SASL_SSL"\n'
SENT = 500
SOON_S = 15.0


class Home:
    """One installation."""

    def __init__(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        self.home = home

    @property
    def settings(self) -> Settings:
        return Settings(home=self.home, in_project=OURS)  # a new one reads twinlake.toml again

    @property
    def services(self) -> Services:
        return self.settings.services()

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "twinlake", *arguments], capture_output=True, text=True, timeout=240,
            env={**os.environ, "TWINLAKE_HOME": str(self.home)},
        )  # fmt: skip

    def do(self, *arguments: str) -> str:
        done = self(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("locked") / "home")
    made.settings.file.write_text(LOCKED)
    try:
        made.do("up", "--only", "broker,registry")
        made.do("produce", "--count", str(SENT))
        yield made
    finally:
        made("down")


def _sending(login: Login, topic: str = "orders") -> None:
    source = Sample(seed=1, run="r", schema_id=1, span_ms=0, faults=None)
    produce(source, login=login, topic=topic, count=10, rate=None, stop=Event(), report=lambda sent: None)


def test_what_the_producer_sends_ingest_and_the_oracle_read(home: Home) -> None:
    services = home.services
    found, ends = read(services.kafka("ingest").client(), "orders")

    assert len(found) == SENT == sum(ends.values())
    assert client_of({**vars(services)}) == services.kafka("ingest").client()


@pytest.mark.parametrize(
    ("role", "doing", "what"),
    [
        ("ingest", _sending, "user 'ingest' may not write topic 'orders'"),
        ("changelog", _sending, "user 'changelog' may not write topic 'orders'"),
        ("changelog", lambda login: Kafka(login).topic("orders"), "may not describe topic 'orders'"),
        (
            "producer",
            lambda login: Kafka(login).create("more"),
            "user 'producer' may not make topic",
        ),
        ("ingest", lambda login: Kafka(login).create("more"), "user 'ingest' may not make topic 'more'"),
        ("changelog", lambda login: Kafka(login).create("more"), "user 'changelog' may not make topic"),
        ("producer", lambda login: Kafka(login).timestamp_type("orders"), "may not read the settings"),
        ("producer", lambda login: _sending(login, "changelog.x"), "may not write topic 'changelog.x'"),
    ],
)
def test_a_role_is_refused_what_is_not_its_own(
    home: Home, role: Role, doing: Callable[[Login], object], what: str
) -> None:
    began = time.monotonic()
    with pytest.raises(DeniedError) as raised:
        doing(home.services.kafka(role))

    assert time.monotonic() - began < SOON_S
    assert what in raised.value.what
    assert "uthorization failed" in raised.value.why or "not authorized" in raised.value.why.lower()
    assert "docs/security.md" in raised.value.remedy


@pytest.mark.parametrize("role", ["producer", "changelog"])
def test_only_ingest_reads_the_records_of_producers(home: Home, role: Role) -> None:
    with pytest.raises((TopicError, KafkaException), match="authorization failed"):
        read(home.services.kafka(role).client(), "orders")


def test_status_says_that_the_broker_is_locked(home: Home) -> None:
    assert "locked: TLS, users with passwords" in home.do("status")


def test_changelogs_make_their_own_topics_and_no_others(home: Home) -> None:
    kafka = Kafka(home.services.kafka("changelog"))

    assert kafka.create("changelog.of_the_test", partitions=1)
    assert kafka.topic("changelog.of_the_test") is not None


def _wrong_password(login: Login, folder: Path) -> Login:
    return replace(login, password="wrong-and-secret")


def _unknown_user(login: Login, folder: Path) -> Login:
    return replace(login, username="mallory")


def _without_tls(login: Login, folder: Path) -> Login:
    return Login(bootstrap_servers=login.bootstrap_servers)


def _without_password(login: Login, folder: Path) -> Login:
    return replace(login, security="SSL")


def _other_authority(login: Login, folder: Path) -> Login:
    other = Certificates(folder / "tls")
    other.make()
    return replace(login, ca_file=other.authority)


REFUSED = [
    (_wrong_password, "does not let user 'producer' in", "invalid credentials"),
    (_unknown_user, "does not let user 'mallory' in", "invalid credentials"),
    (_without_tls, "does not speak PLAINTEXT", "speaks TLS"),
    (_other_authority, "no trusted connection", "certificate verify failed"),
]


@pytest.mark.parametrize(("change", "what", "why"), REFUSED)
def test_twinlake_produce_is_refused_with_the_brokers_reason_and_ours(
    home: Home, tmp_path: Path, change: Callable[[Login, Path], Login], what: str, why: str
) -> None:
    """The command itself, by a services.json that says something else."""
    changed = change(home.services.kafka("producer"), tmp_path)
    other = Home(tmp_path / "other")
    replace(home.services, kafka_access={"producer": changed.shown()}).save(other.settings.services_file)

    began = time.monotonic()
    done = other("produce", "--count", "10")

    assert done.returncode == 1 and time.monotonic() - began < 2 * SOON_S
    assert what in done.stderr and why in done.stderr and "twinlake.toml" in done.stderr
    assert "wrong-and-secret" not in done.stdout + done.stderr
    assert home.services.kafka("producer").password not in done.stdout + done.stderr


def test_who_shows_no_password_gets_no_answer(home: Home, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"did not answer|does not let"):
        Kafka(_without_password(home.services.kafka("ingest"), tmp_path)).cluster_id()


@pytest.mark.parametrize("door", ["broker_admin", "controller"])
def test_the_doors_of_brokers_are_shut_to_who_has_no_certificate(home: Home, door: str) -> None:
    address = f"127.0.0.1:{context_of(home.settings).ports[door]}"
    ingest = home.services.kafka("ingest")

    for login in (
        Login(bootstrap_servers=address),
        Login(bootstrap_servers=address, security="SSL", ca_file=ingest.ca_file),
        replace(ingest, bootstrap_servers=address),
    ):
        with pytest.raises(DeniedError):
            Kafka(login).cluster_id()


def test_the_supervisor_gets_in_by_its_certificate(home: Home) -> None:
    kafka = Kafka(supervisor_access(context_of(home.settings)))

    assert kafka.cluster_id() == home.services.cluster_id
    assert kafka.timestamp_type("orders") == "LogAppendTime"


@pytest.mark.parametrize("way", ["password", "certificate"])
def test_spark_gets_in_by_either(home: Home, spark: SparkSession, way: str) -> None:
    login = home.services.kafka("ingest")
    if way == "certificate":
        login = supervisor_access(context_of(home.settings))

    found = spark.read.format("kafka").options(**login.spark()).option("subscribe", "orders")
    found = found.option("groupIdPrefix", "twinlake-ingest")

    assert found.load().count() == SENT


def test_spark_is_refused_in_the_same_words(home: Home, spark: SparkSession) -> None:
    from twinlake.ingest.source import refusal

    login = replace(home.services.kafka("ingest"), password="wrong-and-secret")
    found = spark.read.format("kafka").options(**login.spark()).option("subscribe", "orders")

    with pytest.raises(Exception, match="SaslAuthentication") as raised:
        found.load().count()
    told = refusal(raised.value, login, "orders")
    assert told is not None and "does not let user 'ingest' in" in told.what
    assert "wrong-and-secret" not in str(raised.value) + str(told)


def test_secrets_are_in_the_files_that_hold_them_and_nowhere_else(home: Home) -> None:
    passwords = [home.services.kafka(role).password.encode() for role in ROLES]
    holders = {
        file.relative_to(home.home)
        for file in files_of(home.home)
        if any(password in file.read_bytes() for password in passwords)
    }
    keys = certificates(context_of(home.settings)).key(SUPERVISOR).read_text().splitlines()[1]

    assert holders == {Path("services.json")}
    assert stat.S_IMODE(home.settings.services_file.stat().st_mode) == 0o600
    running = of_home(home.home)
    assert len(running) >= 3
    for process in running:
        seen = " ".join(process.cmdline()) + str(process.environ())
        assert not any(password.decode() in seen for password in passwords)
        assert keys not in seen


def test_a_lake_is_locked_and_opened_again_with_its_records(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    file = home.settings.file
    seen: list[tuple[str, int, str]] = []

    def note() -> None:
        login = home.services.kafka("ingest")
        topic = Kafka(login).topic("orders")
        ends: dict[int, int] = end_offsets(login.client(), "orders")
        assert topic is not None
        seen.append((login.security, sum(ends.values()), topic.id))

    try:
        for text in ("", LOCKED, ""):
            file.write_text(text)
            home.do("up", "--only", "broker,registry")
            home.do("produce", "--count", "100")
            note()
            home.do("down")
    finally:
        home("down")

    assert [one[:2] for one in seen] == [("PLAINTEXT", 100), ("SASL_SSL", 200), ("PLAINTEXT", 300)]
    assert len({one[2] for one in seen}) == 1


def test_a_renewed_authority_is_taken_by_everybody(tmp_path: Path) -> None:
    """As it happens when certificates end: all of them are made anew at the start."""
    home = Home(tmp_path / "home")
    home.settings.file.write_text(LOCKED)
    try:
        home.do("up", "--only", "broker,registry")
        home.do("down")
        before = certificates(context_of(home.settings)).authority.read_bytes()
        certificates(context_of(home.settings)).authority.unlink()
        home.do("up", "--only", "broker,registry")
        told: Any = home.do("produce", "--count", "100")
        after = certificates(context_of(home.settings)).authority.read_bytes()
    finally:
        home("down")

    assert "100 records acknowledged" in told
    assert before != after
