"""Which SQL server is read: one that is named by address, user and password, which need no data directory.

And the connections to it, which stay open between two statements.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from httpx import Client, Limits, create_ssl_context

from twinlake.base.address import is_loopback
from twinlake.base.errors import UsageError
from twinlake.config import keys
from twinlake.config.settings import Services

ADDRESS, USER, PASSWORD = "TWINLAKE_SQL_URL", "TWINLAKE_SQL_USER", "TWINLAKE_SQL_PASSWORD"
CA_FILE = "TWINLAKE_SQL_CA_FILE"
"""PEM, who has signed its certificate, where no usual authority has."""
"""The variables that name it where arguments do not."""
ELSEWHERE = "ask whoever runs it: `twinlake status` there says more"
KEPT_S = 3.0
"""Less than the five seconds after which the server closes a silent one: none is closed as it is used."""
_LIKE = "name its HTTP endpoint, `sql_url` of the services.json there, like http://127.0.0.1:18091"


@lru_cache(maxsize=8)
def trusted(ca_file: str) -> ssl.SSLContext:
    """By whom the certificate of a server has to be signed; UsageError for a file that has no certificate."""
    try:
        return ssl.create_default_context(cafile=ca_file) if ca_file else create_ssl_context(trust_env=False)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            "the SQL server was not asked", f"{ca_file}: {error}",
            f"name a file of certificates as PEM: ca_file= in Python, or {CA_FILE} in the environment",
        ) from error  # fmt: skip


def connections(ca_file: str) -> Client:
    """Those of this process, for any number of threads; a fork has its own. UsageError as `trusted`."""
    return _of_process(os.getpid(), ca_file)


@lru_cache(maxsize=8)
def _of_process(_pid: int, ca_file: str) -> Client:
    limits = Limits(max_connections=None, keepalive_expiry=KEPT_S)
    return Client(trust_env=False, verify=trusted(ca_file), limits=limits)


def named_server(
    environ: Mapping[str, str], address: str | None = None, user: str | None = None,
    password: str | None = None, ca_file: str | None = None,
) -> Services | None:  # fmt: skip
    """The server that the arguments, or else the environment, name; None where none is named.

    UsageError for an address that is none, and where only a part of the three is there.
    """
    url = environ.get(ADDRESS, "") if address is None else address
    known = {"user": user or environ.get(USER), "password": password or environ.get(PASSWORD)}
    if address is None and not url:
        if given := " and ".join(name for name, value in (("user", user), ("password", password)) if value):
            raise UsageError(f"{given} without an address", "it is not known whose they are", _LIKE)
        return None
    try:
        url = keys.web_address("user and password are given beside it")(url)
    except ValueError as error:
        raise UsageError(f"{url!r} is not the address of a SQL server", str(error), _LIKE) from error
    if lacking := " and ".join(name for name, value in known.items() if not value):
        why = f"{url} asks for user and password, and {lacking} is not given"
        raise UsageError(
            "the SQL server was not asked", why,
            f"give them: user= and password= in Python, or {USER} and {PASSWORD} in the environment",
        )  # fmt: skip
    if not url.startswith("https:") and not is_loopback(urlsplit(url).hostname or ""):
        raise UsageError(
            f"{url} was not asked", "the password would be readable on the way",
            "ask it by https:// (`[sql] listen` of twinlake.toml there), or through a tunnel",
        )  # fmt: skip
    return Services(
        sql_url=url, sql_user=known["user"] or "", sql_password=known["password"] or "",
        sql_ca_file=ca_file or environ.get(CA_FILE, ""),
    )  # fmt: skip
