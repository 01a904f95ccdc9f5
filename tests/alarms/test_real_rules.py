"""The rules that test_real.py leaves out: each is made to happen, alarms hear of it once and that it is over.

The tests follow each other; the last puts the record of all of them to Prometheus' own tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from tests.alarms.platform import Platform, copy_of_ours, running
from tests.alarms.test_receivers import Hook, listening
from tests.damages import empty
from tests.demo.crash import kill, wait_back
from tests.ingest.stage import frame, order
from tests.invariants_oracle import live_files
from tests.metrics.recording import STEP_S, Fires, any_of, both, check, older, rules_with, still
from tests.metrics.test_alerts import needs_promtool
from twinlake.base.times import format_moment, utc_now
from twinlake.base.waiting import wait_for
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificates
from twinlake.server.client import LakeClient
from twinlake.services.supervise import record
from twinlake.topics.kafka import Kafka
from twinlake.topics.registry import Registry
from twinlake.topics.topic import load_topic

pytestmark = [pytest.mark.faults, pytest.mark.services]
TOPIC, LATEST, SALES, SHARES = "orders", "latest_order", "sales_per_region", "shares"
UNCOUNTABLE = Decimal("77777.77")
"""The amount of which the table of shares cannot be computed."""
SHARE = "CAST(100 / (amount - 77777.77) AS double)"
CORRECTED = "CAST(100 / nullif(amount - 77777.77, 0) AS double)"
TABLE = f'''"""A share of each customer."""

from twinlake import Latest

TABLE = Latest(
    name="{SHARES}",
    inputs=("orders",),
    columns={{"customer": "customer", "share": "{SHARE}", "ordered_at": "ordered_at"}},
    keys=("customer",),
    order=("ordered_at",),
    values=("share", "ordered_at"),
)
'''
AGE_S, NOT_READ_S, MINUTE_S = 93_600, 30, 60
LAG, BATCH = "twinlake_topic_lag_records", "twinlake_topic_batch"
BOUNDS = {
    "expr: twinlake_ready == 0\n        for: 5m": "expr: twinlake_ready == 0\n        for: 1m",
    f"{LAG} > 0 and changes({BATCH}[5m]) == 0\n        for: 5m": (
        f"{LAG} > 0 and changes({BATCH}[{NOT_READ_S}s]) == 0\n        for: {NOT_READ_S}s"
    ),
}
"""Those of which the usual take longer than a test should."""


def is_for_a_minute(alert: str, name: str, wrong: float, **labels: str) -> Fires:
    return Fires(alert=alert, is_true=any_of(name, lambda value: value == wrong, **labels), for_s=MINUTE_S)


OLD = Fires(alert="TwinlakeCertificateOld", is_true=older("twinlake_certificate_timestamp_seconds", AGE_S))
UNEQUAL = Fires(
    alert="TwinlakeUnequal",
    is_true=any_of("twinlake_certificate_verdict", lambda value: value == 1, verdict="differs"),
)
DAMAGED = Fires(alert="TwinlakeDamaged", is_true=any_of("twinlake_damaged_files", lambda files: files > 0))
LASTING = (
    is_for_a_minute("TwinlakeStalled", "twinlake_version_stalled", 1, table=SHARES),
    is_for_a_minute("TwinlakeTopicStopped", "twinlake_topic_error", 1, topic=TOPIC),
    Fires(
        alert="TwinlakeTopicNotRead",
        is_true=both(any_of(LAG, lambda lag: lag > 0), still(BATCH, NOT_READ_S // STEP_S)),
        for_s=NOT_READ_S,
    ),
    is_for_a_minute("TwinlakeServiceDown", "twinlake_service_ready", 0, service="registry"),
    is_for_a_minute("TwinlakeNotReady", "twinlake_ready", 0, instance="sql"),
    is_for_a_minute("TwinlakeReadersBehind", "twinlake_follow_error", 1),
)
TWO_DAYS_S = 172_800
BACKUP_OLD = Fires(alert="TwinlakeBackupOld", is_true=older("twinlake_backup_timestamp_seconds", TWO_DAYS_S))
BACKUP_FAILED = Fires(
    alert="TwinlakeBackupFailed", is_true=any_of("twinlake_backup_failed", lambda failed: failed == 1)
)
FIRE = (OLD, UNEQUAL, BACKUP_OLD, BACKUP_FAILED, DAMAGED, *LASTING)
NEVER = ("TwinlakeDown", "TwinlakeRestarts", "TwinlakeTopicQuiet", "TwinlakeDisk", "TwinlakeQuarantine")
"""Of these the run makes nothing happen."""


class Shop(Platform):
    """What a test may do to the platform of the orders."""

    schema_id = 0

    @property
    def lake(self) -> Path:
        assert isinstance(self.settings.lake, Path)
        return self.settings.lake

    def table(self, name: str) -> Path:
        """Where the rows of its live version are."""
        live = release_log.live(self.lake)
        assert live is not None
        return self.lake / "tables" / name / live.tables[name]

    def send(self, *ids: str, amount: Decimal = Decimal("12.50")) -> None:
        """Valid orders, without the registry, which may be away."""
        topic = load_topic(TOPIC, *self.settings.sources)
        schema = dict(topic.newest.avro)
        if not self.schema_id:
            self.schema_id = max(Registry(self.settings.services().registry()).schemas(f"{TOPIC}-value"))
        producer = Producer({"bootstrap.servers": self.settings.services().kafka("ingest").bootstrap_servers})
        for one in ids:
            made = order(one, customer=one, amount=amount)
            producer.produce(TOPIC, frame(self.schema_id, schema, made), one.encode())
        assert producer.flush(30) == 0

    def has_read(self, records: int) -> bool:
        """Whether the log has so many, and each table all that the log has."""
        told = LakeClient.of(self.settings.services()).status()
        (topic,) = told["topics"]
        return topic["records"] == records and not any(one["lag_records"] for one in told["versions"])

    @contextmanager
    def without_lake_server(self) -> Iterator[None]:
        """Inside it is dead, and nobody starts it."""
        supervisor = record.load(self.folders, "supervisor").identity
        assert supervisor is not None
        with hanging(psutil.Process(supervisor.pid)):
            was = kill(self.settings, "lake")
            yield
        wait_back(self.settings, "lake", was)

    def make_topic_again(self) -> None:
        """Under the same name, so that nobody reads it until somebody accepts it."""
        login = self.settings.services().kafka("ingest")
        kafka, admin = Kafka(login), AdminClient({**login.client()})  # it has to live until it has answered
        (deleted,) = admin.delete_topics([TOPIC], operation_timeout=20).values()
        deleted.result(30)
        self.until("the topic to be gone", lambda: kafka.topic(TOPIC) is None)
        assert kafka.create(TOPIC)


@contextmanager
def moved_away(file: Path) -> Iterator[None]:
    aside = file.with_name(f"{file.name}.aside")
    file.rename(aside)
    try:
        yield
    finally:
        aside.rename(file)


@contextmanager
def torn(file: Path) -> Iterator[None]:
    whole = file.read_bytes()
    empty(file)
    try:
        yield
    finally:
        file.write_bytes(whole)


@contextmanager
def hanging(process: psutil.Process) -> Iterator[None]:
    process.suspend()
    try:
        yield
    finally:
        process.resume()


@contextmanager
def hanging_at_its_start(shop: Shop, service: str) -> Iterator[None]:
    """A service that was killed, and does not get ready."""
    dead = kill(shop.settings, service)

    def started() -> psutil.Process | None:
        now = record.load(shop.folders, service).identity
        return psutil.Process(now.pid) if now and now.pid != dead else None

    process = wait_for(f"{service} to start", started, 60, every_s=0.05, unready=(psutil.NoSuchProcess,))
    with hanging(process):
        yield
    wait_back(shop.settings, service, dead)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Hook]:
    yield from listening()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, receiver: Hook) -> Iterator[Shop]:
    """With one more table, of which not every order can be counted."""
    project = copy_of_ours(tmp_path_factory.mktemp("of_rules") / "project")
    (project / "jobs" / "tables" / f"{SHARES}.py").write_text(TABLE)
    settings = f'[alarms]\nwebhook_url = "{receiver.url}"\n[limits]\nstart_seconds = 400\n'
    settings += f'[backup]\nfolder = "{tmp_path_factory.mktemp("backups")}"\n'
    with running(Shop(tmp_path_factory.mktemp("rules"), project, receiver), settings) as made:
        yield made


def test_an_old_certificate_is_one_and_the_next_one_finds_what_somebody_has_changed(shop: Shop) -> None:
    shop.send(*(f"a{number}" for number in range(50)))
    shop.until("all to be read", lambda: shop.has_read(50))
    shop("verify", LATEST)
    rows = shop.table(LATEST)
    with shop.without_lake_server():
        kept = Certificates(shop.settings.lake)
        newest = kept.newest(LATEST, rows.name)
        assert newest is not None and newest.equal
        kept.add(replace(newest, id="old", created_at=format_moment(utc_now() - timedelta(days=2))))
        DeltaTable(str(rows)).update(updates={"amount": "amount + 1"}, predicate="customer = 'a7'")
    old = shop.until_heard("raised", "certificate")
    shop.recorded("an old certificate", OLD)
    found = shop.run("verify", LATEST)
    unequal = shop.until_heard("raised", "unequal")
    shop.recorded("a difference", UNEQUAL)
    shop("rebuild", LATEST, "--repair", "--reason", "a test")
    shop("verify", LATEST)
    for kind in ("certificate", "unequal"):
        shop.until_heard("over", kind)

    assert old["title"] == LATEST and f"twinlake verify {LATEST}" in old["remedy"]
    assert found.returncode != 0 and unequal["title"] == f"{LATEST} {rows.name}"


def test_a_backup_that_is_old_and_one_that_fails_is_one_until_the_next_is_whole(shop: Shop) -> None:
    place = shop.settings.values.backup.place
    assert isinstance(place, Path)
    client = LakeClient.of(shop.settings.services())
    shop("backup")
    (made,) = (place / "backups").glob("*.json")
    long_ago = utc_now() - timedelta(days=3)
    aged = json.loads(made.read_text()) | {"id": f"{long_ago:%Y%m%dT%H%M%SZ}"}
    aged["made_at"] = format_moment(long_ago)
    made.with_name(f"{aged['id']}.json").write_text(json.dumps(aged))
    made.unlink()
    old = shop.until_heard("raised", "backup")
    shop.recorded("an old backup", BACKUP_OLD)
    shop("backup")
    shop.until_heard("over", "backup")

    shop.receiver.sent.clear()
    about = place / "archive.json"
    with moved_away(about):
        about.write_text(json.dumps({"format": 1, "lake_id": "another"}))
        ended = client.follow(client.submit("backup", {}).id)
        failed = shop.until_heard("raised", "backup")
        shop.recorded("a backup that failed", BACKUP_FAILED)
    assert client.follow(client.submit("backup", {}).id).state == "succeeded"
    shop.until_heard("over", "backup")

    assert old["what"] == "none has been taken lately" and aged["made_at"] in old["why"]
    assert ended.state == "failed" and failed["what"] == "the last one failed"
    assert "has the backups of another lake" in failed["why"]


def test_a_file_that_is_gone_or_torn_is_one_until_it_is_whole(shop: Shop) -> None:
    """Of a table it is its version's; of releases it is the lake's; without addresses nothing is known."""
    version = f"{SALES} {shop.table(SALES).name}"
    file = max(map(Path, live_files(shop.table(SALES))), key=lambda one: one.stat().st_size)
    release = max((shop.lake / "releases" / "_delta_log").glob("*.json"))
    with moved_away(file):
        found = shop.run("verify", SALES)
        gone = shop.until_heard("raised", "damaged", version)
        shop.recorded("the damage", DAMAGED)
    with torn(release):
        of_the_lake = shop.until_heard("raised", "damaged", "lake")
    with torn(shop.settings.services_file):
        unknown = shop.until_heard("raised", "unknown", "services")
    for kind, title in (("damaged", version), ("damaged", "lake"), ("unknown", "services")):
        shop.until_heard("over", kind, title)

    assert found.returncode != 0 and file.name in gone["what"]
    assert release.name in of_the_lake["what"]
    assert unknown["what"] == "they could not be asked" and "services.json cannot be read" in unknown["why"]


def test_what_must_last_a_minute_is_one_and_is_over_again(shop: Shop) -> None:
    """Faults beside each other: of a record, a topic, a service, and of what says the format of the lake."""
    shop.receiver.sent.clear()
    shop.send("uncountable", amount=UNCOUNTABLE)
    stalled = shop.until_heard("raised", "stalled")
    with ExitStack() as faults:
        faults.enter_context(hanging_at_its_start(shop, "registry"))
        faults.enter_context(moved_away(shop.lake / "lake.json"))
        shop.make_topic_again()
        shop.send(*(f"b{number}" for number in range(200)))
        stopped = shop.until_heard("raised", "stopped")
        for title in ("registry", "sql"):
            shop.until_heard("raised", "service", title)
        shop.recorded("a minute of each", *LASTING)
    shop("topic", "accept", TOPIC)
    written = shop.project / "jobs" / "tables" / f"{SHARES}.py"
    written.write_text(TABLE.replace(SHARE, CORRECTED))
    for act in ("plan", "build", "gate", "promote"):
        shop(act)
    for kind, title in (("service", "registry"), ("service", "sql"), ("stopped", ""), ("stalled", "")):
        shop.until_heard("over", kind, title)

    assert SHARES in stalled["title"] and "raises for orders" in stalled["what"]
    assert f"twinlake topic accept {TOPIC}" in stopped["remedy"]
    ids = [body["id"] for _, body in shop.receiver.sent]
    assert len(ids) == len(set(ids))


@needs_promtool
def test_prometheus_would_have_fired_each_alert_of_this_run_at_its_time(shop: Shop, tmp_path: Path) -> None:
    """Of what was scraped while the tests above made it happen, and ended it."""
    moments = [*shop.recorder.moments]
    rules = rules_with(tmp_path / "rules.yml", BOUNDS)
    print(f"{len(moments)} scrapes; {[(one.alert, one.at(moments)) for one in FIRE]}")

    assert check(moments, rules, FIRE, NEVER, tmp_path, over=[one.alert for one in FIRE]) == ""
