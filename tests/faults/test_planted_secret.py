"""The whole main job on a locked broker: it works, says why it is refused, and no secret is found anywhere.

The tests of this module follow each other: the last looks for the passwords and keys of all that ran before.
"""

from __future__ import annotations

import base64
import json
import secrets
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.alarms.test_receivers import Hook, listening
from tests.broker import free_port
from tests.changelog.reader import Reader
from tests.demo.crash import kill, wait_back
from tests.demo.story import CHANGED, changed_definitions
from tests.faults.twinlake import Twinlake, files_of
from tests.processes import of_home
from tests.project import EXAMPLES
from twinlake.alarms import book
from twinlake.alarms.watch import book_file
from twinlake.base.errors import DeniedError, TwinlakeError
from twinlake.base.waiting import wait_for
from twinlake.config.login import ROLES, Role
from twinlake.lake.catalog.plans import Plans
from twinlake.server.client import LakeClient
from twinlake.services import rights
from twinlake.services.broker_security import certificates, supervisor_access
from twinlake.services.certificates import BROKER, SUPERVISOR
from twinlake.services.secrets import secrets_of
from twinlake.services.supervise.control import context_of

EXAMPLE, OTHER_TOPIC = "devices", "readings"
CHANGELOG = "changelog.latest_order"
ACTIVE = "run/twinlake.toml"
RECORDS = 2_000
MAIL_USER = "twinlake"
LONG_S = 240.0
AGAIN_S = 120.0


class Inbox:
    """Somebody's mail server, which lets one user in; it keeps whom it let in and the mails."""

    def __init__(self, password: str) -> None:
        self.password = password
        self.let_in: list[bool] = []
        self.mails: list[str] = []

    def __call__(self, server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        is_right = (given.login, given.password) == (MAIL_USER.encode(), self.password.encode())
        self.let_in.append(is_right)
        return AuthResult(success=is_right, handled=is_right)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(envelope.content.decode())
        return "250 OK"


@dataclass(frozen=True, kw_only=True)
class Heard:
    """The receivers of alarms, and the secrets that they are asked with."""

    hook: Hook
    inbox: Inbox
    secrets: dict[str, bytes]


class Locked(Twinlake):
    """A platform whose broker is locked, and what a test may do to it."""

    def __init__(self, home: Path, heard: Heard) -> None:
        super().__init__(home)
        self.heard = heard

    @property
    def client(self) -> LakeClient:
        return LakeClient.of(self.settings.services())

    def admin(self) -> AdminClient:
        return AdminClient({**supervisor_access(context_of(self.settings)).client(), "log_level": 0})

    def topic(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.client.status()["topics"] if one["name"] == name)
        return found

    def run(self, kind: str, **params: Any) -> dict[str, Any]:
        client = self.client
        found: dict[str, Any] = client.follow(client.submit(kind, params).id).succeeded()
        return found

    def caught_up(self, **records: int) -> None:
        """Until the logs hold so many records and nothing is behind."""

        def done() -> bool | None:
            told = self.client.status()
            held = {one["name"]: one["records"] for one in told["topics"]}
            known = all(one["lag_records"] == 0 for one in told["topics"])
            fed = not any(one["lag_records"] for one in told["versions"])
            return True if {**held, **records} == held and known and fed else None

        wait_for(f"{records}", done, LONG_S, unready=(TwinlakeError,))

    def password(self, role: Role, text: str) -> None:
        """Has the broker know the user by this password from now on."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, rights.ITERATIONS)
        asked = [UserScramCredentialUpsertion(role, info, text.encode())]
        admin = self.admin()  # it has to live until it has answered
        for answer in admin.alter_user_scram_credentials(asked).values():
            answer.result(20)

    def restart_broker(self) -> None:
        """So that every client has to get in again."""
        wait_back(self.settings, "broker", kill(self.settings, "broker"))


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    yield from listening()


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory, hook: Hook) -> Iterator[Locked]:
    """Alarms go to a webhook whose address is a secret itself, with a token, and by mail with a password."""
    home = tmp_path_factory.mktemp("planted") / "home"
    home.mkdir()
    names = ("webhook address", "webhook token", "mail password")
    planted = {name: secrets.token_urlsafe(32) for name in names}
    files = {name: home.parent / name.replace(" ", "_") for name in planted}
    for name, file in files.items():
        file.touch(mode=0o600)
        file.write_text(planted[name])
    inbox = Inbox(planted["mail password"])
    server = Controller(
        inbox, hostname="127.0.0.1", port=free_port(), authenticator=inbox, auth_require_tls=False,
        auth_required=True,
    )  # fmt: skip
    server.start()
    (home / "twinlake.toml").write_text(
        '[kafka]\nsecurity = "SASL_SSL"\n[limits]\nstart_seconds = 400\n[alarms]\nmail_security = "plain"\n'
        f'webhook_url = "{hook.url}/{planted["webhook address"]}"\n'
        f'webhook_token_file = "{files["webhook token"]}"\nmail_server = "127.0.0.1:{server.port}"\n'
        f'mail_from = "t@example.com"\nmail_to = "ops@example.com"\nmail_user = "{MAIL_USER}"\n'
        f'mail_password_file = "{files["mail password"]}"\n'
    )
    heard = Heard(hook=hook, inbox=inbox, secrets={name: text.encode() for name, text in planted.items()})
    made = Locked(home, heard)
    made("gallery", "add", EXAMPLE)
    try:
        made("up", "--without", "airflow")
        yield made
    finally:
        made("down")
        server.stop(no_assert=True)


@pytest.fixture(scope="module")
def sent() -> dict[str, int]:
    """Records by topic, counted up by the tests."""
    return {"orders": 0, OTHER_TOPIC: 0}


def _send(locked: Locked, sent: dict[str, int], orders: int = RECORDS, readings: int = 0) -> None:
    if orders:
        locked("produce", "--count", str(orders), "--seed", str(sent["orders"]))
        sent["orders"] += orders
    if readings:
        locked("gallery", "produce", EXAMPLE, "--count", str(readings), "--seed", str(sent[OTHER_TOPIC]))
        sent[OTHER_TOPIC] += readings


def test_the_main_job_runs_on_a_locked_broker(locked: Locked, sent: dict[str, int]) -> None:
    _send(locked, sent, RECORDS, RECORDS)
    locked.caught_up(**sent)
    locked("changelog", "latest_order", "--topic", CHANGELOG)
    locked("verify", CHANGED)
    locked("rebuild", CHANGED)
    definitions = {**changed_definitions(), **{one.name: one.to_json() for one in EXAMPLES[EXAMPLE]}}
    plan = locked.run("plan", definitions=definitions)["id"]
    locked("build", plan)
    changes = Plans(locked.settings.lake).load(plan).to_json()["changes"]
    (change,) = [one for one in changes if one["table"] == CHANGED]
    greens = locked.run("build", plan=plan)["greens"]
    locked.run("diff", table=CHANGED, blue=change["blue"], green=greens[CHANGED], plan=plan)
    locked("gate", plan)
    locked("promote", plan, "--approved-by", "the test")
    _send(locked, sent)
    locked.caught_up(**sent)
    wait_for("the changelog", lambda: _told_all(locked) or None, AGAIN_S)
    services = locked.settings.services()
    told = Reader(services.kafka("changelog"), services.registry_url, CHANGELOG).table()
    locked("query", "SELECT count(*) AS n FROM serve.latest_order")

    assert len(told) > 0
    assert _page(locked, f"/reports/{plan}").status_code == 200
    (compared,) = _page(locked, f"/comparisons/{plan}").json()
    assert compared["table"] == CHANGED and compared["over_time"]["plots"]


def _told_all(locked: Locked) -> bool:
    (one,) = locked.client.status()["changelogs"]
    return bool(one["error"] is None and one["position"] == {"orders": locked.topic("orders")["batch"]})


def _page(locked: Locked, path: str) -> httpx.Response:
    return httpx.get(locked.settings.services().sql_url + path, auth=locked.settings.services().reader)


def test_a_changelog_to_a_topic_without_rights_is_refused_with_the_remedy(locked: Locked) -> None:
    with pytest.raises(DeniedError) as raised:
        locked.run("changelog", table=CHANGED, topic="elsewhere")

    assert "user 'changelog' may not describe topic 'elsewhere'" in raised.value.what
    assert "begins with `changelog.`" in raised.value.remedy


@contextmanager
def _without(locked: Locked, operations: tuple[str, ...]) -> Iterator[None]:
    """Ingest has not these rights on the other topic."""
    taken = [
        right
        for right in rights.rights([OTHER_TOPIC])
        if (right.principal, right.name) == ("User:ingest", OTHER_TOPIC)
        and right.operation.name in operations
    ]
    assert len(taken) == len(operations)
    admin = locked.admin()
    for gone in admin.delete_acls([rights.filter_of(right) for right in taken]).values():
        gone.result(20)
    yield
    for given in admin.create_acls(taken).values():
        given.result(20)


@pytest.mark.parametrize("operations", [("READ",), ("READ", "DESCRIBE")])
def test_a_topic_that_ingest_may_not_read_tells_why_and_the_others_go_on(
    locked: Locked, sent: dict[str, int], operations: tuple[str, ...]
) -> None:
    with _without(locked, operations):
        _send(locked, sent, 500, 500)
        error = _error_of(locked, OTHER_TOPIC)
        wait_for("the other topic", lambda: _held(locked, "orders") == sent["orders"] or None, AGAIN_S)
        others = locked.topic("orders")
    locked.caught_up(**sent)

    assert error["what"].startswith("user 'ingest' may not") and f"topic '{OTHER_TOPIC}'" in error["what"]
    assert "uthoriz" in error["why"] and "docs/security.md" in error["remedy"]
    assert others["error"] is None and others["state"] == "running"
    assert locked.topic(OTHER_TOPIC)["error"] is None


def _held(locked: Locked, topic: str) -> int:
    return int(locked.topic(topic)["records"])


def _error_of(locked: Locked, topic: str) -> dict[str, str]:
    return _denied(f"the refusal of {topic}", lambda: locked.topic(topic)["error"])


def _denied(what: str, ask: Callable[[], dict[str, str] | None]) -> dict[str, str]:
    def denied() -> dict[str, str] | None:
        error = ask()
        return error if error and error["error"] == "DeniedError" else None

    return wait_for(what, denied, AGAIN_S)


@contextmanager
def _another_password(locked: Locked, role: Role) -> Iterator[None]:
    """The broker knows the role by another password, and everybody has to get in again."""
    right = locked.settings.services().kafka(role).password
    locked.password(role, "another-one-of-the-test")
    locked.restart_broker()
    yield
    locked.password(role, right)


def test_ingest_says_that_its_password_is_wrong_and_comes_back_by_itself(
    locked: Locked, sent: dict[str, int]
) -> None:
    with _another_password(locked, "ingest"):
        _send(locked, sent, 500)  # the producer's password is as it was
        error = _error_of(locked, "orders")
    locked.caught_up(**sent)

    assert "does not let user 'ingest' in" in error["what"]
    assert "uthentication failed" in error["why"] and "password_file" in error["remedy"]


def test_a_changelog_says_that_its_password_is_wrong_and_comes_back_by_itself(
    locked: Locked, sent: dict[str, int]
) -> None:
    with _another_password(locked, "changelog"):
        _send(locked, sent, 500)
        locked.caught_up(**sent)  # tables are not held up
        error = _denied("the changelog's refusal", lambda: locked.client.status()["changelogs"][0]["error"])
    wait_for("the changelog", lambda: _told_all(locked) or None, AGAIN_S)

    assert "does not let user 'changelog' in" in error["what"]
    assert "uthentication failed" in error["why"] and "password_file" in error["remedy"]


def test_alarms_are_told_with_their_secrets_and_so_is_that_nobody_takes_them(
    locked: Locked, sent: dict[str, int]
) -> None:
    hook, inbox = locked.heard.hook, locked.heard.inbox
    locked("alarm", "test")
    ((headers, _),) = [one for one in hook.sent if one[1]["event"] == "test"]
    assert headers["Authorization"] == f"Bearer {locked.heard.secrets['webhook token'].decode()}"
    assert inbox.let_in[-1] and inbox.mails

    hook.status, right, inbox.password = 503, inbox.password, "another"
    mails = len(inbox.mails)
    with pytest.raises(AssertionError, match="has not accepted it"):
        locked("alarm", "test")
    with _without(locked, ("READ",)):  # an alarm of the service itself, which its log tells of
        _send(locked, sent, 0, 500)
        wait_for("the alarm that waits", lambda: _waits(locked) or None, AGAIN_S)
    hook.status, inbox.password = 200, right
    wait_for("the mails", lambda: len(inbox.mails) > mails or None, AGAIN_S)
    locked.caught_up(**sent)


def _waits(locked: Locked) -> bool:
    unsent = book.read(book_file(locked.settings)).get("unsent", {})
    return bool(unsent.get("webhook") and unsent.get("mail"))


def _secrets(locked: Locked) -> dict[str, bytes]:
    services = locked.settings.services()
    held = certificates(context_of(locked.settings))
    found = {f"password of {role}": services.kafka(role).password.encode() for role in ROLES}
    for name in (BROKER, SUPERVISOR):
        found[f"key of {name}"] = held.key(name).read_text().splitlines()[1].encode()
    return found | locked.heard.secrets


def _forms(secret: bytes) -> Iterator[bytes]:
    """As it is, and as it looks in base64 and in UTF-16, where Java may have written it."""
    yield secret
    yield base64.b64encode(secret).rstrip(b"=")
    yield secret.decode().encode("utf-16-le")


def _finders(locked: Locked) -> Callable[[str, bytes], list[str]]:
    known = {name: tuple(_forms(secret)) for name, secret in _secrets(locked).items()}

    def found(where: str, data: bytes) -> list[str]:
        return [f"{name} in {where}" for name, forms in known.items() if any(one in data for one in forms)]

    return found


def _may_hold(home: Path, file: Path) -> bool:
    """services.json, the private keys, what the operator has written, and its copy while it is active."""
    name = str(file.relative_to(home))
    is_key = name.startswith("kafka/tls/") and name.endswith((".key", ".pair.pem"))
    return name in ("services.json", "twinlake.toml", ACTIVE) or is_key


def test_a_planted_secret_is_found_where_it_is_planted(locked: Locked) -> None:
    """What looks for secrets below does find them."""
    found, planted = _finders(locked), _secrets(locked)
    file = locked.settings.services_file.read_bytes()
    keys = certificates(context_of(locked.settings)).pair(BROKER).read_bytes()

    assert len(found("services.json", file)) == len(ROLES)
    written = (locked.settings.home / "twinlake.toml").read_bytes()
    assert (locked.settings.home / ACTIVE).stat().st_mode & 0o777 == 0o600
    assert found("settings", written) == ["webhook address in settings"]
    assert found("a key", keys) == [f"key of {BROKER} in a key"]
    assert not found("nothing", secrets.token_bytes(1000))
    assert all(len(secret) >= 30 for secret in planted.values())


def test_no_secret_is_in_any_file_log_commit_checkpoint_report_page_or_process(locked: Locked) -> None:
    found, home = _finders(locked), locked.settings.home
    kinds = {"log": "logs/", "commit": "_delta_log", "checkpoint": "checkpoints", "report": "plans/"}
    looked = dict.fromkeys(("file", *kinds, "page", "process"), 0)
    leaks: list[str] = []

    def look(kind: str, where: str, data: bytes) -> None:
        looked[kind] += 1
        leaks.extend(found(where, data))

    for file in files_of(home):
        if _may_hold(home, file):
            continue
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            continue  # what runs deletes some
        name = str(file.relative_to(home))
        look("file", name, data)
        for kind, part in kinds.items():
            looked[kind] += part in name
    services = locked.settings.services()
    token = {"Authorization": f"Bearer {services.api_token}"}
    jobs = [f"/jobs/{job.id}" for job in locked.client.jobs(1000)]
    for path in ("/health", "/status", "/jobs?limit=1000", "/docs", "/openapi.json", *jobs):
        look("page", path, httpx.get(services.api_url + path, headers=token).content)
    for url in (services.lake_metrics_url, services.sql_metrics_url, services.console_metrics_url):
        asked = httpx.get(url, auth=(services.metrics_user, services.metrics_password))
        look("page", url, asked.raise_for_status().content)
    plans = [one.stem for one in (locked.settings.lake / "plans").glob("*.html")]
    made = [f"/{kind}/{plan}" for plan in plans for kind in ("reports", "comparisons", "gates")]
    for path in ("/status", *made):
        look("page", path, _page(locked, path).content)
    for process in of_home(home):
        with process.oneshot():
            look("process", f"{process.pid}'s command line", " ".join(process.cmdline()).encode())
            look("process", f"{process.pid}'s environment", str(process.environ()).encode())

    assert leaks == []
    assert all(looked.values()), looked
    assert looked["process"] >= 10 and looked["page"] >= 10 and looked["file"] > 100


def test_none_is_in_the_bundle_for_whoever_helps(locked: Locked) -> None:
    """Everything runs, and each part of it can be collected."""
    file = locked.settings.home.parent / "support.tar.gz"
    locked("support", str(file))
    found, leaks, looked = _finders(locked), list[str](), list[str]()

    with tarfile.open(file) as bundle:
        for one in bundle.getmembers():
            content = bundle.extractfile(one)
            assert content is not None
            looked.append(one.name.partition("/")[2])
            leaks += found(one.name, content.read())
        failed = json.loads(bundle.extractfile("support/contents.json").read())["failed"]  # type: ignore[union-attr]

    assert leaks == []
    assert failed == {}
    assert {"status.json", "certificates.json", "processes.json", "logs/lake.log"} <= set(looked)
    assert file.stat().st_mode & 0o777 == 0o600
    held = set(secrets_of(locked.settings).values())
    assert {one.decode() for one in _secrets(locked).values()} <= held


def test_the_sql_server_cannot_even_see_the_files_that_hold_secrets(locked: Locked) -> None:
    told = _page(locked, "/status").json()["protection"]

    assert told["sees_secrets"] is False
