"""`twinlake new`: what it writes is sound at once, and nothing that is there is written over."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.project import PROJECT
from twinlake.base.errors import ContractError, FullDiskError, UsageError
from twinlake.base.files import replace_file
from twinlake.cli.app import build_app
from twinlake.config.project import Project
from twinlake.definitions.loader import load
from twinlake.topics.records import Wanted, sources_of
from twinlake.topics.topic import load_topic, topic_names

SAMPLE = """\
{"event_id": "a", "customer": "anna", "amount": 12.5, "inside": {"a": 1}, "at": "2026-01-31T12:00:00Z"}
{"event_id": "b", "customer": "ben", "amount": 3, "at": "2026-01-31T12:00:01Z"}
"""


def asked(*arguments: str) -> Result:
    return new("project", *arguments)


def new(*arguments: str) -> Result:
    return CliRunner().invoke(build_app(), ["new", *arguments])


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


def test_a_place_where_no_data_directory_can_be_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINLAKE_HOME", "")
    (tmp_path / "my files").mkdir()
    folder = str(tmp_path / "my files" / "shop")

    refused = asked(folder).exception
    monkeypatch.setenv("TWINLAKE_HOME", str(tmp_path / "elsewhere"))
    done = asked(folder)

    assert isinstance(refused, UsageError) and "' ' in its path" in refused.why
    assert done.exit_code == 0 and f"`cd '{folder}'`" in done.stderr


@pytest.mark.parametrize("place", [".twinlake/lake", "jobs/tables/inner", "contracts/inner"])
def test_a_folder_that_another_project_would_read_or_delete_is_refused(made: Project, place: str) -> None:
    refused = asked(str(made.root / place)).exception

    assert isinstance(refused, UsageError) and f"belongs to the project {made.root}" in refused.why
    assert not (made.root / place).exists() and asked(str(made.root / "more" / "inner")).exit_code == 0


def test_a_project_that_could_not_be_written_whole_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def fill(path: Path, content: str) -> None:
        if len(written) == 5:
            raise FullDiskError("the disk is full", "", "make room")
        replace_file(path, content)
        written.append(path)

    (tmp_path / "cloned" / ".git").mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr("twinlake.base.files.replace_file", fill)
        for name in ("shop", "cloned"):
            assert isinstance(asked(str(tmp_path / name)).exception, FullDiskError)
            written.clear()

    assert [one.relative_to(tmp_path).as_posix() for one in sorted(tmp_path.rglob("*"))] == [
        "cloned", "cloned/.git",
    ]  # fmt: skip
    assert asked(str(tmp_path / "shop")).exit_code == 0


def test_a_folder_with_nothing_but_a_repository_becomes_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")

    done = asked(".")

    assert done.exit_code == 0 and "`cd" not in done.stderr
    assert Project.load(tmp_path / "shop").contracts.is_dir()


@pytest.fixture
def here(made: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A new project, from one of its folders, with a sample in it."""
    (made.root / "orders.jsonl").write_text(SAMPLE)
    monkeypatch.chdir(made.tables)
    return made


def files_of(project: Project) -> set[str]:
    found = (file for file in project.root.rglob("*.*") if file.is_file())
    return {file.relative_to(project.root).as_posix() for file in found}


def test_a_topic_and_a_table_are_four_new_files(here: Project) -> None:
    before = files_of(here)

    topic = new("topic", "orders", "--sample", "../../orders.jsonl")
    table = new("table", "sales", "--from", "orders")

    assert (topic.exit_code, table.exit_code) == (0, 0)
    assert files_of(here) - before == {
        "contracts/orders.yaml",
        "contracts/sales.yaml",
        "jobs/tables/sales.py",
        "jobs/tables/sales.test.yaml",
    }
    assert [one.name for one in load(here).sound()] == ["sales", "visits_per_page"]


def test_it_says_what_was_written_and_what_next(here: Project) -> None:
    topic, table = (
        new("topic", "orders", "--sample", "../../orders.jsonl"),
        new("table", "sales", "--from", "orders"),
    )

    assert topic.stdout == (
        f"{here.contracts}/orders.yaml: topic orders, event time at, "
        "columns event_id, customer, amount, inside, at\n"
    )
    assert table.stdout == (
        "sales.py: table sales, aggregate of orders\n"
        f"{here.contracts}/sales.yaml: what it promises, to be filled in\n"
        "sales.test.yaml: its unit test, with what it shows of a few records\n"
    )
    assert "next: look the contract through" in topic.stderr and "next: `twinlake check`" in table.stderr


def test_the_only_topic_need_not_be_named_and_a_sample_may_come_through_a_pipe(here: Project) -> None:
    first = new("table", "page_visits")
    piped = CliRunner().invoke(build_app(), ["new", "topic", "orders", "--sample", "-"], input=SAMPLE)
    second = new("table", "sales")

    assert (first.exit_code, piped.exit_code) == (0, 0)
    assert isinstance(second.exception, UsageError) and second.exception.why == "topics: orders, visits"


def test_folders_that_a_project_names_otherwise_are_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "own"
    root.mkdir()
    (root / "twinlake.toml").write_text('[project]\ntables = "t"\ncontracts = "c/d"\n')
    monkeypatch.setenv("TWINLAKE_PROJECT", str(tmp_path))  # the command's own option sets it again
    monkeypatch.chdir(tmp_path)

    for arguments in (("topic", "things"), ("table", "counts")):
        assert CliRunner().invoke(build_app(), ["--project", str(root), "new", *arguments]).exit_code == 0

    assert {"t/counts.py", "c/d/counts.yaml", "c/d/things.yaml"} < files_of(Project.load(root))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("topic", "visits"), "visits.yaml is there already"),
        (("topic", "orders", "--sample", "../../orders.jsonl"), "orders.v1.avsc is there already"),
        (("table", "notes"), "notes.py is there already"),
        (("table", "promises"), "promises.yaml is there already"),
        (("table", "visits_per_page"), "there is a table visits_per_page already"),
        (("table", "visits"), "a table cannot be called visits here"),
        (("table", "visits_quarantine"), "a table cannot be called visits_quarantine here"),
        (("table", "sales", "--kind", "nothing"), "no table of kind 'nothing' can be begun"),
        (("topic", "Orders"), "a topic cannot be called 'Orders'"),
        (("topic", "orders2", "--sample", "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
        (("topic", "orders2", "--sample", "../../README.md"), "README.md:1: this is not JSON"),
        (("topic", "orders2", "--sample", "x", "--from-kafka"), "--sample and --from-kafka are given"),
    ],
)
def test_what_cannot_be_made_is_refused_and_nothing_is_written(
    here: Project, arguments: tuple[str, ...], named: str
) -> None:
    (here.tables / "notes.py").write_text("")
    (here.contracts / "promises.yaml").write_text("mine")
    (here.schemas / "orders.v1.avsc").write_text("mine")
    before = files_of(here)

    refused = new(*arguments).exception

    assert isinstance(refused, UsageError) and refused.what.endswith(named)
    assert files_of(here) == before and (here.contracts / "promises.yaml").read_text() == "mine"


def test_where_the_only_topic_is_broken_its_error_is_said(here: Project) -> None:
    contract = here.contracts / "visits.yaml"
    contract.write_text(contract.read_text().replace("lateAfter", "latAfter"))

    assert isinstance(new("table", "sales").exception, ContractError)


def test_a_schema_that_is_there_makes_the_contract(here: Project) -> None:
    (here.schemas / "orders.v1.avsc").write_text((PROJECT / "schemas/orders.v1.avsc").read_text())

    done = new("topic", "orders")

    assert done.exit_code == 0, done.output
    assert load_topic("orders", here).contract.event_time == "ordered_at"


def test_outside_of_a_project_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    refused = new("topic", "orders").exception

    assert isinstance(refused, UsageError) and "twinlake new project" in refused.remedy


def test_a_broken_neighbour_keeps_no_table_from_being_made(here: Project) -> None:
    (here.tables / "broken.py").write_text(
        "from twinlake import Rolling\nTABLE = Rolling(name='broken', of='nowhere', last=('1 day',))\n"
    )

    assert new("table", "sales", "--from", "visits").exit_code == 0
    assert "visits" in (here.tables / "sales.test.yaml").read_text()


def test_a_table_in_sql_is_one_file_for_each_definition_and_is_right_at_once(here: Project) -> None:
    before = files_of(here)

    done = new("table", "top", "--kind", "Derived", "--sql")
    again, other = new("table", "top_counts", "--sql"), new("table", "all", "--kind", "Union", "--sql")

    assert files_of(here) - before == {
        "contracts/top.yaml",
        "jobs/tables/top.sql",
        "jobs/tables/top.test.yaml",
        "jobs/tables/top_counts.sql",
    }
    assert done.stdout.startswith("top.sql: table top, derived of top_counts, with top_counts beside it\n")
    assert "jobs/tables/top.sql" in (here.contracts / "top.yaml").read_text()
    assert [one.name for one in load(here).sound()] == ["top", "top_counts", "visits_per_page"]
    assert isinstance(again.exception, UsageError) and isinstance(other.exception, UsageError)
    assert CliRunner().invoke(build_app(), ["test", "top"]).exit_code == 0
