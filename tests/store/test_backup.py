"""Backups in a real HDFS: what a folder of a disk keeps is kept there as well, and a busy lake server comes
back from it, with every record once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hdfs_native
import pytest
from pyspark.sql import SparkSession

from tests.kill.server import LakeProcess, lake_process
from tests.kill.views import Views, differences
from tests.project import PROJECT
from tests.small_lake.small import unpack
from tests.store.hdfs import Hdfs
from twinlake.backup.archive import Archive, Backup
from twinlake.backup.check import check
from twinlake.backup.restore import restore
from twinlake.backup.take import take, take_and_keep
from twinlake.base.errors import DamagedError, FullDiskError, UsageError
from twinlake.base.job import CancelledError, Run
from twinlake.base.location import Remote
from twinlake.config.settings import Settings
from twinlake.lake.storage import store

pytestmark = pytest.mark.faults
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RUN = Run(id="test")
RECORDS, LONG_S = 2_000, 300.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory with a lake that nobody writes to, and users."""
    home = tmp_path / "home"
    unpack(0, home)
    (home / "access").mkdir()
    (home / "access" / "users").write_text("anna:1:ab:cd:admin\n")
    return home


@pytest.fixture
def folder(lake: Remote) -> Remote:
    return lake


def taken(home: Path, folder: Remote, day: int = 0) -> Backup:
    return take(Settings(home=home), folder, RUN, lambda: NOW + timedelta(days=day))


def run(home: Path, *arguments: str, by: str = "") -> subprocess.CompletedProcess[str]:
    """As this user of the store, ourselves unless given."""
    command = [sys.executable, "-m", "twinlake", "--home", str(home), *arguments]
    environ = {**os.environ, **({"HADOOP_USER_NAME": by} if by else {})}
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, env=environ)


def told(home: Path, *arguments: str) -> Any:
    done = run(home, *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_by_the_commands_one_is_taken_read_back_and_restored(home: Path, folder: Remote) -> None:
    first = told(home, "backup", str(folder))
    made = told(home, "backup", str(folder), "--keep", "1")
    assert first["copied"] > 0 and (made["copied"], made["removed"]) == (0, [first["id"]])
    assert [one["id"] for one in told(home, "backup", "list", str(folder))] == [made["id"]]
    assert told(home, "backup", "verify", str(folder))["is_whole"]

    again = home.with_name("again")
    told(again, "restore", str(folder))

    backup = Archive(folder).load()
    for one in backup.files:
        if "/_delta_log/" not in one.path:  # a checkpoint gets a sum beside it
            assert (again / one.path).read_bytes() == (home / one.path).read_bytes(), one.path
    assert len(backup.files) > 50 and (again / "access" / "users").exists()


def test_only_its_owner_may_look_into_it(home: Path, folder: Remote) -> None:
    made = taken(home, folder)
    users = next(one for one in made.files if one.path == "access/users")
    data = next(one for one in made.files if one.is_data)
    places = [str(Archive(folder).place(one)) for one in (users, data)]
    places.append(f"{folder}/backups/{made.id}.json")
    code = (
        "import sys; from twinlake.lake.storage import store; from twinlake.base.location import Remote; "
        "store.read(Remote(sys.argv[1]))"
    )
    environ = {**os.environ, "HADOOP_USER_NAME": "nobody"}

    for place in places:
        command = [sys.executable, "-c", code, place]
        done = subprocess.run(command, env=environ, cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == 1 and "Permission denied: user=nobody" in done.stderr, place


@pytest.mark.parametrize("wrong", ["gone", "changed"])
def test_a_damaged_file_is_named_and_not_restored(home: Path, folder: Remote, wrong: str) -> None:
    made, archive, again = taken(home, folder), Archive(folder), home.with_name("again")
    place = archive.place(next(one for one in made.files if one.is_data))
    whole = store.read(place)
    if wrong == "gone":
        store.delete(place)
    else:
        store.replace_bytes(place, whole[:-1] + bytes([whole[-1] ^ 1]))

    done = run(home, "backup", "verify", str(folder))

    assert done.returncode == 1 and str(place) in done.stdout.replace("\n", "")
    with pytest.raises(DamagedError, match="is not what was written there"):
        restore(archive, made, again, again / "lake", RUN)
    assert not (again / "lake").exists()


def test_one_that_is_interrupted_is_none_and_the_next_one_is_whole(home: Path, folder: Remote) -> None:
    stop = threading.Event()
    half = Run(id="half", report=lambda one: stop.set() if one.done > one.total / 2 else None, cancelled=stop)

    with pytest.raises(CancelledError):
        take(Settings(home=home), folder, half, lambda: NOW)

    assert Archive(folder).ids() == []
    assert check(Archive(folder), taken(home, folder), RUN).is_whole


def test_another_lake_has_its_own_folder(home: Path, folder: Remote, tmp_path: Path) -> None:
    taken(home, folder)
    other = tmp_path / "other"
    unpack(0, other)
    about = json.loads((other / "lake" / "lake.json").read_text())
    (other / "lake" / "lake.json").write_text(json.dumps({**about, "id": "another"}))

    with pytest.raises(UsageError, match="has the backups of another lake"):
        taken(other, folder)


def test_a_quota_that_is_used_up_is_named_and_the_backups_there_stay_whole(
    home: Path, folder: Remote, hdfs: Hdfs
) -> None:
    first = taken(home, folder)
    (home / "twinlake.toml").write_text("# other settings\n")
    hdfs.quota(folder, names=10)

    with pytest.raises(FullDiskError, match="has no room"):
        taken(home, folder, 1)

    archive = Archive(folder)
    assert archive.ids() == [first.id] and check(archive, first, RUN).is_whole
    hdfs.quota(folder, names=100_000)
    second = take_and_keep(Settings(home=home), folder, 1, RUN, lambda: NOW + timedelta(days=2))
    assert second.removed == (first.id,) and check(archive, second.backup, RUN).is_whole


@pytest.mark.parametrize("command", [["backup"], ["backup", "list"], ["backup", "verify"], ["restore"]])
def test_a_store_that_does_not_answer_is_named_with_what_to_do(home: Path, command: list[str]) -> None:
    at = home.with_name("again") if command == ["restore"] else home

    done = run(at, *command, "hdfs://127.0.0.1:1/backups")

    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    said = " ".join(done.stderr.split())
    assert "hdfs://127.0.0.1:1/backups cannot be used" in said and "start the store" in said, said


@pytest.mark.parametrize("wrong", ["it does not run", "no right to write"])
def test_a_store_that_cannot_be_used_takes_one_once_its_error_was_followed(
    home: Path, folder: Remote, hdfs: Hdfs, wrong: str
) -> None:
    user = ""
    if wrong == "it does not run":
        taken(home, folder)
        hdfs.kill("namenode")
    else:
        user = "nobody"

    refused = run(home, "backup", str(folder), by=user)
    if user:
        store.make_folder(folder)
        hdfs_native.Client(hdfs.uri).set_permission(folder.path, 0o777)
    else:
        hdfs.start()
    done = run(home, "backup", str(folder), by=user)

    said = " ".join(refused.stderr.split())
    assert refused.returncode == 3 and f"{folder} cannot be used" in said, said
    assert "start the store, and give this user the right" in said
    assert not user or "Permission denied: user=nobody" in said
    assert done.returncode == 0 and "is whole" in done.stdout, done.stderr


@pytest.fixture(params=["on a disk", "in the store"])
def server(
    request: pytest.FixtureRequest, tmp_path: Path, seed: int, hdfs: Hdfs, lake: Remote
) -> Iterator[LakeProcess]:
    """Its backups go into the store by themselves."""
    place = lake / "lake" if request.param == "in the store" else None
    with lake_process(tmp_path / "old", seed, place) as made:
        with (made.home / "twinlake.toml").open("a") as settings:
            settings.write(f'[backup]\nfolder = "{lake / "backups"}"\nkeep = 2\n')
        yield made


def test_a_lake_that_is_lost_while_it_works_comes_back_and_kafka_has_the_rest(
    server: LakeProcess, lake: Remote, spark: SparkSession
) -> None:
    server.start()
    server.produce(RECORDS)
    server.until(server.caught_up, LONG_S)
    server.release()
    first = server.do("backup")
    server.produce(RECORDS)
    second = server.do("backup")
    server.produce(RECORDS)
    server.until(server.caught_up, LONG_S)
    server.kill()
    archive, again = Archive(lake / "backups"), server.home.with_name("again")
    assert archive.ids() == [second["id"], first["id"]] and 0 < second["copied"] < second["bytes"]
    assert told(server.home, "backup", "verify")["is_whole"]
    store.delete_tree(server.lake)

    found = told(again, "restore", str(archive.folder))
    if isinstance(server.lake, Remote):
        assert found["lake"] == str(server.lake) and not (again / "lake").exists()
    else:
        server.lake = again / "lake"
    server.home, server.breakpoints = again, again / "breakpoints"
    replace(server.services, lake=str(server.lake)).save(again / "services.json")
    server.start(LONG_S)
    server.produce(RECORDS)
    server.until(server.caught_up, LONG_S)

    views = Views(spark, server.lake)
    try:
        assert differences(server, views, without_cancelled=False) == {}
        for table in ("latest_order", "sales_per_region"):
            assert server.do("verify", table=table)["equal"], table
    finally:
        views.close()
    assert len(server.do("backup")["removed"]) == 1
