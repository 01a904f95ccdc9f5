"""Which lake server this Airflow's tasks ask: that of the connection `twinlake_default`, where there is one.

Without it, it is that of the installation ($TWINLAKE_HOME), as `twinlake up` starts Airflow. Asked for within
tasks only: to parse the DAGs takes neither a connection nor a network.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from pydantic import AnyHttpUrl, BaseModel, ConfigDict, ValidationError

from twinlake.base.address import is_loopback
from twinlake.base.errors import UsageError, malformed
from twinlake.config.settings import Services, Settings
from twinlake.server.client import LakeClient

CONNECTION = "twinlake_default"
OTHER_VERSION = (
    "write the DAGs again with the lake server's own `twinlake dags FOLDER`; where the lake server is the "
    "older one, restart it with `twinlake down` and `twinlake up`"
)
REMEDY = f"fix the connection {CONNECTION} as docs/airflow.md shows"
_HOST = re.compile(
    r"((?P<schema>https?)://)?(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?P<path>(/[\w.-]+)*)/?"
)


class Extra(BaseModel):
    """What the connection may say beside its fields."""

    model_config = ConfigDict(extra="forbid")

    report_url: AnyHttpUrl | None = None
    """What a browser puts before `/reports/<plan>`."""
    console_url: AnyHttpUrl | None = None
    """Where a browser finds the console."""
    ca_file: str | None = None
    """Certificates to trust, in PEM, on the machine where tasks run; the system's unless given."""
    plain_http: bool = False
    """Whether the token may leave the machine unencrypted."""


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A lake server as tasks reach it, and where browsers find its reports and its console."""

    client: LakeClient
    report_url: str | None = None
    console_url: str | None = None

    def report_link(self, plan: str) -> str | None:
        """The page of a plan, where anybody has said where it is."""
        return f"{self.report_url.rstrip('/')}/reports/{plan}" if self.report_url else None

    def console_link(self, path: str, **asked: str) -> str | None:
        """A page of the console, where anybody has said where that is."""
        query = f"?{urlencode(asked)}" if asked else ""
        return f"{self.console_url.rstrip('/')}{path}{query}" if self.console_url else None


def lake() -> Lake:
    """The lake server of this Airflow; UsageError where nobody has said which, or not rightly."""
    try:
        found = BaseHook.get_connection(CONNECTION)
    except AirflowNotFoundException as error:
        own = _own()
        if own is None:
            raise UsageError(
                f"Airflow has no connection {CONNECTION}",
                "without it nobody has said where the lake server is",
                f"add it as docs/airflow.md shows, or as AIRFLOW_CONN_{CONNECTION.upper()}",
            ) from error
        client = LakeClient.of(own, read_again=lambda: _own() or own)
        return Lake(client=client, report_url=own.sql_url, console_url=own.console_url)
    return of_connection(found)


def _own() -> Services | None:
    """The addresses of the installation that this Airflow belongs to; an Airflow elsewhere has neither a data
    directory nor a project."""
    try:
        settings = Settings.of(os.environ)
    except UsageError:
        return None
    return settings.services() if settings.services_file.exists() else None


def lake_server() -> LakeClient:
    """Asks this Airflow's lake server, which is of a version that these DAGs know; UsageError where not."""
    client = lake().client
    client.refuse_other_version(OTHER_VERSION)
    return client


def of_connection(given: Any) -> Lake:
    """From the fields of an Airflow connection: host, port, schema (http or https), password, extra."""
    try:
        extra = Extra.model_validate_json(given.extra or "{}")
    except ValidationError as error:
        why = malformed(error.errors()).why
        raise UsageError(f"the extra of connection {CONNECTION} is wrong", why, REMEDY) from error
    host = _HOST.fullmatch(given.host or "")
    schema = (host and host["schema"]) or given.schema or "http"
    if host is None or schema not in ("http", "https"):
        raise _wrong("its host is not a host name, or its schema neither http nor https")
    if not given.password:
        raise _wrong("it has no password, which is the lake server's api_token")
    if schema == "http" and not extra.plain_http and not is_loopback(host["name"]):
        raise UsageError(
            f"connection {CONNECTION} would send the token unencrypted to another machine",
            f"its schema is http and its host {host['name']}",
            'put a proxy with TLS before the lake server and write "schema": "https"; where the network '
            'encrypts by itself, write "plain_http": true into the extra',
        )
    port = f":{given.port}" if given.port else ""
    url = f"{schema}://{host['name']}{port}{host['path']}"
    return Lake(
        client=LakeClient(url, given.password, ca_file=extra.ca_file, renewed=_password_now),
        report_url=str(extra.report_url) if extra.report_url else None,
        console_url=str(extra.console_url) if extra.console_url else None,
    )


def _password_now() -> str:
    """Somebody who has rotated the token writes the new one into the connection."""
    return BaseHook.get_connection(CONNECTION).password or ""


def _wrong(why: str) -> UsageError:
    return UsageError(f"connection {CONNECTION} names no lake server", why, REMEDY)
