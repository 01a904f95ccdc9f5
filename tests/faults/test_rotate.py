"""`twinlake rotate` on real services, while somebody produces, reads in a loop, and has long work under way:
the old secrets are refused within a minute, the new ones let in, and nothing is lost."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest

from tests.faults.twinlake import Twinlake
from tests.project import PROJECT
from twinlake.base.errors import TwinlakeError
from twinlake.base.waiting import wait_for
from twinlake.config.settings import Services
from twinlake.reading import client
from twinlake.server.client import LakeClient
from twinlake.services.rotated import ALL, NAMES
from twinlake.services.supervise import record

PARTS = ("lake", "sql", "console", "airflow")
WITHIN_S = 60.0
RECORDS = 6_000
ASKED: dict[str, Any] = {"trust_env": False, "timeout": 20, "headers": {"X-Twinlake-Query": "1"}}
LONG = "SELECT count(*) AS n FROM range(0, 300000000000, 1, 1) WHERE hash(id, id + 1) % 7 = 3"
"""Runs until it is cancelled."""


@pytest.fixture(scope="module")
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    command = Twinlake(tmp_path_factory.mktemp("twinlake"))
    try:
        command("up", "--only", ",".join(PARTS))
        yield command
    finally:
        command("down")


def command_of(twinlake: Twinlake, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "twinlake", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TWINLAKE_HOME": str(twinlake.settings.home)}, cwd=PROJECT,
    )  # fmt: skip


def answer_of(running: subprocess.Popen[str]) -> Any:
    out, errors = running.communicate(timeout=200)
    assert running.returncode == 0, out + errors
    return json.loads(out)


class Loop(threading.Thread):
    """Asks again and again with the login of services.json as it is then, as a person with a script does."""

    def __init__(self, twinlake: Twinlake) -> None:
        super().__init__(daemon=True)
        self._twinlake, self._ended = twinlake, threading.Event()
        self.answers: list[int] = []
        self.errors: list[str] = []

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                services = self._twinlake.settings.services()
                self.answers.append(count_of(services))
            except TwinlakeError as error:
                self.errors.append(str(error))
            time.sleep(0.2)

    def end(self) -> None:
        self._ended.set()
        self.join(60)


class Knocking(threading.Thread):
    """Tries the old secrets all the time, and keeps when services.json had new ones and each was refused."""

    def __init__(self, twinlake: Twinlake) -> None:
        super().__init__(daemon=True)
        self._settings, self._left = twinlake.settings, list(NAMES)
        self._old = self._settings.services()
        self.switched_at = 0.0
        self.refused_at: dict[str, float] = {}

    def run(self) -> None:
        while self._left:
            if not self.switched_at and self._settings.services().api_token != self._old.api_token:
                self.switched_at = time.monotonic()
            for name in [*self._left]:
                answers = ALL[name].opens(self._old, getattr(self._old, name))
                if answers and not any(answers):
                    self.refused_at[name] = time.monotonic()
                    self._left.remove(name)
            time.sleep(0.2)


@contextmanager
def reading(twinlake: Twinlake) -> Iterator[Loop]:
    loop = Loop(twinlake)
    loop.start()
    try:
        yield loop
    finally:
        loop.end()


def count_of(services: Services) -> int:
    return int(client.ask(services, "SELECT count(*) AS n FROM serve.orders")["rows"][0]["n"])


def lets_in_at_jdbc(services: Services) -> bool:
    """By SASL PLAIN, as Hive's clients say it: mechanism, user and password, and whether that was right."""
    port = int(services.jdbc_url.rpartition(":")[2].strip("/"))
    login = f"\0{services.sql_user}\0{services.sql_password}".encode()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for status, text in ((1, b"PLAIN"), (2, login)):
            connection.sendall(struct.pack(">BI", status, len(text)) + text)
        return connection.recv(1) == b"\x05"


def queries_of(services: Services) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(
        f"{services.sql_url}/queries", auth=services.reader, **ASKED
    ).json()
    return found


def restarts(twinlake: Twinlake) -> dict[str, int]:
    files = twinlake.settings.records_dir.glob("*.json")
    return {file.stem: record.load(twinlake.folders, file.stem).restarts for file in files}


def test_secrets_are_rotated_while_everything_runs_and_nothing_is_lost(twinlake: Twinlake) -> None:
    settings, before = twinlake.settings, twinlake.settings.services()
    started = restarts(twinlake)
    follows = LakeClient.of(before, read_again=settings.services)

    def ask_long() -> None:
        with suppress(TwinlakeError):  # it is cancelled
            client.ask(before, LONG)

    with reading(twinlake) as loop:
        sends = command_of(
            twinlake, "produce", "orders", "--count", str(RECORDS), "--rate", "100", "--run", "turn", "--json"
        )
        long = threading.Thread(target=ask_long, daemon=True)
        long.start()
        wait_for("the first answers", lambda: True if len(loop.answers) > 2 else None, 60)
        knocking, began = Knocking(twinlake), time.monotonic()
        knocking.start()
        done = answer_of(command_of(twinlake, "rotate", "--reason", "somebody left", "--json"))["rotated"]
        took_s = time.monotonic() - began
        after = settings.services()
        for name in NAMES:
            old, new = getattr(before, name), getattr(after, name)
            assert old != new
            refused, let_in = ALL[name].opens(after, old), ALL[name].opens(after, new)
            assert refused and not any(refused) and let_in and all(let_in), name
        assert lets_in_at_jdbc(after) and not lets_in_at_jdbc(before)
        knocking.join(30)
        (running,) = [one for one in queries_of(after) if one["sql"] == LONG]
        httpx.post(f"{after.sql_url}/queries/{running['id']}/cancel", auth=after.reader, **ASKED)
        sent = answer_of(sends)
        wait_for("all records", lambda: True if count_of(settings.services()) == RECORDS else None, 120)
        wait_for("the loop to see them", lambda: True if loop.answers[-1] == RECORDS else None, 30)
        long.join(60)

    refused_s = {name: round(at - knocking.switched_at, 1) for name, at in knocking.refused_at.items()}
    print(json.dumps({"took_s": round(took_s, 1), "switched_s": round(knocking.switched_at - began, 1),
                      "refused_s": refused_s, "rotated": done, "answers": len(loop.answers)}))  # fmt: skip
    assert {*refused_s} == {*NAMES} and max(refused_s.values()) < WITHIN_S
    assert [one["name"] for one in done] == list(NAMES) and all(one["answered"] for one in done)
    assert sent["acknowledged"] == RECORDS
    assert loop.errors == [] and loop.answers == sorted(loop.answers)
    assert running["seconds"] > took_s, "a statement of before is not ended"
    assert follows.status()["release"], "who follows a job with the old token reads the new one"
    assert restarts(twinlake) == started, "nothing was started again"


def test_it_is_in_the_audit_log_by_names_alone(twinlake: Twinlake) -> None:
    acts = answer_of(command_of(twinlake, "audit", "--act", "rotate", "--json"))

    (act,) = acts
    assert act["what"] == {"secrets": ", ".join(NAMES)} and act["why"] == "somebody left"
    services = twinlake.settings.services()
    assert not any(getattr(services, name) in json.dumps(act) for name in NAMES)


def test_a_killed_one_leaves_valid_secrets_and_is_completed(twinlake: Twinlake) -> None:
    before = twinlake.settings.services()
    running = command_of(twinlake, "rotate", "--only", "api_token,sql_password", "--grace", "40")

    def is_switched() -> bool | None:
        return True if twinlake.settings.services().api_token != before.api_token else None

    wait_for("the new ones", is_switched, 60)
    running.kill()
    running.wait()

    between = twinlake.settings.services()
    status = command_of(twinlake, "status")
    said = status.communicate(timeout=60)[0]
    assert "a rotation of secrets was not finished" in said
    for name in ("api_token", "sql_password"):
        assert all(ALL[name].opens(between, getattr(between, name))), "the commands still work"
        assert all(ALL[name].opens(between, getattr(before, name))), "until it is completed"
    assert lets_in_at_jdbc(between) and lets_in_at_jdbc(before)

    done = answer_of(command_of(twinlake, "rotate", "--only", "metrics_password", "--grace", "1", "--json"))

    assert [one["name"] for one in done["rotated"]] == ["api_token", "sql_password", "metrics_password"]
    after = twinlake.settings.services()
    for name in ("api_token", "sql_password"):
        for old in (before, between):
            assert not any(ALL[name].opens(after, getattr(old, name))), name
        assert all(ALL[name].opens(after, getattr(after, name)))


def test_what_starts_again_knows_the_new_ones(twinlake: Twinlake) -> None:
    services, tried = twinlake.settings.services(), record.load(twinlake.folders, "lake").restarts

    twinlake.python("lake").kill()

    wait_for("the lake server", lambda: twinlake.ready_again("lake", tried + 1), 180)
    assert twinlake.settings.services() == services
    assert all(ALL["api_token"].opens(services, services.api_token))
    assert httpx.get(f"{services.api_url}/jobs", trust_env=False).status_code == 401
