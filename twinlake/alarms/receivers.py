"""Who hears of an alarm: a log, a webhook, mail, and what packages bring as `twinlake.notifiers`.

Each is sent one message at a time and raises until it has accepted it; whoever sends tries again.
"""

from __future__ import annotations

import json
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from email.message import EmailMessage
from email.utils import formatdate
from importlib.metadata import entry_points
from typing import Any, Protocol

import structlog

from twinlake.alarms.alarm import Message
from twinlake.base.errors import UsageError
from twinlake.base.files import read_secret
from twinlake.base.post import TIMEOUT_S, WHOLE_S, post
from twinlake.config.alarms import MAIL_STARTTLS, MAIL_TLS, Alarms
from twinlake.config.settings import Settings

journal = structlog.get_logger(__name__)

GROUP = "twinlake.notifiers"
DOMAIN = "twinlake.invalid"
"""Of the names of mails: no host is called so."""


class Notifier(Protocol):
    """Who hears of it. A package's is made by `Notifier(settings)` of its entry point."""

    def send(self, message: Message) -> None:
        """Returns once the receiver has accepted it, which may get it twice after a kill; else raises."""


class Log:
    """The log of the service: `twinlake logs alarms`."""

    def send(self, message: Message) -> None:
        alarm = message.alarm
        journal.warning(
            f"alarm {message.event}", id=message.id, kind=alarm.kind, severity=alarm.severity,
            title=alarm.title, what=alarm.what, why=alarm.why, remedy=alarm.remedy, since=alarm.since,
        )  # fmt: skip


class Webhook:
    """A POST of JSON for each message; anything but a status of success is no acceptance."""

    def __init__(self, given: Alarms) -> None:
        self._url, self._token_file = given.webhook_url, given.webhook_token_file

    def send(self, message: Message) -> None:
        headers = {"Idempotency-Key": message.id}
        if self._token_file:  # read each time: it may be renewed
            headers["Authorization"] = f"Bearer {read_secret(self._token_file)}"
        body = json.dumps(message.to_json()).encode()
        post(self._url, body, {"Content-Type": "application/json", **headers}, "the webhook")


class Mail:
    """A mail to the operators and to the owners of the table or topic."""

    def __init__(self, given: Alarms) -> None:
        self._given = given
        self._host, _, port = given.mail_server.rpartition(":")
        self._port = int(port)

    def send(self, message: Message) -> None:
        given = self._given
        operators = [one.strip() for one in given.mail_to.split(",") if one.strip()]
        to = list(dict.fromkeys((*operators, *message.alarm.owners)))
        if not to:
            return  # an alarm without an owner, and no operators
        mail = EmailMessage()
        mail["From"], mail["To"] = given.mail_from, ", ".join(to)
        mail["Subject"] = message.subject
        mail["Date"], mail["Message-ID"] = formatdate(), f"<{message.id}@{DOMAIN}>"
        if message.event == "over":
            mail["In-Reply-To"] = f"<{message.alarm.id}-raised@{DOMAIN}>"
        mail.set_content(message.text)
        with self._connected() as server:
            if given.mail_user:
                password = read_secret(given.mail_password_file) if given.mail_password_file else ""
                server.login(given.mail_user, password)
            if refused := server.send_message(mail):  # to send it again would bring it to the others twice
                journal.warning("the mail server refuses addresses", refused=str(refused), id=message.id)

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self._given.mail_security == MAIL_TLS:
            return _BoundedTls(self._host, self._port, timeout=TIMEOUT_S, context=context)
        server = _Bounded(self._host, self._port, timeout=TIMEOUT_S)
        if self._given.mail_security == MAIL_STARTTLS:
            try:
                server.starttls(context=context)
            except BaseException:
                server.close()
                raise
        return server


class _Bounded(smtplib.SMTP):
    """A mail server whose whole exchange ends in time: the timeout of a socket is that of one read."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._closed = threading.Event()
        threading.Thread(target=self._cut, name="mail in time", daemon=True).start()
        try:
            super().__init__(*arguments, **named)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._closed.set()
        super().close()

    def _cut(self) -> None:
        wait_s = WHOLE_S
        while not self._closed.wait(wait_s):
            wait_s = 1.0  # it may have no connection yet
            if (connection := self.sock) is not None:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _BoundedTls(_Bounded, smtplib.SMTP_SSL):
    """By TLS from the first byte."""


def receivers_of(settings: Settings) -> dict[str, Notifier]:
    """By name. UsageError for a name in `notifiers` that no package brings, or that fails."""
    given = settings.values.alarms
    found: dict[str, Notifier] = {"log": Log()}
    if given.webhook_url:
        found["webhook"] = Webhook(given)
    if given.mail_server:
        found["mail"] = Mail(given)
    for name in given.extra:
        if name in found:
            raise UsageError(f"the notifier {name} cannot be used", "that name is taken", "call it otherwise")
        found[name] = _brought(name)(settings)
    return found


def _brought(name: str) -> Callable[[Settings], Notifier]:
    known = entry_points(group=GROUP)
    one = next((each for each in known if each.name == name), None)
    if one is None:
        names = ", ".join(sorted(each.name for each in known)) or "none"
        raise UsageError(
            f"there is no notifier {name}", f"installed packages bring: {names}",
            f"install the package that has it as an entry point {GROUP}, or correct `notifiers` in [alarms]",
        )  # fmt: skip
    try:
        made: Callable[[Settings], Notifier] = one.load()
    except Exception as error:  # another's code
        raise UsageError(
            f"the notifier {name} cannot be loaded", f"{one.value}: {type(error).__name__}: {error}",
            "repair the package, or leave it out",
        ) from error  # fmt: skip
    return made
