"""The version of this code, which others it understands, and which commit a project is at."""

from __future__ import annotations

import subprocess
from pathlib import Path

VERSION = "0.1.0"
"""The one place of it: `pyproject.toml` reads it here.

The first two numbers change when clients and lake server no longer understand each other.
"""


def is_compatible(other: str) -> bool:
    """Whether a client and a lake server of these versions understand each other."""
    return other.split(".")[:2] == VERSION.split(".")[:2]


DECIDING = ("jobs", "twinlake", "schemas", "contracts")
DIRTY = "-dirty"


def commit_of(project: Path) -> str | None:
    """The commit that is checked out in the folder, None outside of git.

    It ends in `-dirty`, as git itself says it, where what decides the tables is not what was committed.
    """
    commit = _asked(project, "rev-parse", "HEAD")
    changed = _asked(project, "status", "--porcelain", "--", *DECIDING)
    return f"{commit}{DIRTY if changed else ''}" if commit else None


def _asked(project: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(project), *arguments], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
