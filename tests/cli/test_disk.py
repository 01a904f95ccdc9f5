"""`twinlake status --disk`, as somebody types it: the figures add up to what `du` says, whatever is there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.base.test_disk import du
from tests.cli.json_shapes import wrong
from tests.small_lake.small import unpack
from twinlake.base.location import Remote
from twinlake.cli.app import build_app
from twinlake.cli.disk import size, usage
from twinlake.config.settings import Settings
from twinlake.lake.storage import store
from twinlake.reference.json_output import COMMANDS
from twinlake.services.folders import Folders
from twinlake.services.upgrade import kept
from twinlake.services.upgrade.kept import Lakes


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: None) -> Path:
    """A data directory with a lake, and what services leave there."""
    home = tmp_path / "home"
    unpack(0, home)
    for path, many in {
        "kafka/data/orders-0/00.log": 90_000, "kafka/data/orders-1/00.log": 50_000,
        "kafka/data/my-topic-10/00.log": 10_000, "kafka/data/__consumer_offsets-3/00.log": 5_000,
        "kafka/data/meta.properties": 90, "kafka/server.properties": 900, "registry/schemas.mv.db": 30_000,
        "airflow/airflow.db": 200_000, "sql/local/blockmgr/1": 70_000, "logs/lake.log": 40_000,
        "logs/lake.log.1": 4_000, "run/history/2026.jsonl": 8_000, "run/spark/lake/1": 60_000,
        "run/ports.json": 100, "twinlake.toml": 0, "access/users": 200, "mine.txt": 20_000,
    }.items():  # fmt: skip
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_bytes(b"x" * many)
    monkeypatch.setenv("TWINLAKE_HOME", str(home))
    return home


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["status", "--disk", *arguments])


def told() -> dict[str, Any]:
    done = run("--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    assert wrong(COMMANDS["status --disk"], found) == []
    return found


def place(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in found["places"] if one["place"] == name)


def by_kind(found: dict[str, Any], name: str = "data directory") -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in place(found, name)["parts"]:
        sums[one["kind"]] = sums.get(one["kind"], 0) + one["bytes"]
    return sums


def test_what_an_upgrade_keeps_is_counted_once_and_its_end_frees_it(home: Path) -> None:
    lakes, folders = Lakes.of(home / "lake"), Folders(home=home)
    before = by_kind(told())
    kept.keep(lakes, folders)
    found = told()
    sums = by_kind(found)

    assert sum(sums.values()) == place(found, "data directory")["bytes"] == du(home)
    assert {kind: sums[kind] for kind in ("log", "table", "lake")} == {
        kind: before[kind] for kind in ("log", "table", "lake")
    }
    (freeable,) = [one for one in found["freeable"] if one["by"] == "upgrade"]
    assert freeable["bytes"] == sums["kept"] and freeable["command"] == "twinlake upgrade --done"
    assert freeable["what"] == ["lake.before", "upgrade"]
    assert "`twinlake upgrade --done` frees" in run().stdout
    shutil.rmtree(lakes.before)
    shutil.rmtree(folders.upgrade)
    assert du(home) == sum(sums.values()) - freeable["bytes"]


def test_the_parts_add_up_to_what_du_says(home: Path) -> None:
    found = told()
    sums = by_kind(found)

    assert sum(sums.values()) == place(found, "data directory")["bytes"] == du(home)
    whole = {"kafka": "kafka", "registry": "registry", "airflow": "airflow", "sql": "sql", "logs": "logs",
             "history": "run/history", "scratch": "run/spark"}  # fmt: skip
    assert {kind: sums[kind] for kind in whole} == {kind: du(home / at) for kind, at in whole.items()}
    assert sum(sums[kind] for kind in ("log", "table", "lake")) == du(home / "lake")
    parts = place(found, "data directory")["parts"]
    topics = {one["name"]: one["bytes"] for one in parts if one["kind"] == "kafka"}
    assert {*topics} == {"", "orders", "my-topic", "__consumer_offsets"}
    assert topics["orders"] == sum(du(home / "kafka" / "data" / f"orders-{number}") for number in (0, 1))
    assert place(found, "data directory")["free_bytes"] <= shutil.disk_usage(home).total
    assert (found["unknown"], found["unreadable"]) == ([], {})


def test_a_person_sees_the_same_with_the_commands_that_free_something(home: Path) -> None:
    done = run()

    assert done.exit_code == 0, done.output
    for words in (f"data directory {home}: {size(du(home))}; ", "versions of tables", "sales_per_region",
                  "kept by release 1", "live", "Kafka", "my-topic", "retire: there is nothing to let go",
                  "`twinlake maintain` frees "):  # fmt: skip
        assert words in done.stdout, words


def test_nothing_is_written_and_nothing_is_made(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    told()
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before

    monkeypatch.setenv("TWINLAKE_HOME", str(home.parent / "none"))
    found = told()
    assert place(found, "data directory")["bytes"] == 0 and not (home.parent / "none").exists()
    assert "there is nothing to let go" in run().stdout


def test_a_lake_elsewhere_is_a_place_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = home.parent / "elsewhere"
    (home / "lake").rename(other)
    monkeypatch.setenv("TWINLAKE_LAKE_URI", f"file://{other}")

    found = told()

    assert place(found, "lake")["bytes"] == sum(by_kind(found, "lake").values()) == du(other)
    assert place(found, "data directory")["bytes"] == du(home)
    assert not by_kind(found).keys() & {"log", "table", "lake"}


def test_a_lake_inside_the_data_directory_by_another_name_is_counted_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "deep").mkdir()
    (home / "lake").rename(home / "deep" / "mine")
    monkeypatch.setenv("TWINLAKE_LAKE_URI", f"file://{home}/deep/mine")

    found = told()

    assert place(found, "data directory")["bytes"] == sum(by_kind(found).values()) == du(home)
    assert {one["place"] for one in found["places"]} == {"data directory", "jars"}


def test_a_link_to_another_disk_is_followed_to_the_lake_alone(home: Path) -> None:
    other = home.parent / "elsewhere"
    (home / "lake").rename(other)
    (home / "lake").symlink_to(other)
    (home / "kafka" / "link").symlink_to(home.parent)

    found = told()

    assert sum(by_kind(found)[kind] for kind in ("log", "table", "lake")) == du(other)
    assert by_kind(found)["kafka"] == du(home / "kafka")


def test_a_store_that_does_not_answer_is_not_known_and_the_rest_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone:
        def tree(self, folder: Remote) -> Any:
            raise OSError(None, "nobody answers")

    monkeypatch.setattr(store, "_connected", lambda address: Gone())
    monkeypatch.setenv("TWINLAKE_LAKE_URI", "hdfs://name-node:8020/lake")
    shutil.rmtree(home / "lake")

    found, shown = told(), run().stdout

    assert place(found, "lake")["bytes"] is None and place(found, "data directory")["bytes"] == du(home)
    assert "hdfs://name-node:8020/lake" in found["unknown"][0]["what"]
    assert "lake hdfs://name-node:8020/lake: not known how much" in shown


def test_a_lake_in_a_store_is_as_large_as_its_listing_says(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its lengths: how many copies the store keeps of each is its own affair."""
    files = [file for file in (home / "lake").rglob("*") if file.is_file()]
    listed = {str(file.relative_to(home / "lake")): store.LOCAL.stat(file) for file in files}
    other = home.parent / "elsewhere"
    (home / "lake").rename(other)

    class Listed:
        """Its files are those of a folder of this machine."""

        def __getattr__(self, name: str) -> Any:
            def ask(at: Remote) -> Any:
                return getattr(store.LOCAL, name)(Path(at.path.replace("/lake", str(other), 1)))

            return (lambda folder: listed) if name == "tree" else ask

    monkeypatch.setattr(store, "_connected", lambda address: Listed())
    monkeypatch.setenv("TWINLAKE_LAKE_URI", "hdfs://name-node:8020/lake")

    found = told()

    assert place(found, "lake")["bytes"] == sum(file.bytes for file in listed.values())
    states = {one["state"] for one in place(found, "lake")["parts"] if one["kind"] == "table"}
    assert states == {"live", "kept"} and found["freeable"][1]["bytes"] > 0
    assert place(found, "lake")["free_bytes"] is None


def test_files_that_go_while_it_counts_do_no_harm(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is dropped after it was listed, and before it is read."""
    rows = home / "lake" / "tables" / "totals"
    listed = store.LOCAL.names

    def names(folder: Path) -> list[str]:
        if folder == home / "lake" / "tables":
            found = listed(folder)
            shutil.rmtree(rows)
            return found
        return listed(folder)

    monkeypatch.setattr(store.LOCAL, "names", names)
    found = usage(Settings(home=home))

    assert found.unknown == [] and not rows.exists()


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (4_116_480, "4.1 MB"), (5 * 10**14, "500.0 TB")],
)
def test_sizes_are_read_as_disks_are_sold(number: int, text: str) -> None:
    assert size(number) == text


def test_the_reader_s_rights_are_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def refused(folder: Any) -> Any:
        if str(folder).endswith("airflow"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refused)

    assert told()["unreadable"] == {str(home / "airflow"): "Permission denied"}
    assert f"not counted: {home / 'airflow'} (Permission denied)" in run().stdout
