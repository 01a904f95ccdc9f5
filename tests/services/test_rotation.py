"""Rotation of secrets, by the files that servers ask: the new one gets in, the old one no more, and a kill at
any write leaves those of services.json valid."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.project import OURS
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.passwords import verify
from twinlake.config import users
from twinlake.config.settings import Services, Settings
from twinlake.server.tokens import Tokens
from twinlake.services import metrics
from twinlake.services.folders import folders_of
from twinlake.services.rotated import ALL, NAMES, Secret
from twinlake.services.rotation import Rotation, unfinished, unfinished_error
from twinlake.services.sql import hand_over, users_file

FIRST = Services(
    api_token="token", sql_user="analyst", sql_password="reader", console_user="admin",
    console_password="person", metrics_user="metrics", metrics_password="scrape", airflow_user="admin",
    airflow_password="flow",
)  # fmt: skip


class Killed(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


class Home:
    """A data directory with its secrets, and what its servers say to each: by the files that they read."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(home=folder, in_project=OURS)
        self.folders = folders_of(self.settings)
        self.folders.make()
        FIRST.save(self.settings.services_file)
        hand_over(FIRST, self.folders)
        metrics.hand_over(FIRST, self.folders)
        ALL["airflow_password"].accept(self.settings, "", "flow")
        self.lake_server = Tokens(self.settings.services_file)
        self.known = {name: replace(one, opens=self._asked(name)) for name, one in ALL.items()}
        self.made = 0

    @property
    def now(self) -> Services:
        return self.settings.services()

    def rotation(self, **more: Any) -> Rotation:
        return Rotation(
            settings=self.settings, known=self.known, sleep=lambda s: None, make=self._make, **more
        )

    def opens(self, name: str, secret: str) -> bool:
        folders, by_name = self.folders, {"sql_password": "analyst", "console_password": "admin"}
        if name == "api_token":
            return secret in self.lake_server()
        if name == "metrics_password":
            lines = metrics.password_file(folders).read_text().splitlines()
            return any(verify(line, "metrics", secret) for line in lines)
        if name == "airflow_password":
            return bool(
                json.loads((folders.home / "airflow" / "passwords.json").read_text())["admin"] == secret
            )
        return users.admitted(users_file(folders), by_name[name], secret) is not None

    def _asked(self, name: str) -> Any:
        return lambda services, secret: (self.opens(name, secret),)

    def _make(self) -> str:
        self.made += 1
        return f"new-{self.made}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def secrets_of(services: Services) -> dict[str, str]:
    return {name: getattr(services, name) for name in NAMES}


def test_every_secret_is_another_and_the_old_ones_open_nothing(home: Home) -> None:
    done = home.rotation().run()

    assert [one.name for one in done] == list(NAMES) and all(one.answered for one in done)
    new = secrets_of(home.now)
    assert set(new.values()) == {f"new-{number}" for number in range(1, 6)}
    for name, old in secrets_of(FIRST).items():
        assert home.opens(name, new[name]) and not home.opens(name, old)
    first: dict[str, Any] = secrets_of(FIRST)
    assert replace(home.now, **first) == FIRST, "nothing else has changed"


def test_both_hold_while_the_readers_take_the_new_one(home: Home) -> None:
    during: list[tuple[str, bool, bool]] = []

    def look(seconds: float) -> None:
        for name in NAMES:
            old, new = getattr(FIRST, name), getattr(home.now, name)
            during.append((name, home.opens(name, old), home.opens(name, new)))

    replace(home.rotation(grace_s=7), sleep=look).run()

    # Airflow knows one password a user; nothing of Twinlake's logs in there
    assert during == [(name, name != "airflow_password", True) for name in NAMES]


def test_only_the_named_ones_are_rotated(home: Home) -> None:
    home.rotation().run(["metrics_password"])

    assert home.now == replace(FIRST, metrics_password="new-1")


def writes_of_a_whole_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    counted, replaced = [], os.replace

    def count(*names: Any) -> None:
        counted.append(names)
        replaced(*names)

    whole = Home(folder)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", count)
        whole.rotation().run()
    return len(counted)


def test_a_kill_after_any_write_leaves_valid_secrets_and_the_next_run_completes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, replaced = writes_of_a_whole_run(tmp_path / "whole", monkeypatch), os.replace
    assert writes > 10

    for kill_at in range(1, writes + 1):
        home, met = Home(tmp_path / f"{kill_at}"), 0

        def write(*names: Any, kill_at: int = kill_at) -> None:
            nonlocal met
            met += 1
            replaced(*names)
            if met == kill_at:
                raise Killed

        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(os, "replace", write)
            home.rotation().run()

        for name, secret in secrets_of(home.now).items():
            # what no command uses may be Airflow's own already
            assert home.opens(name, secret) or name == "airflow_password", (
                f"killed at write {kill_at}: {name}"
            )
        begun = secrets_of(home.now)
        # whichever were asked for: what was begun is completed
        home.rotation().run(NAMES if not unfinished(home.folders) else ["metrics_password"])
        assert unfinished(home.folders) == [] and home.now.api_tokens_rotating == []
        for name, secret in secrets_of(home.now).items():
            assert home.opens(name, secret), f"killed at write {kill_at}: {name}"
            assert not home.opens(name, getattr(FIRST, name)), f"killed at write {kill_at}: {name}"
            assert begun[name] != secret and not home.opens(name, begun[name])


def test_an_unfinished_rotation_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(seconds: float) -> None:
        raise Killed

    with pytest.raises(Killed):
        replace(home.rotation(), sleep=killed).run(["sql_password"])

    said = unfinished_error(home.folders)
    assert said and "sql_password" in said.why and "new-" not in str(said)
    home.rotation().run(["api_token"])
    assert unfinished_error(home.folders) is None


def test_a_server_that_takes_no_new_one_changes_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinlake.services.rotation.ASKED_S", 0.2)
    deaf: Secret = replace(ALL["metrics_password"], opens=lambda services, secret: (secret == "scrape",))
    home.known["metrics_password"] = deaf

    with pytest.raises(TwinlakeError, match="metrics_password was not rotated"):
        home.rotation().run(["sql_password", "metrics_password"])

    assert home.now == FIRST and unfinished(home.folders) == []
    assert home.opens("sql_password", "reader") and not home.opens("sql_password", "new-1")


def test_where_a_server_takes_none_a_password_that_a_person_got_meanwhile_still_holds(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlake.services.rotation.ASKED_S", 0.2)
    made: list[str] = []

    def deaf(services: Services, secret: str) -> tuple[bool, ...]:
        if not made:  # `twinlake users password admin`, beside it
            made.append(users.new_password(users_file(home.folders), "admin"))
            replace(home.now, console_password=made[0]).save(home.settings.services_file)
        return (secret == "scrape",)

    home.known["metrics_password"] = replace(ALL["metrics_password"], opens=deaf)

    with pytest.raises(TwinlakeError, match="metrics_password was not rotated"):
        home.rotation().run(["console_password", "metrics_password"])

    assert home.now == replace(FIRST, console_password=made[0]) and unfinished(home.folders) == []
    assert home.opens("console_password", made[0]) and not home.opens("console_password", "person")


def test_what_is_refused_changes_nothing(home: Home) -> None:
    def refuse(names: Any) -> None:
        raise UsageError("no", "", "")

    with pytest.raises(UsageError, match="no"):
        home.rotation(audit=refuse).run()
    with pytest.raises(UsageError, match="there is no secret pasword"):
        home.rotation().run(["pasword"])
    users.remove(users_file(home.folders), "admin")
    with pytest.raises(UsageError, match="console_password cannot be rotated"):
        home.rotation().run(["console_password"])

    assert home.now == FIRST and unfinished(home.folders) == []
    said: list[str] = []
    home.rotation(say=said.append).run()
    assert any("console_password is left as it is" in one for one in said)
    assert home.now.console_password == "person"


def test_the_audit_gets_names_before_anything_is_done_and_no_secret(home: Home) -> None:
    heard: list[Any] = []

    home.rotation(audit=lambda names: heard.append((list(names), home.now))).run(
        ["api_token", "sql_password"]
    )

    assert heard == [(["api_token", "sql_password"], FIRST)]


def test_without_servers_nobody_waits(home: Home) -> None:
    home.known = {name: replace(one, opens=lambda services, secret: ()) for name, one in ALL.items()}
    slept: list[float] = []

    done = replace(home.rotation(), sleep=slept.append).run()

    assert slept == [] and not any(one.answered for one in done)
    assert all(home.opens(name, secret) for name, secret in secrets_of(home.now).items())


def test_who_is_disabled_keeps_nothing_else_from_being_rotated(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twinlake.services.rotation.ASKED_S", 0.2)
    users.set_disabled(users_file(home.folders), "admin", True)
    said: list[str] = []

    home.rotation(say=said.append).run()

    assert any("console_password is left as it is: admin is disabled" in one for one in said)
    assert home.now.console_password == "person" and not home.opens("console_password", "person")
    for name in set(NAMES) - {"console_password"}:
        assert home.opens(name, getattr(home.now, name)) and not home.opens(name, getattr(FIRST, name))


def test_who_is_disabled_after_a_rotation_was_killed_is_not_let_in_by_the_old_one_once_enabled(
    home: Home,
) -> None:
    def killed(seconds: float) -> None:
        raise Killed

    with pytest.raises(Killed):
        replace(home.rotation(), sleep=killed).run(["console_password"])
    users.set_disabled(users_file(home.folders), "admin", True)

    home.rotation().run(["metrics_password"])

    users.set_disabled(users_file(home.folders), "admin", False)
    assert unfinished(home.folders) == []
    assert home.opens("console_password", home.now.console_password)
    assert not home.opens("console_password", "person")


def test_a_user_who_is_removed_meanwhile_leaves_no_old_secret_of_others_accepted(home: Home) -> None:
    def remove(seconds: float) -> None:
        users.remove(users_file(home.folders), "admin")

    replace(home.rotation(), sleep=remove).run()

    assert unfinished(home.folders) == []
    for name in set(NAMES) - {"console_password"}:
        assert home.opens(name, getattr(home.now, name)) and not home.opens(name, getattr(FIRST, name))
    assert not home.opens("console_password", home.now.console_password)


def test_a_password_that_a_person_gets_meanwhile_is_the_one_that_holds(home: Home) -> None:
    made: list[str] = []

    def ask(services: Services, secret: str) -> tuple[bool, ...]:
        found = home.opens("console_password", secret)
        if not made:  # `twinlake users password admin`, beside it
            made.append(users.new_password(users_file(home.folders), "admin"))
            replace(home.now, console_password=made[0]).save(home.settings.services_file)
        return (found,)

    home.known["console_password"] = replace(home.known["console_password"], opens=ask)

    home.rotation().run()

    assert home.now.console_password == made[0] and home.opens("console_password", made[0])
    for name in NAMES:
        assert home.opens(name, getattr(home.now, name)) and not home.opens(name, getattr(FIRST, name))
