"""A project is read as a commit has it, and nothing of the working tree is touched for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git import commit_all, git
from tests.unit_tests.small_project import PAGES, project_of
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.config.project import Project
from twinlake.definitions.git_ref import commit_of_ref, project_at

TABLE = "jobs/tables/pages.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    project_of(tmp_path / "inner", {})
    commit_all(tmp_path)
    return tmp_path


def test_the_files_are_those_of_the_commit_and_the_working_tree_keeps_its_own(repository: Path) -> None:
    first = commit_of_ref(repository, "HEAD")
    project = Project.load(repository / "inner")
    (project.root / TABLE).write_text("TABLE = 1\n")
    (repository / "staged").write_text("x")
    git(repository, "add", "staged")
    before = git(repository, "status", "--porcelain")

    with project_at(project, first) as there:
        assert there is not None and there.root != project.root
        assert (there.root / TABLE).read_text() == PAGES
        assert not (there.root.parent / "staged").exists()
        place = there.root

    assert git(repository, "status", "--porcelain") == before and before.splitlines()
    assert not place.exists()


def test_a_commit_from_before_the_project_has_none(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("nothing yet")
    first = commit_all(tmp_path)
    project = project_of(tmp_path, {})

    with project_at(project, first) as there:
        assert there is None


def test_a_repository_without_a_commit_asks_for_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")

    with pytest.raises(NotFoundError) as refused:
        commit_of_ref(tmp_path, None)

    assert refused.value.why == "this repository has no commit yet"


def test_a_branch_is_compared_with_where_it_has_left_the_remote_s_main_one(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    left = commit_of_ref(repository, None)
    clone = tmp_path_factory.mktemp("clones") / "clone"
    git(repository, "clone", "--quiet", str(repository), str(clone))
    commit_all(repository, "main goes on")
    git(clone, "fetch", "--quiet")
    mine = commit_all(clone, "mine")

    assert commit_of_ref(clone, None) == left
    assert commit_of_ref(clone, "HEAD") == mine
    assert commit_of_ref(clone, "origin/main") not in (left, mine)


def test_without_a_remote_it_is_what_was_committed_last(repository: Path) -> None:
    commit_all(repository, "second")

    assert commit_of_ref(repository, None) == git(repository, "rev-parse", "HEAD")


def test_a_shallow_clone_does_not_guess(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    git(repository, "switch", "--quiet", "--create", "change")
    mine = commit_all(repository)
    git(repository, "switch", "--quiet", "main")
    clone = tmp_path_factory.mktemp("clones") / "shallow"
    git(repository, "clone", "--quiet", "--depth=1", "--branch=change", f"file://{repository}", str(clone))

    with pytest.raises(NotFoundError, match="does not know where this branch has left the main one"):
        commit_of_ref(clone, None)
    assert commit_of_ref(clone, "HEAD") == mine


@pytest.mark.parametrize("ref", ["nope", "HEAD^{tree}", "HEAD~9"])
def test_what_is_no_commit_is_said_with_how_to_get_it(repository: Path, ref: str) -> None:
    with pytest.raises(NotFoundError) as refused:
        commit_of_ref(repository, ref)

    assert refused.value.what == f"git has no commit {ref!r} here" and "git fetch" in refused.value.remedy


def test_a_name_that_git_would_take_for_an_option_is_none(repository: Path) -> None:
    with pytest.raises(UsageError, match="'--all' is no commit"):
        commit_of_ref(repository, "--all")


def test_outside_of_git_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read as it was committed") as refused:
        commit_of_ref(tmp_path, None)

    assert "not a git repository" in refused.value.why


def test_a_machine_without_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError) as refused:
        commit_of_ref(tmp_path, None)

    assert (refused.value.why, refused.value.remedy) == ("git is not installed", "install git")
