"""A project in a repository of git of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

_NOBODY = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """What git says there."""
    done = subprocess.run(
        ["git", "-C", str(folder), *_NOBODY, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit_all(folder: Path, message: str = "a change") -> str:
    """Commits what is in the folder, which becomes a repository; the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD")
