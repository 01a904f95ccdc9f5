"""`twinlake users`: the password is on stdout alone, once; the reader of the commands stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from twinlake.base.errors import FullDiskError, TwinlakeError, UnreachableError, UsageError
from twinlake.base.job import Asker
from twinlake.cli.app import build_app
from twinlake.config import users
from twinlake.config.settings import Services
from twinlake.server.client import LakeClient

Run = Callable[..., Result]


@pytest.fixture
def run(home: Path) -> Run:
    return lambda *words: CliRunner().invoke(build_app("users"), ["users", *words])


@pytest.fixture
def file(home: Path) -> Path:
    found = home / "access" / "users"
    users.ensure(found, {"analyst": "a", "admin": "b"}, "analyst")
    return found


def test_a_user_is_added_with_a_password_that_is_shown_once(run: Run, file: Path) -> None:
    done = run("add", "ben", "--role", "operator")

    password = done.stdout.strip()
    assert done.exit_code == 0 and users.admitted(file, "ben", password)
    listed = json.loads(run("list", "--json").stdout)
    assert {
        "name": "ben",
        "role": "operator",
        "disabled": False,
        "rights": {},
    } in listed and password not in str(listed)


def test_a_role_a_password_and_a_user_go(run: Run, file: Path) -> None:
    before = run("add", "ben").stdout.strip()

    assert run("role", "ben", "admin").exit_code == 0
    after = run("password", "ben").stdout.strip()
    assert users.admitted(file, "ben", before) is None
    assert users.load(file)["ben"].role == "admin" and users.admitted(file, "ben", after)
    assert run("remove", "ben").exit_code == 0
    assert "ben" not in users.load(file)


def test_the_commands_sign_in_by_the_first_user_s_new_password(run: Run, file: Path, home: Path) -> None:
    services = home / "services.json"
    Services(console_user="admin", console_password="b").save(services)
    run("add", "ben")

    run("password", "ben")
    before = Services.load(services).console_password
    made = run("password", "admin").stdout.strip()

    assert (before, Services.load(services).console_password) == ("b", made)
    assert users.admitted(file, "admin", made)


@pytest.mark.parametrize("command", ["remove", "password"])
def test_the_reader_of_the_commands_stays(run: Run, file: Path, command: str) -> None:
    assert isinstance(run(command, "analyst").exception, UsageError)
    assert users.admitted(file, "analyst", "a")


def test_before_anything_was_started_there_are_no_users(run: Run) -> None:
    error = run("list").exception

    assert isinstance(error, UnreachableError) and "twinlake up" in error.remedy


def test_each_change_is_in_the_audit_log_before_it_is_made(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, str | None, str | None, bool]] = []

    def take(request: httpx.Request) -> httpx.Response:
        said = json.loads(request.content)
        is_there = said["user"] in users.load(file)
        written.append((said["change"], said.get("role"), said["via"], is_there))
        return httpx.Response(200, json={})

    def client(settings: object, timeout_s: float) -> LakeClient:
        asker = Asker(by="olga", via="cli")
        return LakeClient("http://127.0.0.1:1", "token", httpx.MockTransport(take), asker=asker)

    monkeypatch.setattr("twinlake.cli.users.lake_client", client)
    for words in (
        ("add", "ben"), ("role", "ben", "operator"), ("role", "ben", "operator"), ("password", "ben"),
        ("remove", "ben"), ("remove", "ben"), ("add", "a b"),
    ):  # fmt: skip
        run(*words)

    assert written == [
        ("add", "analyst", "cli", False), ("role", "operator", "cli", True), ("password", None, "cli", True),
        ("remove", None, "cli", True),
    ]  # fmt: skip


def test_who_must_go_goes_without_a_lake_server_and_the_last_who_acts_is_named(run: Run, file: Path) -> None:
    done = run("remove", "admin")

    assert done.exit_code == 0 and "admin" not in users.load(file)
    assert "the audit log does not have this" in done.stderr
    assert "nobody can act on the console any more" in done.stderr


def test_a_lake_server_that_refuses_is_heard_unless_somebody_has_to_go(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = FullDiskError("the disk is full").to_json()
    answer = httpx.MockTransport(lambda request: httpx.Response(409, json=full))
    monkeypatch.setattr(
        "twinlake.cli.users.lake_client",
        lambda settings, timeout_s: LakeClient("http://127.0.0.1:1", "token", answer),
    )
    added, removed = run("add", "ben"), run("remove", "admin")

    assert isinstance(added.exception, FullDiskError) and "ben" not in users.load(file)
    assert removed.exit_code == 0 and "admin" not in users.load(file)


def test_rights_are_given_noted_shown_and_taken_back(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[object, ...]] = []
    monkeypatch.setattr(LakeClient, "user_changed", lambda self, *said: noted.append(said))
    Services(api_url="http://127.0.0.1:1", api_token="t").save(file.parents[1] / "services.json")
    password = run("add", "ben").stdout.strip()

    done = run(
        "rights", "ben", "--tables", "serve.sales_*", "--hide", "orders.amount", "--mask", "personal=hash",
        "--rows", "orders: region = 'a'",
    )  # fmt: skip

    said = {
        "tables": ["serve.sales_*"], "hidden": ["orders.amount"], "masks": {"personal": "hash"},
        "rows": {"orders": "region = 'a'"},
    }  # fmt: skip
    assert done.exit_code == 0 and "was not tried" in done.output
    assert json.loads(run("rights", "ben").stdout) == said and noted[-1] == ("ben", "rights", None, said)
    assert {"name": "ben", "role": "analyst", "disabled": False, "rights": said} in json.loads(
        run("list", "--json").stdout
    )
    assert "serve.sales_*" in run("list").stdout
    assert run("disable", "ben").exit_code == 0 and users.admitted(file, "ben", password) is None
    assert noted[-1][:2] == ("ben", "disable") and "disabled" in run("list").stdout
    assert run("enable", "ben").exit_code == 0 and users.admitted(file, "ben", password)
    assert run("rights", "ben", "--all").exit_code == 0 and json.loads(run("rights", "ben").stdout) == {}
    assert "ben reads everything" in run("rights", "ben").stderr


@pytest.mark.parametrize(
    "words",
    [
        ("rights", "ben", "--mask", "personal=sha1"),
        ("rights", "ben", "--all", "--hide", "a.b"),
        ("rights", "nobody"),
        ("rights", "analyst", "--hide", "a.b"),
        ("disable", "analyst"),
        ("disable", "nobody"),
    ],
)
def test_rights_that_cannot_be_change_nothing(run: Run, file: Path, words: tuple[str, ...]) -> None:
    run("add", "ben")
    before = file.read_text()

    assert isinstance(run(*words).exception, TwinlakeError)
    assert file.read_text() == before
