"""The job `backup` of a real lake server, and the DAG that asks for it every night."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.kill.server import LakeProcess, lake_process
from twinlake.backup.archive import Archive
from twinlake.backup.check import check
from twinlake.base.errors import TwinlakeError, UsageError
from twinlake.base.job import Asker, CancelledError, Run

pytestmark = [pytest.mark.faults, pytest.mark.services]
ANNA = Asker(by="anna", via="console")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeProcess]:
    """With a release, and a folder for its backups in which the two newest stay."""
    folder = tmp_path_factory.mktemp("job")
    with lake_process(folder / "lake") as made:
        with (made.home / "twinlake.toml").open("a") as settings:
            settings.write(f'[backup]\nfolder = "{folder / "backups"}"\nkeep = 2\n')
        made.start()
        made.produce(2_000)
        made.until(made.caught_up)
        made.release()
        yield made


@pytest.fixture
def archive(server: LakeProcess) -> Archive:
    return Archive(server.home.parent.parent / "backups")


def state(server: LakeProcess) -> dict[str, Any]:
    found: dict[str, Any] = server.client.status()["backup"]
    return found


def test_it_takes_one_says_how_far_it_is_and_leaves_the_newest(server: LakeProcess, archive: Archive) -> None:
    server.until(lambda: state(server)["since"] is not None)  # it looks twice a minute
    before = state(server)
    jobs = [server.client.submit("backup", {}, asker=ANNA) for _ in range(3)]
    made = [server.client.follow(job.id) for job in jobs]
    results = [job.succeeded() for job in made]
    newest = max(archive.all(), key=lambda one: one.made_at)
    server.until(lambda: state(server)["newest"] == newest.made_at)

    assert before["newest"] is None and before["since"] and before["failed"] is None
    assert [len(one["removed"]) for one in results] == [0, 0, 1]
    assert archive.ids() == [results[2]["id"], results[1]["id"]]
    assert results[0]["copied"] > results[2]["copied"], "what was there is not copied again"
    progress = made[0].progress
    assert progress["unit"] == "bytes" and progress["done"] == progress["total"] > 0, progress
    assert newest.release == 1 and check(archive, newest, Run(id="t")).is_whole
    acts = [one for one in _get(server, "/audit") if one["act"] == "backup"]
    assert {(one["who"], one["via"], one["outcome"]) for one in acts} == {("anna", "console", "succeeded")}


@pytest.mark.parametrize("params", [{"folder": "/tmp/mine"}, {"keep": 1}, {"home": "/"}])
def test_nobody_can_say_where_it_goes(server: LakeProcess, params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the parameters of backup are wrong"):
        server.client.submit("backup", params)


def test_while_another_is_taken_it_waits_and_can_be_cancelled(server: LakeProcess, archive: Archive) -> None:
    lock = Path(f"{archive.folder}/.lock")
    known = archive.ids()
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        job = server.client.submit("backup", {}, asker=ANNA)
        server.until(lambda: server.client.job(job.id).state == "running")
        server.client.cancel(job.id, ANNA)
        ended = server.client.follow(job.id)

    assert ended.state == "cancelled" and archive.ids() == known
    with pytest.raises(CancelledError):
        ended.succeeded()
    assert state(server)["failed"] is None


def test_one_that_a_kill_has_ended_is_taken_under_the_same_key(server: LakeProcess, archive: Archive) -> None:
    with Path(f"{archive.folder}/.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        job = server.client.submit("backup", {}, key="night")
        server.until(lambda: server.client.job(job.id).state == "running")
        server.kill()
    server.start()

    assert server.client.job(job.id).state == "interrupted"
    made = server.client.follow(server.client.submit("backup", {}, key="night").id)
    assert made.id == job.id and archive.ids()[0] == made.succeeded()["id"]


def test_a_failure_is_in_the_status_until_there_is_a_newer_one(server: LakeProcess, archive: Archive) -> None:
    about = Path(f"{archive.folder}/archive.json")
    ours = about.read_text()
    about.write_text(json.dumps({**json.loads(ours), "lake_id": "another"}))
    with pytest.raises(TwinlakeError, match="has the backups of another lake"):
        server.do("backup")
    server.until(lambda: state(server)["failed"] is not None)
    failed = state(server)["failed"]
    about.write_text(ours)
    server.do("backup")
    server.until(lambda: state(server)["failed"] is None)

    assert failed["what"].endswith("has the backups of another lake")
    assert state(server)["newest"] == archive.load().made_at


def _get(server: LakeProcess, path: str) -> Any:
    token = {"Authorization": f"Bearer {server.services.api_token}"}
    return httpx.get(f"{server.services.api_url}{path}", headers=token).json()
