"""What is rotated: each secret of services.json that Twinlake makes, and how its server takes another one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import httpx

from twinlake.base.files import SECRET, replace_file
from twinlake.base.passwords import hashed
from twinlake.config import users
from twinlake.config.settings import Services, Settings
from twinlake.services import airflow, metrics
from twinlake.services.folders import folders_of
from twinlake.services.sql import users_file

_REFUSED = (401, 403)


def _always(settings: Settings) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class Secret:
    """One field of services.json.

    `accept` and `keep_only` write what the server reads at each request; both may be repeated. `opens` asks
    each server that asks for it, and has an answer of each that is there.
    """

    name: str
    server: str
    accept: Callable[[Settings, str, str], None]
    """Lets in by the old and by the new one."""
    keep_only: Callable[[Settings, str], None]
    """Lets in by this one alone."""
    opens: Callable[[Services, str], tuple[bool, ...]]
    why_not: Callable[[Settings], str] = _always
    """Why it is not Twinlake's to change, or cannot be now; empty where it can."""

    def of(self, services: Services) -> str:
        return str(getattr(services, self.name))

    def put(self, services: Services, secret: str) -> Services:
        """With it instead of the one of before."""
        changes: dict[str, Any] = {self.name: secret}
        if self.name == TOKEN:
            changes["api_tokens_rotating"] = [services.api_token]
        return replace(services, **changes)


TOKEN = "api_token"


def _rotating(settings: Settings, *tokens: str) -> None:
    replace(settings.services(), api_tokens_rotating=[*tokens]).save(settings.services_file)


def _user(name: str, of: Callable[[Services], str]) -> Secret:
    """The password of one of the users that `up` makes."""

    def accept(settings: Settings, old: str, new: str) -> None:
        users.accept(users_file(folders_of(settings)), of(settings.services()), old, new)

    def keep_only(settings: Settings, password: str) -> None:
        users.keep_only(users_file(folders_of(settings)), of(settings.services()), password)

    def why_not(settings: Settings) -> str:
        user, known = of(settings.services()), users.load(users_file(folders_of(settings)))
        if user not in known:
            return f"there is no user {user} any more"
        if known[user].disabled:  # no password lets them in: no server could be asked for the new one
            return f"{user} is disabled; `twinlake users password {user}` makes another one"
        return ""

    def opens(services: Services, password: str) -> tuple[bool, ...]:
        return _lets_in(f"{services.sql_url}/queries", (of(services), password))

    return Secret(
        name=name, server="the SQL server", accept=accept, keep_only=keep_only, opens=opens, why_not=why_not
    )


def _accept_metrics(settings: Settings, *passwords: str) -> None:
    file, user = metrics.password_file(folders_of(settings)), settings.services().metrics_user
    replace_file(file, "".join(hashed(user, password) for password in passwords))


def _opens_metrics(services: Services, password: str) -> tuple[bool, ...]:
    urls = (services.lake_metrics_url, services.sql_metrics_url, services.console_metrics_url)
    login = (services.metrics_user, password)
    return tuple(answer for url in urls if url for answer in _lets_in(url, login))


def _accept_airflow(settings: Settings, *passwords: str) -> None:
    """It knows one password alone, reads it at each login, and no command logs in there."""
    file = folders_of(settings).of("airflow") / airflow.PASSWORDS
    replace_file(file, json.dumps({airflow.USER: passwords[-1]}), SECRET)


def _opens_airflow(services: Services, password: str) -> tuple[bool, ...]:
    asked = {"username": services.airflow_user, "password": password}
    return _answer("POST", f"{services.airflow_url}/auth/token", json=asked)


def _lets_in(url: str, login: tuple[str, str]) -> tuple[bool, ...]:
    return _answer("GET", url, auth=login)


def _opens_lake(services: Services, token: str) -> tuple[bool, ...]:
    url, shown = f"{services.api_url}/jobs?limit=1", {"Authorization": f"Bearer {token}"}
    return _answer("GET", url, headers=shown)


def _answer(method: str, url: str, **more: Any) -> tuple[bool, ...]:
    """Nothing of one that is away or still starting."""
    try:
        found = _client().request(method, url, **more)
    except (httpx.HTTPError, httpx.InvalidURL):
        return ()
    return () if found.is_server_error else (found.status_code not in _REFUSED,)


@cache
def _client() -> httpx.Client:
    """**why** one: each reads the system's certificates."""
    return httpx.Client(trust_env=False, timeout=5)


_EVERY = (
    Secret(
        name=TOKEN, server="the lake server", accept=lambda settings, old, new: _rotating(settings, new),
        keep_only=lambda settings, token: _rotating(settings), opens=_opens_lake,
    ),
    _user("sql_password", lambda services: services.sql_user),
    _user("console_password", lambda services: services.console_user),
    Secret(
        name="metrics_password", server="a server that serves metrics", accept=_accept_metrics,
        keep_only=_accept_metrics, opens=_opens_metrics,
    ),
    Secret(
        name="airflow_password", server="Airflow", accept=_accept_airflow, keep_only=_accept_airflow,
        opens=_opens_airflow,
        why_not=lambda settings: "" if settings.services().airflow_user else "Airflow is one of your own",
    ),
)  # fmt: skip
ALL: Mapping[str, Secret] = MappingProxyType({one.name: one for one in _EVERY})
NAMES = tuple(ALL)
