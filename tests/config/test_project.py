"""A project is found from where one stands, its folders are those that it names, and mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from twinlake.base.errors import UsageError
from twinlake.config.project import Project
from twinlake.config.settings import Services, Settings

WRONG = [
    ("[kafka]\n", "has no section [project]"),
    ("[project\n", "has no section [project]"),
    ("[project]\ntables = \n", "is not valid TOML"),
    (
        '[project]\ntable = "x"\n',
        ":2: there is no such setting: table; did you mean tables?",
    ),
    ("[project]\n\nschemas = 3\n", "twinlake.toml:3: schemas is 3, not the path of a folder"),
    ('[project]\nschemas = ""\n', "twinlake.toml:2: schemas is '', not the path of a folder"),
    ('[project]\ncontracts = "../other"\n', "is '../other', which is outside the project"),
    ('[project]\ndata = "."\n', "the data directory cannot be the project's folder"),
    ('[project]\ndata = "~nobody-here/x"\n', "there is no such user"),
    ('[project]\ntables = "~/t"\n', "is '~/t', which is outside the project"),
    ('kafka = """\n[project]\n"""\n', "has no section [project]"),
    ("project = 3\n", "[project] is not a section"),
    ('[project]\n[kafka]\nusername = "u"\n', "twinlake.toml:2: [kafka] is not a section of a project"),
    ('tables = "x"\n[project]\n', "twinlake.toml:1: tables is not in a section; write it below [project]"),
    ("[project]\n[projekt]\n", "twinlake.toml:2: there is no such section: projekt"),
]
"""A project's file that is refused, and with which words."""


def written(root: Path, text: str = "[project]\n") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "twinlake.toml").write_text(text)
    return root


def test_it_is_found_upward_and_data_directories_on_the_way_are_skipped(tmp_path: Path) -> None:
    root = written(tmp_path / "shop")
    data = written(root / ".twinlake", '[kafka]\nbootstrap_servers = "k:9092"\n')
    (data / "logs").mkdir()

    found = [Project.find(start) for start in (root, data, data / "logs")]

    assert [one and one.root for one in found] == [root] * 3
    assert Project.find(tmp_path) is None


def test_its_folders_are_the_usual_ones_unless_it_names_others(tmp_path: Path) -> None:
    usual = Project.load(written(tmp_path / "usual"))
    (usual.root / "dags").mkdir()
    other = Project.load(written(tmp_path / "other", '[project]\ntables = "models"\ndata = "/srv/lake"\n'))

    assert [usual.tables, usual.schemas, usual.contracts, usual.dags, usual.data] == [
        tmp_path / "usual" / name for name in ("jobs/tables", "schemas", "contracts", "dags", ".twinlake")
    ]
    assert (other.tables, other.data) == (tmp_path / "other" / "models", Path("/srv/lake"))
    assert other.contracts == tmp_path / "other" / "contracts"


def test_a_project_without_dags_has_those_of_the_library_unless_it_names_a_folder(tmp_path: Path) -> None:
    without = Project.load(written(tmp_path / "without"))
    misnamed = Project.load(written(tmp_path / "misnamed", '[project]\ndags = "dag"\n'))

    assert {file.stem for file in without.dags.glob("*.py")} == {
        "backfill", "backup", "batch", "maintain", "release", "reload", "replay", "rollback"
    }  # fmt: skip
    with pytest.raises(UsageError, match="which is not a folder"):
        _ = misnamed.dags
    (misnamed.root / "dag").mkdir()
    assert misnamed.dags == misnamed.root / "dag"


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_is_wrong_in_its_file_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        Project.load(written(tmp_path, text))

    assert words in f"{refused.value.what} {refused.value.why}" and refused.value.remedy


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        Project.load(written(tmp_path, '[project]\ntable = "x"\nschemas = 1\n[kafka]\n'))

    assert len(refused.value.why.splitlines()) == 3


def test_the_project_is_that_of_the_option_then_of_the_place_then_of_the_data_directory(
    tmp_path: Path,
) -> None:
    here, named, started = (written(tmp_path / name) for name in ("here", "named", "started"))
    home = tmp_path / "home"
    Services(project=str(started)).save(home / "services.json")

    by_option = Settings.of({"TWINLAKE_PROJECT": str(named), "TWINLAKE_HOME": str(home)}, here)
    by_place = Settings.of({}, here)
    by_home = Settings.of({"TWINLAKE_HOME": str(home)}, tmp_path)

    assert (by_option.project.root, by_option.home) == (named, home)
    assert (by_place.project.root, by_place.home) == (here, here / ".twinlake")
    assert by_home.project.root == started


def test_where_there_is_none_it_is_said_and_addresses_alone_need_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no project here"):
        Settings.of({}, tmp_path)
    settings = Settings.of({"TWINLAKE_HOME": str(tmp_path / "home")}, tmp_path)

    assert settings.lake == tmp_path / "home" / "lake"
    with pytest.raises(UsageError, match="there is no project here"):
        _ = settings.project


def test_a_data_directory_that_holds_the_project_is_refused(tmp_path: Path) -> None:
    root = written(tmp_path / "shop")

    with pytest.raises(UsageError, match="the data directory cannot be"):
        Settings.of({"TWINLAKE_HOME": str(root)}, root)


def test_a_data_directory_that_holds_a_folder_of_the_project_is_refused_through_links_as_well(
    tmp_path: Path,
) -> None:
    root = written(tmp_path / "shop")
    (tmp_path / "link").symlink_to(root)

    for home in (tmp_path / "link", root / "jobs", root / "contracts"):
        with pytest.raises(UsageError, match="the data directory cannot be"):
            Settings.of({"TWINLAKE_HOME": str(home)}, root)
    with pytest.raises(UsageError, match="the data directory cannot be"):
        Settings.of({"TWINLAKE_PROJECT": str(tmp_path / "link"), "TWINLAKE_HOME": str(root)})


def test_a_data_directory_may_be_named_from_the_user_s_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "anna"))

    assert Project.load(written(tmp_path / "shop", '[project]\ndata = "~/lake"\n')).data == (
        tmp_path / "anna" / "lake"
    )


@pytest.mark.parametrize("text", ['project = { data = "x" }\n', '["project"]\ndata = "x"\n'])
def test_its_section_may_be_written_in_every_way_that_toml_has(tmp_path: Path, text: str) -> None:
    assert Project.find(written(tmp_path / "shop", text)) == Project.load(tmp_path / "shop")


def test_a_file_that_may_not_be_read_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = written(tmp_path / "shop")
    read_bytes = Path.read_bytes

    def closed(file: Path) -> bytes:
        if file == root / "twinlake.toml":
            raise PermissionError(13, "Permission denied")
        return read_bytes(file)

    monkeypatch.setattr(Path, "read_bytes", closed)

    with pytest.raises(UsageError, match="cannot be read") as refused:
        Project.load(root)
    assert refused.value.why == "Permission denied" and refused.value.remedy
    assert Project.find(root) is None
