"""A shell that lets processes open too few files: said before anything starts, or raised if allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import PROJECT


def run(limit: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, from a shell with this limit."""
    return subprocess.run(
        ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", sys.executable, *arguments],
        cwd=PROJECT, env={**os.environ, "TWINLAKE_HOME": str(home)}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["up", "doctor"])
def test_too_few_are_refused_before_anything_starts(tmp_path: Path, command: str) -> None:
    done = run("-n 256", tmp_path / "home", "-m", "twinlake", command)

    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert "too few files may be open at once" in told and "lets a process open 256" in told, told
    assert "`ulimit -n 4096` raises it where you may" in told
    assert not list((tmp_path / "home").glob("run/parts/*"))


def test_a_limit_that_this_process_may_raise_is_raised_for_all_that_it_starts(tmp_path: Path) -> None:
    work = (
        "import subprocess; from twinlake.services.supervise import process; process.ensure_open_files(); "
        "print(subprocess.check_output(['sh', '-c', 'ulimit -Sn'], text=True))"
    )

    assert run("-Sn 256", tmp_path, "-c", work).stdout.strip() == "1024"
    assert run("-Sn 2048", tmp_path, "-c", work).stdout.strip() == "2048"
