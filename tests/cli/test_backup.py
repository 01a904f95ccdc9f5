"""`twinlake backup` and `restore`, as somebody types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.cli.json_shapes import wrong
from tests.small_lake.small import unpack
from twinlake.cli.app import build_app
from twinlake.reference.json_output import COMMANDS


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: None) -> Path:
    home = tmp_path / "home"
    unpack(0, home)
    monkeypatch.setenv("TWINLAKE_HOME", str(home))
    return home


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), list(arguments))


def test_one_is_taken_listed_read_back_and_restored(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, again = str(tmp_path / "backups"), tmp_path / "again"

    assert "is whole" in run("backup", folder).stdout
    made = json.loads(run("backup", "take", folder, "--keep", "1", "--json").stdout)
    assert wrong(COMMANDS["backup take"], made) == []
    for command in ("backup list", "backup verify"):
        assert wrong(COMMANDS[command], json.loads(run(*command.split(), folder, "--json").stdout)) == []
    assert made["copied"] == 0 and len(made["removed"]) == 1
    assert made["id"] in run("backup", "list", folder).stdout
    assert "is whole" in run("backup", "verify", folder).stdout
    monkeypatch.setenv("TWINLAKE_HOME", str(again))
    assert "start it: `twinlake up`" in run("restore", folder).stdout
    assert (again / "lake" / "lake.json").read_bytes() == (home / "lake" / "lake.json").read_bytes()
    assert "is not empty" in str(run("restore", folder).exception)


def test_without_a_folder_it_is_that_of_the_settings_and_so_is_how_many_stay(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "backups"
    for command in (["backup"], ["backup", "take"], ["backup", "list"], ["backup", "verify"]):
        assert "no folder of backups is set" in str(run(*command).exception)
    (home / "twinlake.toml").write_text(f'[backup]\nfolder = "{folder}"\nkeep = 2\n')

    made = [json.loads(run("backup", "--json").stdout) for _ in range(3)]
    all_kept = json.loads(run("backup", str(folder), "--json").stdout)
    one = json.loads(run("backup", "--keep", "1", "--json").stdout)

    assert [len(found["removed"]) for found in made] == [0, 0, 1]
    assert (all_kept["removed"], len(one["removed"])) == ([], 3)
    assert one["id"] in run("backup", "list").stdout and "is whole" in run("backup", "verify").stdout
    assert "--keep" not in run("backup", "--help").stdout and "verify" in run("backup", "--help").stdout


def test_a_damaged_one_is_told_by_its_exit_code(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    assert run("backup", str(folder)).exit_code == 0
    next(folder.rglob("*.parquet")).write_bytes(b"")

    done = run("backup", "verify", str(folder))

    assert done.exit_code == 1 and "is damaged: 1 of" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["backup", ""], "no folder is named"),
        (["backup", "list", "nowhere"], "there are no backups in"),
        (["backup", "verify", "nowhere"], "there are no backups in"),
        (["restore", "nowhere"], "there are no backups in"),
        (["backup", "ftp://host/x"], "the lake cannot be in ftp://host/x"),
    ],
)
def test_what_is_named_wrongly_is_said(home: Path, arguments: list[str], said: str) -> None:
    done = run(*arguments)

    assert done.exit_code != 0 and said in str(done.exception)
