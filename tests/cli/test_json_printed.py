"""What commands put together by hand has the keys and types that docs/json.md says, nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.answers import Answers
from tests.cli.json_shapes import filled, wrong
from tests.console import table_answers
from tests.console.conftest import CERTIFICATE, RELEASE, STATUS, VERSION
from tests.ingest.test_log_end import END
from tests.project import OURS
from tests.unopened import certificate, make_live, unopened
from twinlake.alarms import silences
from twinlake.alarms.alarm import Alarm
from twinlake.alarms.book import Book, Silence
from twinlake.alarms.watch import book_file
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.times import format_moment, utc_now
from twinlake.changelog.sender import Sender
from twinlake.changelog.target import changes_to
from twinlake.cli import doctor, produce
from twinlake.cli.app import build_app
from twinlake.cli.check import without_spark
from twinlake.cli.shapes.shared import SHARED
from twinlake.cli.shapes.value import Value
from twinlake.cli.status import as_told
from twinlake.cli.upgrade import _show
from twinlake.config.settings import Services, Settings
from twinlake.config.users import User, ensure
from twinlake.ingest.unreadable import Unreadable, waiting
from twinlake.lake.catalog.paused import Paused
from twinlake.lake.catalog.topic_certificates import TopicCertificate
from twinlake.lake.catalog.version import Health
from twinlake.lake.log.log_start import LogStart
from twinlake.published.publisher import Publisher
from twinlake.reading.running import RunningStatements
from twinlake.reference.json_output import COMMANDS
from twinlake.server import status
from twinlake.server.backups import BackupState
from twinlake.server.executors import Executors
from twinlake.services.all import all_parts
from twinlake.services.lake_status import NOTHING
from twinlake.services.own_files import OwnFile
from twinlake.services.rotation import Rotated
from twinlake.services.supervise import control
from twinlake.services.upgrade.kept import Lakes
from twinlake.services.upgrade.state import State, Step
from twinlake.topics.produce import Sent
from twinlake.topics.topic import load_topic
from twinlake.webhooks.deliverer import Deliverer
from twinlake.webhooks.posted import Place, Posted

Twinlake = Callable[..., Result]
ERROR = TwinlakeError("it fails", "a cause", "look")


def differs(command: str, found: Any) -> list[str]:
    return wrong(COMMANDS[command], json.loads(json.dumps(found)))


def key_of(command: str, name: str) -> Value:
    """The shape of one key, for what is made apart from the rest."""
    return next(one for one in COMMANDS[command].keys if one.name == name)


def test_status_has_the_documented_keys_before_and_after_the_lake_server_answers(tmp_path: Path) -> None:
    settings, server = Settings(home=tmp_path, in_project=OURS), unopened(tmp_path)
    make_live(server.settings.lake, {"sales": "a-1"})
    server._certificates.add(certificate("sales", "a-1", equal=False))
    lake = server.status()
    assert lake["release"] and lake["certificates"] and lake["tables"]

    assert differs("status", as_told(settings, [], {**NOTHING, "error": ERROR.to_json()})) == []
    assert differs("status", as_told(settings, [], {**NOTHING, **lake})) == []


def test_ready_is_of_every_service(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    parts = [{"answers": True}, {"answers": False}]

    assert as_told(settings, parts, {**NOTHING, "ready": True})["ready"] is False


def test_so_has_each_service_in_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, in_project=OURS)
    Services().save(settings.services_file)
    context = control.context_of(settings)

    assert differs_in("parts", [control._describe(context, part) for part in all_parts()]) == []


def test_so_has_each_topic_in_it() -> None:
    end = replace(END, gaps={0: {1: [(3, 5)]}}, watermark=1_700_000_000_000_000, seen={0: 7})
    unread = Unreadable(id=3, avro={}, field="amount", why="it is a text", steps=None)
    ingest: Any = SimpleNamespace(
        log_end=end, state="running", error=ERROR,
        unreadable=lambda: waiting(load_topic("orders", OURS), {3: 7, 4: 1}, [unread]),
    )  # fmt: skip
    start = LogStart(number=1, batch=2, until=1_700_000_000_000_000, rows=9, made_at="", clock=None)  # type: ignore[arg-type]
    watch: Any = SimpleNamespace(lag_s=0.5, warnings=(ERROR,))
    paused = Paused(kind="topic", name="orders", since="2026-01-31T12:00:00Z", by="anna")

    full = status.topic_status("orders", ingest, None, watch, 3, None, start)
    assert full["lost"] and full["unreadable"] and full["deleted"]
    found = [full, status.topic_status("orders", ingest, ERROR, None, None, paused, None)]
    found.append(status.broken_status("orders", ERROR, paused))
    assert differs_in("topics", found) == []


def test_so_has_each_version_in_it() -> None:
    paused = Paused(kind="table", name="sales", since="2026-01-31T12:00:00Z", by="anna").to_json()
    health = [
        Health(table="sales", version="v-1", position={"orders": 7}, lag_records=0, lag_seconds=0.04, step=1,
               segment=3, watermark=7, error=ERROR.to_json(), paused=paused, stalled=True),
        Health(table="sales", version="v-2", position={}),
    ]  # fmt: skip

    found = [{**asdict(one), "watermark": status.moment(one.watermark)} for one in health]  # as `status` does

    assert differs_in("versions", found) == []


def test_so_have_certificates_of_topics_spark_and_backups_in_it() -> None:
    executors: Any = SimpleNamespace(
        _given=SimpleNamespace(master="spark://m"), _count=1, _cores=2, _missed_since=None, _refusal=ERROR,
    )  # fmt: skip
    refused = {**Executors.status(executors)}
    executors._refusal = None

    assert differs_in("topic_certificates", [filled(TopicCertificate).summary()]) == []
    assert differs_in("spark", Executors.status(executors)) == []
    assert refused["error"] and differs_in("spark", refused) == []
    for error in (None, {"what": "it is late", "why": "", "remedy": ""}):
        backup = BackupState(newest="2026-01-31T12:00:00Z", since=None, failed=None).to_json()
        assert differs_in("backup", {**backup, "error": error}) == []


@pytest.mark.parametrize("sent", [None, SimpleNamespace(release=3, version="v-1", batches={"orders": 7})])
def test_so_has_a_changelog(sent: Any) -> None:
    sender: Any = SimpleNamespace(
        sent=sent, _paused=lambda: None, error=ERROR, table="sales", _records=3, _way="windows", _sent_at="",
        source=SimpleNamespace(sends="changes", target=changes_to("sales_changes")),
    )  # fmt: skip

    assert wrong(SHARED["changelog"], Sender.status(sender)) == []


@pytest.mark.parametrize(
    "sent", [None, Place(release=3, pin={"version": "v-1", "position": {"orders": 7}})]
)
def test_so_has_a_webhook(sent: Any) -> None:
    one: Any = SimpleNamespace(
        table="sales", _host="example.com", _posted=Posted(url="https://example.com", sent=sent), error=ERROR,
        _rows=3, _way="touched keys", _sent_at="", _tries=1,
    )  # fmt: skip

    assert wrong(SHARED["webhook"], Deliverer.status(one)) == []


@pytest.mark.parametrize("at", [None, SimpleNamespace(
    release=3, version="v-1", position={"orders": 7}, changed=2, way="all",
    published_at="2026-01-31T12:00:00Z",
)])  # fmt: skip
def test_so_has_a_published_table(at: Any) -> None:
    publisher: Any = SimpleNamespace(
        _at=at, _health=lambda: None, error=ERROR, table="sales", folder=SimpleNamespace(path=Path("/lake")),
        _newest={"orders": 9}, _files=1, _bytes=2,
    )  # fmt: skip

    assert wrong(SHARED["published table"], Publisher.status(publisher)) == []


def test_tables_have_the_documented_keys(twinlake: Twinlake) -> None:
    answers = Answers()
    new = {**VERSION, "table": "by_day", "lag_seconds": None}
    answers.status = {**STATUS, "versions": [VERSION, new], "release": RELEASE, "certificates": [CERTIFICATE]}

    assert differs("tables", json.loads(twinlake(answers, "tables", "--json").stdout)) == []


def test_so_has_doctor_of_right_and_of_wrong_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_prerequisites", lambda settings: "are here")
    settings = Settings(home=tmp_path, in_project=OURS)
    right = doctor.as_told(settings, *doctor.examined(settings))
    (tmp_path / "twinlake.toml").write_text("[limits]\nnothing = 1\n")
    wrongly = doctor.as_told(settings, *doctor.examined(Settings(home=tmp_path, in_project=OURS)))

    assert differs("doctor", right) == [] and right["settings"] and right["checks"]
    assert differs("doctor", wrongly) == [] and wrongly["checks"][0]["error"]


def test_so_has_check_of_a_sound_project_and_of_a_broken_one(tmp_path: Path) -> None:
    (tmp_path / "twinlake.toml").write_text("")
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "orders.yaml").write_text("nothing: here\n")
    from twinlake.config.project import Project

    sound = without_spark(Settings(home=tmp_path / "home", in_project=OURS))
    broken = without_spark(Settings(home=tmp_path / "home", in_project=Project(root=tmp_path)))

    assert sound["tables"] and sound["topics"] and broken["problems"]
    assert differs("check", sound) == [] == differs("check", broken)


def test_so_has_what_produce_sent(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(sent=10, acknowledged=9, seconds=0.5, faults={"late": 1})
    monkeypatch.setattr(produce, "send", lambda *given: sent)

    done = run("produce", "orders", "--count", "10", "--json")

    assert differs("produce", json.loads(done.stdout)) == []


def test_so_has_each_running_query() -> None:
    statements = RunningStatements()
    with statements.one("ben", "SELECT 1"):
        found = statements.listed(User(name="ben", role="operator", line=""))

    assert differs("queries", found) == [] == differs("queries cancel", found[0])


def test_so_have_alarms_and_what_is_silenced(home: Path) -> None:
    settings, now = Settings(home=home), utc_now()
    at = format_moment(now)
    settings.run_dir.mkdir(parents=True, exist_ok=True)
    alarm = Alarm(kind="freshness", title="sales", what="it is late", since=at, owners=("anna@example.com",))
    Book(looked_at=at, alarms={"a": alarm}, lost={"mail": 3}).save(book_file(settings))
    until = format_moment(now + timedelta(hours=1))
    silences.add(settings, Silence(what="sales", until=until, by="anna"), now)

    found = json.loads(run("alarm", "list", "--json").stdout)

    assert found["alarms"] and found["silenced"] and differs("alarm list", found) == []


def test_so_have_alarms_before_anybody_has_looked(home: Path) -> None:
    assert differs("alarm list", json.loads(run("alarm", "list", "--json").stdout)) == []


def test_so_have_users_with_and_without_rights(home: Path) -> None:
    ensure(home / "access" / "users", {"analyst": "a", "admin": "b"}, "analyst")
    run("users", "add", "ben")
    run("users", "rights", "ben", "--tables", "orders", "--hide", "orders.customer", "--mask", "*=hash",
        "--rows", "orders: amount > 1")  # fmt: skip

    found = json.loads(run("users", "list", "--json").stdout)

    assert {len(one["rights"]) for one in found} == {0, 4} and differs("users list", found) == []


def test_so_has_the_gallery(home: Path) -> None:
    found = json.loads(run("gallery", "list", "--json").stdout)

    assert found and differs("gallery list", found) == []


def test_so_has_a_rotation() -> None:
    rotated, own = asdict(filled(Rotated)), asdict(filled(OwnFile))

    assert differs("rotate", {"rotated": [rotated], "own_files": [own]}) == []


@pytest.mark.parametrize("standing", [{}, {"release": {"number": 4, "tables": {}}}])
def test_so_has_the_end_of_an_upgrade(
    tmp_path: Path, standing: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    work: Any = SimpleNamespace(lakes=Lakes.of(tmp_path / "lake"))
    _show(work, State(step=Step.UPGRADED, standing=standing, services=["lake"]), True)

    assert differs("upgrade", json.loads(capsys.readouterr().out)) == []


def test_an_answer_about_a_row_and_a_described_table_have_them_as_the_console_is_given_them() -> None:
    decided = {**table_answers.WHY, "decided": table_answers.RECORD}

    assert differs("explain", table_answers.WHY) == [] == differs("explain", decided)
    assert differs("describe", table_answers.table()) == []


def test_an_error_has_what_why_and_remedy_and_facts() -> None:
    error = UsageError("it is wrong", "a cause", "correct it", {"file": "x.py", "line": "3"})

    assert wrong(SHARED["error"], error.to_json()) == []
    assert set(TwinlakeError("it is wrong").to_json()) == {"error", "what", "why", "remedy"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), list(arguments))


def differs_in(name: str, found: Any) -> list[str]:
    """In one key of `status`, which is made apart from the rest."""
    return wrong(key_of("status", name), json.loads(json.dumps(found)))
