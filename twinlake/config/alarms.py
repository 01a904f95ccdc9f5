"""What can be set of alarms: their bounds, and who hears of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from twinlake.config import keys
from twinlake.config.keys import Key, whole
from twinlake.config.login import File

MAIL_PLAIN, MAIL_STARTTLS, MAIL_TLS = "plain", "starttls", "tls"
ADDRESS = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*"
"""What every mail server takes."""


@keys.formed(type="string", pattern=rf"^{ADDRESS}(\s*,\s*{ADDRESS})*$")
def addresses(value: Any) -> str:
    """Mail addresses with commas between them."""
    found = [one.strip() for one in str(value).split(",")]
    if not isinstance(value, str) or not all(re.fullmatch(ADDRESS, one) for one in found):
        raise ValueError('it must be mail addresses, like "ops@example.com, data@example.com"')
    return ", ".join(found)


@dataclass(frozen=True, kw_only=True)
class Alarms:
    """What is an alarm, and who hears of it. The log of the service `alarms` has them all."""

    freshness_seconds: Annotated[int, Key(
        whole(1, 31_536_000), "a table whose contract has no latency is late beyond this",
        "60")] = 300  # fmt: skip
    certificate_hours: Annotated[int, Key(
        whole(1, 8_760), "the newest certificate of a live table is too old beyond this",
        "48")] = 26  # fmt: skip
    backup_hours: Annotated[int, Key(
        whole(1, 8_760), "the newest backup is too old beyond this, where [backup] names a folder",
        "30")] = 48  # fmt: skip
    quarantine_percent: Annotated[int, Key(
        whole(1, 100), "more of a topic's records than this were refused in the last ten minutes",
        "1")] = 5  # fmt: skip
    approval_minutes: Annotated[int, Key(
        whole(1, 525_600), "a plan that passed its gate waits longer than this for its approval",
        "60")] = 10  # fmt: skip
    disk_free_percent: Annotated[int, Key(
        whole(1, 99), "less than this is free on the disk of the data directory, or less than 1 GiB",
        "10")] = 5  # fmt: skip
    webhook_url: Annotated[str, Key(
        keys.web_address("name `webhook_token_file`"), "gets each message as JSON by POST",
        '"https://alerts.example.com/twinlake"')] = ""  # fmt: skip
    webhook_token_file: Annotated[File, Key(
        keys.secret_in_file, "holds the token that goes with it as a bearer's", '"/etc/twinlake/webhook"',
    )] = None  # fmt: skip
    mail_server: Annotated[str, Key(
        keys.matching(r"[\w.-]+:\d{1,5}", "a host and a port, like mail.example.com:587"),
        "sends mail to operators, and to the owners that contracts name",
        '"mail.example.com:587"')] = ""  # fmt: skip
    mail_security: Annotated[str, Key(
        keys.choice(MAIL_PLAIN, MAIL_STARTTLS, MAIL_TLS), "plain, starttls or tls", f'"{MAIL_TLS}"',
    )] = MAIL_STARTTLS  # fmt: skip
    mail_from: Annotated[str, Key(addresses, "who sends it", '"twinlake@example.com"')] = ""
    mail_to: Annotated[str, Key(
        addresses, "the operators, who get every message", '"ops@example.com"')] = ""  # fmt: skip
    mail_user: Annotated[str, Key(keys.text, "where the mail server asks for it", '"twinlake"')] = ""
    mail_password_file: Annotated[File, Key(
        keys.secret_in_file, "holds that user's password", '"/etc/twinlake/mail"')] = None  # fmt: skip
    notifiers: Annotated[str, Key(
        keys.matching(r"\w+(\s*,\s*\w+)*", "names with commas between them"),
        "those of packages of your own that hear of it, too", '"pager"')] = ""  # fmt: skip

    @property
    def extra(self) -> tuple[str, ...]:
        """The names of `notifiers`."""
        return tuple(one.strip() for one in self.notifiers.split(",") if one.strip())
