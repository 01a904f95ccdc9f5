"""A reader that goes away ends a command as SIGPIPE does: without a word, with no code that means more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release

NO_READER = 141
LONG = "v" * 100_000
"""More than a pipe and Python's own buffer hold."""


@pytest.fixture
def released(home: Path) -> Path:
    release = Release(
        number=1, kind="promote", tables={"t": LONG}, created_at="2026-01-31T12:00:00Z", approved_by="ann"
    )
    formats.acquire(Settings(home=home).lake)
    release_log.commit(Settings(home=home).lake, release)
    return home


def ended(*arguments: str, unread: tuple[str, ...]) -> tuple[int, str]:
    """Exit code of a command whose streams of these names nobody reads, and what the others got."""
    read, write = os.pipe()
    os.close(read)
    streams = {name: write if name in unread else subprocess.PIPE for name in ("stdout", "stderr")}
    done = subprocess.run([sys.executable, "-m", "twinlake", *arguments], text=True, **streams)  # type: ignore[call-overload]
    os.close(write)
    return done.returncode, (done.stdout or "") + (done.stderr or "")


@pytest.mark.parametrize(
    "arguments",
    [["releases"], ["releases", "--json"], ["releases", "--help"]],
    ids=["a table", "JSON", "what typer writes"],
)
def test_a_result_that_nobody_reads_ends_a_command_in_silence(released: Path, arguments: list[str]) -> None:
    assert ended(*arguments, unread=("stdout",)) == (NO_READER, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_is_only_written_at_the_very_end_does_so_too(
    home: Path, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    code, told = ended("status", "--json", unread=("stdout",))

    assert (code, told.splitlines()) == (
        NO_READER,
        ["Twinlake is not running", f"why: nothing runs for {home}", "do:  run `twinlake up`"],
    )


@pytest.mark.parametrize("unread", [("stderr",), ("stdout", "stderr")], ids=" and ".join)
def test_an_error_of_which_nobody_reads_does_so_too(home: Path, unread: tuple[str, ...]) -> None:
    assert ended("status", unread=unread) == (NO_READER, "")


def test_head_has_its_line_and_the_pipeline_does_not_say_that_something_differs(released: Path) -> None:
    piped = f"set -o pipefail; {sys.executable} -m twinlake releases | head -1"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (NO_READER, "")
    assert done.stdout.split()[:2] == ["release", "kind"]
