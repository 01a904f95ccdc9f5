"""`twinlake dags` writes one folder that has all that the DAGs import, and takes away only what it wrote."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.project import EXAMPLES, OURS, PROJECT, example_of
from twinlake.base.errors import UsageError
from twinlake.base.version import VERSION
from twinlake.cli import dags
from twinlake.cli.app import build_app

HEAVY = ("pyspark", "tables", "kinds", "lake/", "topics", "cli/")


def shown(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_folder_has_the_dags_and_what_they_import_and_nothing_else(home: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(build_app(), ["dags", str(tmp_path / "made")])

    found = shown(tmp_path / "made")
    assert done.exit_code == 0 and f"Twinlake {VERSION}, {len(found) - 1} files" in done.stdout
    needed = {
        "release.py", ".airflowignore", "plugins/twinlake_console.py", "twinlake/airflow/trigger.py",
        "twinlake/server/client.py",
    }  # fmt: skip
    assert needed <= found
    library = [place.removeprefix("twinlake/") for place in found if place.startswith("twinlake/")]
    assert not [place for place in library if any(one in place for one in HEAVY)]
    assert "twinlake_default" in done.stderr
    for place in found - {dags.MARK}:
        if place in (".airflowignore", dags.POOLS):
            continue
        where = {"twinlake": "", "plugins": "twinlake/airflow/"}.get(place.partition("/")[0], "dags/")
        source = PROJECT / f"{where}{place}"
        assert (tmp_path / "made" / place).read_bytes() == source.read_bytes()


def test_no_module_of_the_folder_imports_one_that_is_not_in_it() -> None:
    files = dags.dag_files(OURS.dags)
    modules = {place.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for place in files}

    for place, file in files.items():
        for node in dags.running(ast.parse(file)) if place.endswith(".py") else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("jobs", "twinlake"):
                assert node.module in modules, (place, node.module)


def test_an_example_which_has_no_dags_gets_the_same_folder() -> None:
    (example, *_) = EXAMPLES

    assert dags.dag_files(example_of(example).dags) == dags.dag_files(OURS.dags)


def test_what_an_earlier_version_wrote_goes_and_what_others_wrote_stays(tmp_path: Path) -> None:
    files, folder = dags.dag_files(OURS.dags), tmp_path / "made"
    outside = tmp_path / "outside.py"
    outside.write_text("mine")
    dags.write({**files, "twinlake/former.py": files["twinlake/base/version.py"]}, folder)
    (folder / "theirs.py").write_text("theirs")
    mark = json.loads((folder / dags.MARK).read_text())
    (folder / dags.MARK).write_text(json.dumps({**mark, "files": [*mark["files"], "../outside.py"]}))

    dags.write(files, folder)

    assert shown(folder) == {*files, "theirs.py", dags.MARK}
    assert outside.exists()


def test_the_prefix_of_names_stays_until_another_is_given(tmp_path: Path) -> None:
    files, seen = dags.dag_files(OURS.dags), []
    for prefix in (None, "shop_", None, ""):
        dags.write(files, tmp_path / "made", prefix)
        seen.append(json.loads((tmp_path / "made" / dags.MARK).read_text())["prefix"])

    assert seen == ["", "shop_", "shop_", ""]


@pytest.mark.parametrize("prefix", ["a b", "../", "a/b", "é", "x" * 101])
def test_a_prefix_that_no_name_can_have_is_refused(tmp_path: Path, prefix: str) -> None:
    with pytest.raises(UsageError, match="no DAG can be called"):
        dags.write(dags.dag_files(OURS.dags), tmp_path / "made", prefix)

    assert not (tmp_path / "made").exists()


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text("theirs")

    with pytest.raises(UsageError, match="is not empty"):
        dags.write(dags.dag_files(OURS.dags), tmp_path)

    assert shown(tmp_path) == {"theirs.py"}


def test_a_folder_that_cannot_be_made_is_told_as_what_it_is(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = CliRunner().invoke(build_app(), ["dags", str(tmp_path / "file" / "made")])

    assert isinstance(done.exception, UsageError)
    assert (done.exception.why, done.exception.remedy) == (
        "Not a directory", "fix its rights, or name another folder",
    )  # fmt: skip


def test_a_link_within_the_folder_leads_to_nothing_that_is_written_or_deleted(tmp_path: Path) -> None:
    """The folder may lie in a repository that others write."""
    files, folder, theirs = dags.dag_files(OURS.dags), tmp_path / "made", tmp_path / "theirs"
    dags.write(files, folder)
    theirs.mkdir()
    (theirs / "precious").write_text("theirs")
    told = json.loads((folder / dags.MARK).read_text())
    (folder / "link").symlink_to(theirs)
    (folder / dags.MARK).write_text(json.dumps({**told, "files": [*told["files"], "link/precious"]}))

    dags.write(files, folder)

    (folder / "twinlake").rename(tmp_path / "twinlake")
    (folder / "twinlake").symlink_to(theirs)
    with pytest.raises(UsageError, match="is not within"):
        dags.write(files, folder)
    assert shown(theirs) == {"precious"}


@pytest.mark.parametrize("content", ["", "<<<<<<< ours", "[]", "{}", '{"files": [1], "prefix": ""}'])
def test_a_list_that_somebody_has_written_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / dags.MARK).write_text(content)

    with pytest.raises(UsageError, match="is not a list of files"):
        dags.write(dags.dag_files(OURS.dags), tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "made").write_text("theirs")

    with pytest.raises(UsageError, match="is not a folder"):
        dags.write(dags.dag_files(OURS.dags), tmp_path / "made")
