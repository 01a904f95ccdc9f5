"""The real application of a console, asked like a browser does, with the figures that a test gives it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from tests.cli.test_services import PART, TOPIC
from tests.console import release_answers, table_answers, topic_answers
from twinlake.base.errors import UnreachableError
from twinlake.base.times import parse_moment
from twinlake.config import users
from twinlake.config.settings import Services as Addresses
from twinlake.config.settings import Settings
from twinlake.console.app import build_app
from twinlake.console.console import Console
from twinlake.console.figures import Services
from twinlake.releases.timeline import PlanFacts
from twinlake.server.client import LakeClient

HOSTILE = "<img src=x onerror=document.title=1>"
PORT = 18070
URL = f"http://127.0.0.1:{PORT}"
VERSION = {
    "table": "sales", "version": "v-1", "position": {"orders": 7}, "lag_records": 0, "lag_seconds": 0.04,
    "step": 12, "segment": 3, "stalled": False, "lost": False, "error": None, "watermark": None,
    "paused": None,
}  # fmt: skip
CERTIFICATE = {
    "table": "sales", "version": "v-1", "equal": True, "covers": "all of history", "rows_compared": 5,
    "created_at": "2026-01-31T11:58:00Z", "raises": None, "proof": "", "disputed": False,
}  # fmt: skip
RELEASE = {
    "number": 4, "kind": "promote", "created_at": "2026-01-31T10:00:00Z", "approved_by": "anna",
    "tables": {"sales": "v-1"},
}  # fmt: skip
STATUS: dict[str, Any] = {
    "topics": [{**TOPIC, "lag_records": 0, "paused": None}], "versions": [VERSION], "release": RELEASE,
    "certificates": [CERTIFICATE], "changelogs": [], "spark": None, "damaged": [], "paused": [],
}  # fmt: skip
PARTS = [{**PART, "service": name, "part": name} for name in ("broker", "lake", "sql")]
RUNNING = {
    "id": "j1", "kind": "rebuild", "params": {"table": "sales"}, "state": "running",
    "progress": {"done": 3, "total": 10, "unit": "windows", "message": "", "eta_s": 7.0},
    "created_at": "2026-01-31T11:59:00Z", "started_at": "2026-01-31T11:59:01Z",
}  # fmt: skip


@dataclass
class World:
    """What the console's servers say, and what it has asked of them. `now` is its clock."""

    status: Any = field(default_factory=lambda: STATUS)
    parts: list[dict[str, Any]] = field(default_factory=lambda: PARTS)
    jobs: list[dict[str, Any]] = field(default_factory=lambda: [RUNNING])
    releases: list[dict[str, Any]] = field(default_factory=release_answers.releases)
    plan: PlanFacts = field(default_factory=release_answers.facts)
    topics: list[dict[str, Any]] = field(default_factory=lambda: [topic_answers.ACTIVE.to_json()])
    topic: dict[str, Any] = field(default_factory=topic_answers.topic)
    table: dict[str, Any] = field(default_factory=table_answers.table)
    acts: list[dict[str, Any]] = field(default_factory=list)
    now: float = 1_000.0
    asked: list[str] = field(default_factory=list)
    submitted: list[dict[str, Any]] = field(default_factory=list)
    written: list[dict[str, Any]] = field(default_factory=list)
    """Of queries that are cancelled, into the audit log."""
    away: bool = False
    before: Callable[[str], Any] = lambda path: None
    """What happens before the lake server answers at this path."""
    masked: Callable[[Any], Any] = lambda told: told
    """What is done to an answer about releases, plans, tables and topics before it is given."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """The lake server."""
        path = request.url.path
        self.asked.append(f"{request.method} {path}")
        self.before(path)
        if self.away:
            raise httpx.ConnectError("nobody listens")
        if path == "/status":
            return httpx.Response(200, json=self.status)
        if path == "/jobs" and request.method == "POST":
            return self._submit(json.loads(request.content))
        if path == "/jobs":
            key = request.url.params.get("key")
            return httpx.Response(200, json=[job for job in self.jobs if key in (None, job.get("key"))])
        if path.startswith("/audit/queries/"):
            self.written.append({"id": path.split("/")[3], **json.loads(request.content)})
            return httpx.Response(200, json={})
        if path == "/audit":
            return httpx.Response(200, json=self.masked(self.acts))
        if path == "/releases":
            number = request.url.params.get("number")
            found = [one for one in self.releases if number in (None, str(one["number"]))]
            if number is not None and not found:
                return _none("release")
            return httpx.Response(200, json=self.masked(found))
        if path == "/plans":
            return httpx.Response(200, json=self.masked([self.plan.summary()]))
        if path.startswith("/tables/"):
            known = path == "/tables/sales"
            return httpx.Response(200, json=self.masked(self.table)) if known else _none("table")
        if path == "/topics":
            return httpx.Response(200, json=self.masked(self.topics))
        if path.startswith("/topics/"):
            known = path == "/topics/orders"
            return httpx.Response(200, json=self.masked(self.topic)) if known else _none("topic")
        if path.startswith("/plans/"):
            known = path == f"/plans/{self.plan.plan.id}"
            return httpx.Response(200, json=self.masked(self.plan.to_json())) if known else _none("plan")
        one = next((job for job in self.jobs if job["id"] == path.split("/")[2]), None)
        if one is None:
            return httpx.Response(404, json={"error": "NotFoundError", "what": "there is no such job"})
        return httpx.Response(200, json=one)

    def _submit(self, asked: dict[str, Any]) -> httpx.Response:
        """As the real one: what has been asked for by this key is not another job."""
        if asked["key"] not in [one["key"] for one in self.submitted]:
            self.submitted.append(asked)
            made = {**RUNNING, "id": f"new{len(self.submitted)}", "kind": asked["kind"]}
            self.jobs = [*self.jobs, {**made, "params": asked["params"]}]
        return httpx.Response(202, json=self.jobs[-1])

    def services(self) -> Services:
        self.asked.append("services")
        if self.away:
            raise UnreachableError("Twinlake is not running")
        return Services(parts=self.parts, supervisor=None, disk_free=60 << 30, disk_total=100 << 30)


def hostile(value: Any, kept: Collection[str] = ("counts", "state", "id")) -> Any:
    """The same keys, numbers and times, and these; every other text would run as part of a page."""
    if isinstance(value, dict):
        return {key: value[key] if key in kept else hostile(value[key], kept) for key in value}
    if isinstance(value, (list, tuple)):
        return [hostile(one, kept) for one in value]
    is_time = isinstance(value, str) and value[:3] == "202"
    return HOSTILE if isinstance(value, str) and not is_time else value


def _none(what: str) -> httpx.Response:
    return httpx.Response(404, json={"error": "NotFoundError", "what": f"there is no such {what}"})


@dataclass
class Browser:
    """One browser; it keeps cookies, and fills in forms as they are."""

    client: TestClient

    def get(self, path: str, **more: Any) -> httpx.Response:
        found: httpx.Response = self.client.get(path, **more)
        return found

    def token(self, path: str) -> str:
        found = re.search(r'name="form_token" value="([^"]+)"', self.get(path).text)
        assert found
        return found[1]

    def send(self, path: str, of_page: str, **fields: str) -> httpx.Response:
        sent = {"form_token": self.token(of_page), **fields}
        found: httpx.Response = self.client.post(path, data=sent)
        return found

    def fill(self, path: str, **fields: str) -> httpx.Response:
        """The form of an act as it is shown now, filled in, for `client.post`."""
        found: httpx.Response = self.client.post(path, data={**self.hidden(path), **fields})
        return found

    def hidden(self, path: str) -> dict[str, str]:
        """What the form there carries."""
        main = self.get(path).text.partition("<main")[2]
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', main))

    def sign_in(self, name: str, password: str) -> httpx.Response:
        return self.send("/sign-in", "/sign-in", name=name, password=password)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def passwords(tmp_path: Path) -> dict[str, str]:
    """Of a user of each role."""
    file = tmp_path / "access" / "users"
    return {name: users.add(file, f"the-{name}", name) for name in users.ROLES}


@pytest.fixture
def console(tmp_path: Path, world: World, passwords: dict[str, str]) -> Console:
    settings = Settings(home=tmp_path)
    Addresses(sql_url="http://127.0.0.1:1", api_url="http://lake").save(settings.services_file)
    client = LakeClient("http://lake", "token", httpx.MockTransport(world))
    return Console.of(
        settings, tmp_path / "access" / "users", PORT, False, lambda: parse_moment("2026-01-31T12:00:00Z"),
        client=lambda: client, services=world.services, clock=lambda: world.now,
    )  # fmt: skip


@pytest.fixture
def browser(console: Console) -> Callable[[], Browser]:
    """Makes another browser."""
    app = build_app(console)
    return lambda: Browser(TestClient(app, base_url=URL, follow_redirects=True))


@pytest.fixture
def signed_in(browser: Callable[[], Browser], passwords: dict[str, str]) -> Callable[[str], Browser]:
    """A browser in which the user of this role is signed in."""

    def sign_in(role: str) -> Browser:
        made = browser()
        assert made.sign_in(f"the-{role}", passwords[role]).url.path == "/"
        return made

    return sign_in
