"""`twinlake new project`: what it writes is sound at once, and nothing that is there is written over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.project import PROJECT
from twinlake.base.errors import UsageError
from twinlake.cli.app import build_app
from twinlake.config.project import Project
from twinlake.definitions.loader import load
from twinlake.topics.records import Wanted, sources_of
from twinlake.topics.topic import load_topic, topic_names


def asked(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["new", "project", *arguments])


@pytest.fixture
def made(tmp_path: Path) -> Project:
    done = asked(str(tmp_path / "shop"))
    assert done.exit_code == 0, done.exception
    return Project.load(tmp_path / "shop")


def test_it_has_a_topic_a_table_records_and_the_dags_of_this_project(made: Project) -> None:
    topic = load_topic("visits", made)
    drawn = sources_of(made)["visits"](Wanted(topic=topic, seed=1, run="r")).draw(20, 1_770_000_000_000)

    assert topic_names(made) == ("visits",)
    assert [table.name for table in load(made).sound()] == ["visits_per_page"]
    assert {json.loads(value or b"")["page"] for value in drawn.values} <= {
        "/", "/prices", "/docs", "/docs/start", "/blog", "/about"
    }  # fmt: skip
    assert {file.name: file.read_text() for file in made.dags.glob("*.py")} == {
        file.name: file.read_text() for file in (PROJECT / "dags").glob("*.py")
    }
    assert "# shop\n" in (made.root / "README.md").read_text()
    assert (made.root / ".gitignore").is_file()


def test_check_finds_nothing_wrong_in_it(made: Project) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "check", "--json"], cwd=made.root, capture_output=True, text=True,
    )  # fmt: skip

    report = json.loads(done.stdout)
    assert (done.returncode, report["problems"], report["warnings"]) == (0, [], [])
    assert [table["name"] for table in report["tables"]] == ["visits_per_page"]


@pytest.mark.parametrize("name", ["9lives", "a b", "..", "ü"])
def test_a_name_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    refused = asked(str(tmp_path / name)).exception

    assert isinstance(refused, UsageError) and list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_and_a_file_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("kept")
    (tmp_path / "file").write_text("kept")

    refused = [asked(str(tmp_path / name)).exception for name in ("mine", "file")]

    assert all(isinstance(one, UsageError) for one in refused)
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["notes"]
    assert (tmp_path / "file").read_text() == "kept"
