"""Every socket that listens after `twinlake up` is in docs/security.md, and refuses who may not pass."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.faults.twinlake import Twinlake
from tests.knocking import NAMED, OF_JAVA, OF_PYTHON, knock
from tests.processes import of_home
from tests.project import PROJECT
from twinlake.services.supervise import record
from twinlake.services.supervise.process import in_session

pytestmark = pytest.mark.services
OPEN = {"broker", "controller", "registry", "registry_management"}
"""The exceptions, each with its reason in docs/security.md."""
ONLY_BY_SETTING = {"broker_admin", "sql_tls", "jdbc_tls", "flight_tls"}


@dataclass(frozen=True, kw_only=True)
class Listener:
    process: psutil.Process
    port: int
    name: str
    """That of its port, '' for one that nobody chose."""


@pytest.fixture(scope="module")
def twinlake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twinlake]:
    command = Twinlake(tmp_path_factory.mktemp("sockets"))
    try:
        command("up")
        yield command
    finally:
        command("down")


@pytest.fixture(scope="module")
def processes(twinlake: Twinlake) -> list[psutil.Process]:
    """Those that carry the mark of this home, and those whose environment cannot be read any more."""
    found = set(of_home(twinlake.settings.home))
    for file in twinlake.folders.records.glob("*.json"):
        if leader := record.load(twinlake.folders, file.stem).identity:
            found |= {psutil.Process(leader.pid), *in_session(leader)}
    return sorted(found, key=lambda process: process.pid)


@pytest.fixture(scope="module")
def listeners(twinlake: Twinlake, processes: list[psutil.Process]) -> list[Listener]:
    chosen = json.loads((twinlake.folders.run / "ports.json").read_text())
    names = {port: name for name, port in chosen.items()}
    return [
        Listener(process=process, port=one.laddr.port, name=names.get(one.laddr.port, ""))
        for process in processes
        for one in connections(process, "tcp")
        if one.status == psutil.CONN_LISTEN
    ]


def connections(process: psutil.Process, sort: str) -> list[Any]:
    """Those of a process, which may be a task's and have ended."""
    try:
        return list(process.net_connections(sort))
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def documented() -> dict[str, str]:
    """The sockets of docs/security.md, and who may pass each."""
    page = (PROJECT / "docs" / "security.md").read_text()
    chapter = re.search(r"\n## Every socket\n(.*?)\n## ", page, re.DOTALL)
    assert chapter
    rows = [line.split("|")[1:-1] for line in chapter[1].splitlines() if line.startswith("|")]
    return {row[0].strip(" `"): row[2].strip() for row in rows[2:]}


def test_every_socket_is_in_the_docs_and_refuses_another_user_who_holds_no_secret(
    listeners: list[Listener],
) -> None:
    asked = []
    for one in listeners:
        if one.name in NAMED:
            asked += [(one, one.name, words) for words in NAMED[one.name]]
        elif not one.name:
            known = OF_JAVA if one.process.name() == "java" else OF_PYTHON
            asked += [(one, name, words) for name, words in known.items()]
    answers = knock([(one.port, words.says) for one, _, words in asked])

    refused: dict[int, set[str]] = {one.port: set() for one in listeners}
    passed = []
    for (one, name, words), answer in zip(asked, answers, strict=True):
        if words.is_refused(answer):
            refused[one.port].add(name)
        elif one.name:
            passed.append((name, words.says, answer))
    assert passed == []
    unknown = [one for one in listeners if not one.name and len(refused[one.port]) != 1]
    heard = [(one.port, name, answer) for (one, name, _), answer in zip(asked, answers, strict=True)]
    assert unknown == [], heard
    found = {one.name or next(iter(refused[one.port])) for one in listeners}
    assert found == set(documented()) - ONLY_BY_SETTING


def test_who_may_pass_without_a_secret_is_said_and_why(listeners: list[Listener]) -> None:
    told = documented()

    assert {name for name, who in told.items() if who.startswith("every local user")} == OPEN
    assert {one.name for one in listeners if one.name} - set(NAMED) == OPEN


def test_all_listen_on_loopback_only_and_none_on_a_socket_of_another_sort(
    processes: list[psutil.Process],
) -> None:
    tcp = [one for process in processes for one in connections(process, "tcp")]
    datagrams = [one for process in processes for one in connections(process, "udp")]
    inodes = {line.split()[6] for line in _unix() if line.split()[3] == "00010000"}

    listening = {one.laddr.ip.removeprefix("::ffff:") for one in tcp if one.status == psutil.CONN_LISTEN}
    assert listening <= {"127.0.0.1", "::1"}
    assert datagrams == []
    assert inodes & {inode for process in processes for inode in _sockets(process)} == set()


def _unix() -> list[str]:
    return Path("/proc/net/unix").read_text().splitlines()[1:]


def _sockets(process: psutil.Process) -> Iterator[str]:
    folder = f"/proc/{process.pid}/fd"
    with suppress(OSError):  # it has ended
        for file in os.listdir(folder):
            with suppress(OSError):  # it was closed meanwhile
                if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"{folder}/{file}")):
                    yield found[1]
