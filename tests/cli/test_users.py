"""`twinlake users`: the password is on stdout alone, once; the reader of the commands stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli.app import build_app
from twinlake.config import users
from twinlake.config.settings import Services

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
    assert {"name": "ben", "role": "operator"} in listed and password not in str(listed)


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
