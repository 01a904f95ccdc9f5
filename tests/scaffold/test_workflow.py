"""The workflow of a new project is one, asks for no more rights than it needs, and its commands work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tests.git import commit_all, git
from tests.project import PROJECT
from twinlake.cli.app import build_app
from twinlake.cli.sample_comment import MARKER

TABLE = "jobs/tables/visits_per_page.py"
FEWER = 'keys=("page",),\n    where="seconds >= 10 OR seconds IS NULL",'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """As it is made, in a repository."""
    done = CliRunner().invoke(build_app(), ["new", "project", str(tmp_path / "shop")])
    assert done.exit_code == 0, done.exception
    commit_all(tmp_path / "shop")
    return tmp_path / "shop"


def workflow(project: Path) -> dict[str, Any]:
    found = yaml.safe_load((project / ".github/workflows/tables.yml").read_text())
    assert isinstance(found, dict)
    return found


def steps(project: Path) -> dict[str, dict[str, Any]]:
    """Those that run a command, by their names."""
    (job,) = workflow(project)["jobs"].values()
    return {one["name"]: one for one in job["steps"] if "run" in one}


def ran(project: Path, step: Mapping[str, Any], **environ: str) -> subprocess.CompletedProcess[str]:
    """As a runner runs it: bash, which ends at the first command that fails."""
    bin_folder = project.parent / "bin"
    bin_folder.mkdir(exist_ok=True)
    ours = bin_folder / "twinlake"
    ours.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m twinlake "$@"\n')
    ours.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TWINLAKE", "GIT"))}
    env |= {"PATH": f"{bin_folder}:{env['PATH']}", "PYTHONPATH": str(PROJECT), **environ}
    command = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, env=env)


def changed(project: Path, text: str) -> None:
    """A merge of a branch in which the table has this text, as a pull request is checked out."""
    git(project, "switch", "--quiet", "--create", "change")
    (project / TABLE).write_text(text)
    commit_all(project)
    git(project, "switch", "--quiet", "main")
    git(project, "merge", "--quiet", "--no-ff", "--message", "merged", "change")


def test_it_may_read_the_files_and_write_a_comment_and_nothing_else(project: Path) -> None:
    found = workflow(project)
    (job,) = found["jobs"].values()
    checkout = job["steps"][0]

    assert found["permissions"] == {"contents": "read", "pull-requests": "write"} and "permissions" not in job
    assert [*found[True]] == ["pull_request"]  # YAML reads `on` as a boolean
    assert checkout["with"] == {"fetch-depth": 2, "persist-credentials": False}
    holding = [name for name, one in steps(project).items() if "github.token" in str(one.get("env"))]
    assert holding == ["Comment"]  # what a pull request brings along runs without it
    assert not any("${{" in one["run"] for one in steps(project).values())  # no text of others is a command


def test_its_paths_are_all_that_a_table_rests_on(project: Path) -> None:
    paths = {path.removesuffix("/**") for path in workflow(project)[True]["pull_request"]["paths"]}

    assert paths == {
        ".github/workflows/tables.yml", "contracts", "jobs", "samples", "schemas", "twinlake.toml"
    }  # fmt: skip
    assert all((project / path).exists() for path in paths)


def test_a_change_passes_its_checks_and_becomes_a_comment(project: Path, tmp_path: Path) -> None:
    changed(project, (project / TABLE).read_text().replace('keys=("page",),', FEWER))
    summary, found = tmp_path / "summary.md", steps(project)

    done = {
        name: ran(project, found[name], GITHUB_STEP_SUMMARY=str(summary))
        for name in ("Check", "Test", "Compare")
    }

    codes = {name: one.returncode for name, one in done.items()}
    assert codes == {"Check": 0, "Test": 1, "Compare": 0}, [one.stderr for one in done.values()]
    comment = (project / "comment.md").read_text()
    assert summary.read_text() == comment and comment.startswith(f"{MARKER}\n")
    assert "visits&#95;per&#95;page</code> would show other rows" in comment
    assert "1 passed, **1 failed**" in comment and "60 records of files" in comment


def test_words_alone_are_a_comment_too_and_a_broken_definition_is_none(project: Path, tmp_path: Path) -> None:
    text = (project / TABLE).read_text()
    compare, summary = steps(project)["Compare"], tmp_path / "summary.md"
    changed(project, text.replace("Visits of each", "All visits of each"))
    same = ran(project, compare, GITHUB_STEP_SUMMARY=str(summary))
    comment = (project / "comment.md").read_text()
    (project / TABLE).write_text("TABLE = (\n")
    broken = ran(project, compare, GITHUB_STEP_SUMMARY=str(summary))

    assert same.returncode == 0 and "no definition differs" in comment
    assert broken.returncode == 1 and f"{TABLE}:1" in broken.stderr
    assert summary.read_text() == comment


def test_the_comment_of_before_is_found_by_its_first_line(project: Path) -> None:
    assert f'startswith("{MARKER}")' in steps(project)["Comment"]["run"]


def test_without_the_variable_it_says_what_is_missing(project: Path) -> None:
    done = ran(project, steps(project)["Install Twinlake"], TWINLAKE="")

    assert done.returncode != 0 and "set this variable of the repository" in done.stderr


@pytest.mark.parametrize("known", ["", "17\n18\n"])
def test_it_posts_once_and_then_changes_what_it_has_posted(project: Path, known: str) -> None:
    (project / "comment.md").write_text(MARKER)
    gh = project.parent / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(f'#!/bin/sh\necho "$@" >> calls\ncase "$*" in *--paginate*) printf "{known}" ;; esac\n')
    gh.chmod(0o755)

    done = ran(project, steps(project)["Comment"], COMMENTS="c/1/comments", COMMENT="c/comments")

    posted = "api c/1/comments --field" if not known else "api --method PATCH c/comments/17 --field"
    listed, last = (project / "calls").read_text().splitlines()
    assert done.returncode == 0, done.stderr
    assert listed.startswith("api c/1/comments --paginate --jq .[]")
    assert last == f"{posted} body=@comment.md --silent"
