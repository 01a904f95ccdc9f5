"""What is on record as the commit of a plan."""

from __future__ import annotations

import subprocess
from pathlib import Path

from twinlake.base.version import commit_of


def git(project: Path, *arguments: str) -> str:
    named = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    done = subprocess.run(
        ["git", "-C", str(project), *named, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_definition_that_is_not_committed_is_told(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "orders.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit = git(tmp_path, "rev-parse", "HEAD")

    assert commit_of(tmp_path) == commit
    (tmp_path / "notes").write_text("of no weight")
    assert commit_of(tmp_path) == commit
    (tmp_path / "jobs" / "sales.py").write_text("2")
    assert commit_of(tmp_path) == f"{commit}-dirty"


def test_outside_of_git_there_is_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path / "nowhere") is None
