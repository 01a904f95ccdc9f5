"""Receivers on real ports: a webhook over HTTP, mail over SMTP; what is not accepted raises."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.message import Message as Parsed
from importlib.metadata import EntryPoint
from pathlib import Path
from secrets import token_hex
from smtplib import SMTPRecipientsRefused, SMTPServerDisconnected
from traceback import format_exception
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from structlog.testing import capture_logs

from tests.broker import free_port
from tests.posted import posted_to
from twinlake.alarms import receivers
from twinlake.alarms.alarm import Alarm, Message
from twinlake.alarms.receivers import Log, Mail, Webhook, receivers_of
from twinlake.base import post
from twinlake.base.errors import TwinlakeError, UnreachableError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.config.alarms import Alarms
from twinlake.config.settings import Settings

ALARM = Alarm(
    kind="freshness", title="sales", about="sales", since="2026-01-31T12:00:00Z",
    owners=("anna@example.com",),
    what="it is <img onerror=x>\nBcc: evil@example.com 5 minutes behind", why="its contract allows 1 minute",
    remedy="`twinlake status`",
)  # fmt: skip
RAISED = Message(event="raised", at="2026-01-31T12:00:02Z", alarm=ALARM, console="http://127.0.0.1:1")
OVER = replace(RAISED, event="over", at="2026-01-31T12:09:00Z")


@dataclass
class Hook:
    """Somebody's receiver: it answers with `status`, and keeps what it was sent."""

    status: int = 200
    sent: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def hook() -> Iterator[Hook]:
    yield from listening()


def listening() -> Iterator[Hook]:
    """A receiver on a real port."""
    made = Hook()

    def take(path: str, headers: dict[str, str], body: bytes) -> int:
        made.sent.append((headers, json.loads(body)))
        return made.status

    with posted_to(take) as url:
        made.url = f"{url}/hook"
        yield made


class Inbox:
    """A mail server's handler; it refuses whom `refused` names."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], Parsed]] = []
        self.refused = ""

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address == self.refused:
            return "550 nobody is called so"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append((list(envelope.rcpt_tos), message_from_bytes(envelope.content)))
        return "250 OK"


@pytest.fixture
def inbox() -> Iterator[tuple[Inbox, str]]:
    handler = Inbox()
    server = Controller(handler, hostname="127.0.0.1", port=free_port())
    server.start()
    yield handler, f"127.0.0.1:{server.port}"
    server.stop(no_assert=True)


def test_a_webhook_gets_all_of_it_as_json_with_its_token_and_an_id(hook: Hook, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    Webhook(Alarms(webhook_url=hook.url, webhook_token_file=token)).send(RAISED)

    ((headers, body),) = hook.sent
    assert headers["Authorization"] == "Bearer s3cret" and headers["Idempotency-Key"] == RAISED.id
    assert body["id"] == RAISED.id and body["event"] == "raised" and body["severity"] == "warning"
    assert (body["title"], body["what"], body["owners"]) == ("sales", ALARM.what, ["anna@example.com"])
    assert body["docs"] == "docs/alarms.md#alarm-freshness"


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
def test_a_webhook_that_does_not_accept_raises(hook: Hook, status: int) -> None:
    hook.status = status
    with pytest.raises(TwinlakeError) as refused:
        Webhook(Alarms(webhook_url=hook.url)).send(RAISED)
    assert str(status) in refused.value.what and "/hook" not in str(refused.value)


def test_a_webhook_that_is_away_is_named_by_its_host_alone() -> None:
    secret = token_hex(8)
    with pytest.raises(UnreachableError) as away:
        Webhook(Alarms(webhook_url=f"http://127.0.0.1:{free_port()}/T0/{secret}")).send(RAISED)
    assert "127.0.0.1" in away.value.what and secret not in "".join(format_exception(away.value))


@contextmanager
def answering(*pieces: bytes, forever: bytes, given: list[int] | None = None) -> Iterator[int]:
    """The port of somebody who says these, and then that for ever, a little at a time; `given` gets how many
    bytes of that were taken each time."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        with suppress(OSError), listener.accept()[0] as peer:
            peer.sendall(b"".join(pieces))
            while not ended.wait(0.01):
                taken = peer.send(forever)
                if given is not None:
                    given.append(taken)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
            listener.close()
            thread.join(10)


def test_an_answer_without_an_end_is_not_read() -> None:
    given: list[int] = []
    with answering(b"HTTP/1.1 200 OK\r\n\r\n", forever=bytes(1 << 20), given=given) as port:
        Webhook(Alarms(webhook_url=f"http://127.0.0.1:{port}/")).send(RAISED)
    assert sum(given) < 16 << 20, "what the buffers of both ends take"


def test_an_exchange_that_goes_on_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (receivers, post):
        monkeypatch.setattr(module, "WHOLE_S", 0.5)
    began = time.monotonic()
    with answering(b"HTTP/1.1 200 OK\r\nX: ", forever=b"a") as port, pytest.raises(UnreachableError):
        Webhook(Alarms(webhook_url=f"http://127.0.0.1:{port}/")).send(RAISED)
    given = Alarms(mail_security="plain", mail_from="t@example.com", mail_to="ops@example.com")
    with answering(b"220 ", forever=b"a") as port, pytest.raises(SMTPServerDisconnected):
        Mail(replace(given, mail_server=f"127.0.0.1:{port}")).send(RAISED)
    with answering(b"220 hello\r\n250 ", forever=b"a") as port, pytest.raises(SMTPServerDisconnected):
        Mail(replace(given, mail_server=f"127.0.0.1:{port}")).send(RAISED)
    assert time.monotonic() - began < 10
    wait_for("no thread", lambda: "mail in time" not in {one.name for one in threading.enumerate()}, 5)


def test_mail_goes_to_operators_and_owners_once_each_with_one_line_of_a_subject(
    inbox: tuple[Inbox, str],
) -> None:
    handler, server = inbox
    mail = Mail(Alarms(
        mail_server=server, mail_security="plain", mail_from="twinlake@example.com",
        mail_to="ops@example.com, anna@example.com",
    ))  # fmt: skip
    mail.send(RAISED)
    mail.send(OVER)

    (to, raised), (_, over) = handler.mails
    assert to == ["ops@example.com", "anna@example.com"]
    subject = " ".join(raised["Subject"].split())
    assert raised["Bcc"] is None and "Bcc: evil@example.com" in subject
    assert raised["Subject"].startswith("[Twinlake] warning: sales: it is <img")
    text = str(raised.get_payload())
    for words in ("Why: its contract allows 1 minute", "What to do: `twinlake status`", "#alarm-freshness"):
        assert words in text
    assert over["In-Reply-To"] == raised["Message-ID"] and over["Subject"].startswith("[Twinlake] over: ")


def test_an_address_that_the_mail_server_refuses_keeps_it_from_nobody_else(
    inbox: tuple[Inbox, str],
) -> None:
    handler, server = inbox
    handler.refused = "anna@example.com"
    given = Alarms(mail_server=server, mail_security="plain", mail_from="t@example.com")
    with capture_logs() as lines:
        Mail(replace(given, mail_to="ops@example.com")).send(RAISED)
    assert [to for to, _ in handler.mails] == [["ops@example.com"]]
    assert "anna@example.com" in lines[0]["refused"]

    with pytest.raises(SMTPRecipientsRefused):
        Mail(given).send(RAISED)


def test_what_turns_text_or_rings_a_bell_is_shown_and_long_words_are_cut_in_a_subject() -> None:
    odd = replace(RAISED, alarm=replace(ALARM, what="a\x1b[2Jb\u202ec " + "x" * 500))
    assert "a\\x1b[2Jb\\u202ec" in odd.subject and len(odd.subject) < 200
    assert "\x1b" not in odd.text and "\u202e" not in odd.text and "x" * 500 in odd.text


def test_the_log_has_it_as_fields() -> None:
    with capture_logs() as lines:
        Log().send(RAISED)
    (line,) = lines
    assert (line["event"], line["kind"], line["title"]) == ("alarm raised", "freshness", "sales")


class Pager:
    """A receiver of somebody's package."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def send(self, message: Message) -> None:
        """Accepts it."""


def of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, notifiers: str) -> dict[str, Any]:
    brought = [
        EntryPoint("pager", "tests.alarms.test_receivers:Pager", receivers.GROUP),
        EntryPoint("broken", "tests.alarms.nowhere:Pager", receivers.GROUP),
        EntryPoint("log", "tests.alarms.test_receivers:Pager", receivers.GROUP),
    ]
    monkeypatch.setattr(receivers, "entry_points", lambda group: brought if group == receivers.GROUP else [])
    (tmp_path / "twinlake.toml").write_text(f'[alarms]\nnotifiers = "{notifiers}"\n')
    return receivers_of(Settings(home=tmp_path))


def test_a_package_brings_a_receiver_by_its_entry_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = of(monkeypatch, tmp_path, "pager")
    assert list(found) == ["log", "pager"] and isinstance(found["pager"], Pager)


@pytest.mark.parametrize(
    ("name", "said"),
    [("pigeon", "there is no notifier pigeon"), ("broken", "cannot be loaded"), ("log", "cannot be used")],
)
def test_one_that_is_not_there_or_broken_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        of(monkeypatch, tmp_path, name)
