"""What is given is asked and not started; what is wrong with it is told with a remedy."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.project import OURS
from tests.registry import FakeRegistry
from twinlake.base.errors import DeniedError, TwinlakeError
from twinlake.base.times import utc_now
from twinlake.config.login import Login
from twinlake.config.settings import Settings
from twinlake.services.addresses import addresses
from twinlake.services.all import all_parts
from twinlake.services.checks import (
    airflow as check_airflow,
)
from twinlake.services.checks import (
    finding,
)
from twinlake.services.checks import (
    kafka as check_kafka,
)
from twinlake.services.checks import (
    registry as check_registry,
)
from twinlake.services.checks.finding import Finding, refuse_clock, tried
from twinlake.services.part import Context
from twinlake.topics.kafka import KafkaTopic
from twinlake.topics.topic import load_topic

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    made = FakeRegistry()
    yield made
    made.close()


class FakeAirflow:
    """Answers by path; `ahead` is how far its clock is."""

    def __init__(self) -> None:
        self.health: Any = {"metadatabase": {"status": "healthy"}, "scheduler": {"status": "healthy"}}
        self.version = "3.3.2"
        self.ahead = timedelta(0)
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = fake.health if self.path.endswith("/health") else {"version": fake.version}
                content = json.dumps(body).encode()
                self.send_response_only(200)
                self.send_header("Date", format_datetime(utc_now() + fake.ahead, usegmt=True))
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def airflow() -> Iterator[FakeAirflow]:
    made = FakeAirflow()
    yield made
    made.close()


def configured(folder: Path, text: str) -> Settings:
    (folder / "twinlake.toml").write_text(text)
    return Settings(home=folder, in_project=OURS)


def wrong(found: Iterator[Finding]) -> list[TwinlakeError]:
    return [one.error for one in found if one.error]


def test_what_is_given_stands_in_the_place_of_what_is_started() -> None:
    parts = all_parts(["broker", "registry", "airflow"])

    names = ["broker", "registry", "topics", "lake", "sql", "airflow", "console", "alarms"]
    assert [part.name for part in parts] == names
    assert [part.name for part in parts if part.given] == ["broker", "registry", "airflow"]
    assert not any(part.command or part.ports for part in parts if part.given)
    assert not any(part.given for part in all_parts())


def test_services_json_says_the_addresses_that_are_used(context: Context) -> None:
    home = context.settings.home
    (home / "password").write_text("hunter2")
    (home / "password").chmod(0o600)
    given = configured(
        home,
        '[kafka]\nbootstrap_servers = "k:9092"\n[airflow]\nurl = "http://a:80"\n[ports]\nsql = 4711\n'
        '[registry]\nurl = "https://r/ccompat"\nusername = "u"\npassword_file = "password"\n'
        "[limits]\nquery_seconds = 7\n",
    )  # fmt: skip

    found = addresses(replace(context, settings=given))

    assert (found.bootstrap_servers, found.registry_url, found.airflow_url) == (
        "k:9092", "https://r/ccompat", "http://a:80",
    )  # fmt: skip
    assert found.given == ["broker", "registry", "airflow"]
    assert (found.airflow_user, found.airflow_password, found.cluster_id) == ("", "", "")
    assert found.registry().basic_auth == ("u", "hunter2")
    assert found.query_seconds == 7.0
    assert not (home / "kafka").exists() and not (home / "airflow").exists()
    assert found.settings == given.values.digest != Settings(home=home / "x").values.digest


def test_a_registry_is_asked_for_the_rule_and_the_schemas_of_every_topic(
    tmp_path: Path, registry: FakeRegistry
) -> None:
    settings = configured(tmp_path, f'[registry]\nurl = "{registry.url}"\n')
    before = list(check_registry.findings(settings, utc_now))
    for schema in load_topic("orders", OURS).schemas:
        registry.register("orders-value", dict(schema.avro))
    registry.compatibility["orders-value"] = "FULL"

    after = list(check_registry.findings(settings, utc_now))

    assert [one.error for one in (*before, *after)] == [None] * len((*before, *after))
    assert before[-1].looked_at == after[-1].looked_at == "subject orders-value"
    assert before[-1].found.startswith("no rule of its own yet, `twinlake up` registers orders.v1.avsc")
    assert after[-1].found == "rule FULL, all schemas"
    assert not [asked for asked in registry.asked if asked.startswith("PUT")], "a check changes nothing"


@pytest.mark.parametrize("rule", ["NONE", "FORWARD"])
def test_a_subject_with_a_rule_that_lets_breaking_schemas_pass_is_refused(
    tmp_path: Path, registry: FakeRegistry, rule: str
) -> None:
    registry.compatibility["orders-value"] = rule
    settings = configured(tmp_path, f'[registry]\nurl = "{registry.url}"\n')

    (error,) = wrong(check_registry.findings(settings, utc_now))

    assert error.what == f"subject orders-value has the rule {rule}"
    assert f"{registry.url}/config/orders-value" in error.remedy and "BACKWARD" in error.remedy


def test_a_registry_whose_schema_ours_cannot_follow_is_refused(
    tmp_path: Path, registry: FakeRegistry
) -> None:
    other = {"type": "record", "name": "R", "fields": [{"name": "event_id", "type": "boolean"}]}
    registry.add("orders-value", 1, other)
    settings = configured(tmp_path, f'[registry]\nurl = "{registry.url}"\n')

    (error,) = wrong(check_registry.findings(settings, utc_now))

    assert "event_id" in error.what and "orders.v1.avsc" in error.what


def test_a_registry_that_is_away_or_does_not_let_us_in_is_asked_nothing_more(
    tmp_path: Path, registry: FakeRegistry
) -> None:
    registry.login = ("twin", "lake")
    text = f'[registry]\nurl = "{registry.url}"\n'
    denied = wrong(check_registry.findings(configured(tmp_path, text), utc_now))
    registry.close()
    away = wrong(check_registry.findings(Settings(home=tmp_path, in_project=OURS), utc_now))

    assert [type(one).__name__ for one in denied + away] == ["DeniedError", "UnreachableError"]
    assert "twinlake.toml" in denied[0].remedy and "twinlake.toml" in away[0].remedy


def test_a_registry_whose_address_lacks_its_path_is_told_so(tmp_path: Path, registry: FakeRegistry) -> None:
    settings = configured(tmp_path, f'[registry]\nurl = "{registry.url}/elsewhere"\n')

    (error,) = wrong(check_registry.findings(settings, utc_now))

    assert "no schema registry" in error.what and "/apis/ccompat/v7" in error.remedy


def test_an_airflow_is_asked_for_its_health_its_version_and_its_time(
    tmp_path: Path, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = configured(tmp_path, f'[airflow]\nurl = "{airflow.url}"\n')

    sound = [one.found for one in check_airflow.findings(settings, utc_now)]
    airflow.version, airflow.ahead = "2.10.1", timedelta(minutes=9)
    old, ahead = wrong(check_airflow.findings(settings, utc_now))
    airflow.health = {"metadatabase": {"status": "healthy"}, "scheduler": {"status": "unhealthy"}}
    (sick,) = wrong(check_airflow.findings(settings, utc_now))
    airflow.health = []
    (foreign,) = wrong(check_airflow.findings(settings, utc_now))
    monkeypatch.setattr(json, "dumps", lambda body: "<html>")
    (page,) = wrong(check_airflow.findings(settings, utc_now))

    assert sound[:2] == ["metadatabase healthy, scheduler healthy", "3.3.2"]
    assert "2.10.1" in old.what and "differ by" in ahead.what
    assert "scheduler: unhealthy" in sick.why and "no Airflow" in foreign.why
    assert page.why.startswith("the answer is not valid JSON")


def test_clocks_that_differ_by_minutes_are_refused() -> None:
    assert refuse_clock("it", NOW + timedelta(seconds=90), lambda: NOW) == "+90 s"
    assert refuse_clock("it", NOW - timedelta(seconds=90), lambda: NOW) == "-90 s"
    assert refuse_clock("it", None, lambda: NOW) == "it does not say its time"
    with pytest.raises(TwinlakeError, match="differ by 180 s") as refused:
        refuse_clock("it", NOW - timedelta(minutes=3), lambda: NOW)
    assert "NTP" in refused.value.remedy


def test_a_kafka_where_nobody_listens_is_told_at_once_with_the_reason_of_each_address(tmp_path: Path) -> None:
    settings = configured(tmp_path, '[kafka]\nbootstrap_servers = "127.0.0.1:1, no-such-host.invalid:9092"\n')

    (error,) = wrong(check_kafka.findings(settings, utc_now))

    assert error.exit_code == 3 and "bootstrap_servers" in error.remedy
    assert "127.0.0.1:1: Connection refused" in error.why and "no-such-host.invalid:9092: " in error.why


def test_a_check_that_cannot_be_made_is_told_beside_the_others() -> None:
    def broken() -> str:
        raise LookupError("no such thing")

    found = tried("service", "a thing", broken)

    assert found.error is not None and "LookupError: no such thing" in found.error.why


def test_the_lake_server_sees_settings_of_the_environment_but_for_passwords(context: Context) -> None:
    told = {
        "TWINLAKE_REGISTRY_URL": "https://registry:8081", "TWINLAKE_REGISTRY_USERNAME": "me",
        "TWINLAKE_REGISTRY_PASSWORD": "hunter2", "TWINLAKE_SPARK_MASTER": "local[3]",
    }  # fmt: skip
    given = replace(context, settings=replace(context.settings, overrides=told))
    (part,) = (part for part in all_parts() if part.name == "lake")
    assert part.command is not None

    environ = part.command(given).environ

    assert environ["TWINLAKE_SPARK_MASTER"] == "local[3]" and "hunter2" not in environ.values()


class OneTopic:
    """A cluster with one topic, as `Kafka` shows it."""

    def __init__(self, servers: str, **said: Any) -> None:
        self.login = Login(bootstrap_servers=servers)
        self.said = {
            "message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete",
            "id": "p0Dn4yPGRZ-Su9Wnh9D5xA", "newest": None,
            "rights": {"READ", "DESCRIBE", "DESCRIBE_CONFIGS"}, **said,
        }  # fmt: skip

    def cluster_id(self) -> str:
        return "this-one"

    def topic(self, name: str) -> KafkaTopic:
        return KafkaTopic(name=name, id=self.said["id"], partitions=(0, 1))

    def setting(self, name: str, key: str) -> str:
        return str(self.said[key])

    def timestamp_type(self, name: str) -> str:
        return str(self.said["message.timestamp.type"])

    def rights(self, name: str) -> set[str]:
        return set(self.said["rights"])

    def newest(self, name: str, partitions: Any) -> int | None:
        found: int | None = self.said["newest"]
        return found


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen()
        yield f"127.0.0.1:{found.getsockname()[1]}"


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, servers: str, remembered: str = "", **said: Any
) -> list[Finding]:
    monkeypatch.setattr(check_kafka, "Kafka", lambda login: OneTopic(servers, **said))
    settings = configured(folder, f'[kafka]\nbootstrap_servers = "{servers}"\n')
    return list(check_kafka.findings(settings, lambda: NOW, remembered))


def test_a_cluster_is_asked_for_its_id_and_each_topic_for_all_that_ingest_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listening: str
) -> None:
    found = asked(tmp_path, monkeypatch, listening, newest=NOW.timestamp() * 1000 - 5)

    assert [one.found for one in found] == [
        "cluster this-one", "2 partitions, LogAppendTime", "ingest has what it needs",
        "no record is from the future",
    ]  # fmt: skip


def test_a_changelogs_user_need_not_see_the_topics_that_ingest_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listening: str
) -> None:
    class OfLocked(OneTopic):
        def rights(self, name: str) -> set[str]:
            if self.login.username == "changelog":
                raise DeniedError(f"user 'changelog' may not describe topic {name!r}")
            return super().rights(name)

    def locked(login: Login) -> OneTopic:
        made = OfLocked(listening)
        made.login = login
        return made

    monkeypatch.setattr(check_kafka, "Kafka", locked)
    (tmp_path / "password").write_text("hunter2")
    (tmp_path / "password").chmod(0o600)
    settings = configured(
        tmp_path,
        f'[kafka]\nbootstrap_servers = "{listening}"\nsecurity = "SASL_SSL"\nusername = "ingest"\n'
        'password_file = "password"\n[kafka.changelog]\nusername = "changelog"\npassword_file = "password"\n',
    )

    found = list(check_kafka.findings(settings, lambda: NOW))

    assert wrong(iter(found)) == []
    assert "ingest has what it needs" in [one.found for one in found]


def test_another_cluster_than_before_is_told_with_what_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listening: str
) -> None:
    first = asked(tmp_path, monkeypatch, listening, remembered="another")[0]

    assert "until now it was another" in first.found and "twinlake topic accept" in first.found


@pytest.mark.parametrize(
    ("said", "what", "remedy"),
    [
        ({"id": "AAAAAAAAAAAAAAAAAAAAAA"}, "topic orders has no id", "upgrade"),
        ({"message.timestamp.type": "CreateTime"}, "timestamps that producers set", "kafka-configs.sh"),
        ({"cleanup.policy": "compact,delete"}, "is compacted", "cleanup.policy=delete"),
        (
            {"rights": {"DESCRIBE"}},
            "(ingest) lacks READ, DESCRIBE_CONFIGS on topic orders",
            "--operation READ",
        ),
        ({"newest": (NOW.timestamp() + 600) * 1000}, "differ by 600 s", "NTP"),
    ],
)
def test_a_topic_that_cannot_be_followed_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listening: str,
    said: dict[str, Any],
    what: str,
    remedy: str,
) -> None:
    (error,) = wrong(iter(asked(tmp_path, monkeypatch, listening, **said)))

    assert what in error.what and remedy in error.remedy


def test_an_answer_that_never_ends_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then ends no client's wait for the next one."""
    monkeypatch.setattr(finding, "LONGEST_S", 0.5)
    ended = threading.Event()

    def drip(server: socket.socket) -> None:
        wire, _ = server.accept()
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not ended.wait(0.05):
            wire.sendall(b" ")
        wire.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, args=(server,), daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        found = tried("airflow", url, lambda: check_airflow.health(url, None))
        ended.set()

    assert found.error and "within 0.5 s" in found.error.why
