"""Which commit the project is at, for the record of what was planned and released."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(project: Path) -> str | None:
    """The commit that is checked out in the folder, None outside of git."""
    asked = ["git", "-C", str(project), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
