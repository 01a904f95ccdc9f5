"""A file that is written whole has its name then and not before, and a failed one leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from twinlake.base import whole_file as module
from twinlake.base.errors import UsageError
from twinlake.base.whole_file import whole_file


@pytest.fixture(params=["without a name", "with a name"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On a file system that has files without a name, and on one that has not."""
    if request.param == "with a name":
        monkeypatch.delattr(os, "O_TMPFILE")
    return tmp_path


@contextmanager
def written(path: Path, replaces: bool = False) -> Iterator[IO[bytes]]:
    with whole_file(path, replaces) as file:
        file.write(b"rows")
        yield file


def test_it_is_there_once_it_is_whole(folder: Path) -> None:
    path = folder / "a.csv"
    with written(path):
        before = path.exists()

    assert (before, path.read_bytes(), [*folder.iterdir()]) == (False, b"rows", [path])
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


@pytest.mark.parametrize("replaces", [False, True])
def test_nothing_is_left_of_one_that_failed(folder: Path, replaces: bool) -> None:
    with pytest.raises(KeyboardInterrupt), written(folder / "a.csv", replaces):
        raise KeyboardInterrupt

    assert [*folder.iterdir()] == []


def test_an_existing_file_is_replaced_only_where_that_is_said(folder: Path) -> None:
    path = folder / "a.csv"
    path.write_text("old")
    with pytest.raises(UsageError, match="is there already"), written(path):
        pytest.fail("it is not even begun")
    with pytest.raises(ZeroDivisionError), written(path, True):
        raise ZeroDivisionError
    kept = path.read_text()
    with written(path, True):
        pass

    assert (kept, path.read_text(), [*folder.iterdir()]) == ("old", "rows", [path])


def test_one_that_somebody_made_meanwhile_stays(folder: Path) -> None:
    path = folder / "a.csv"
    with pytest.raises(UsageError, match="is there already"), written(path):
        path.write_text("somebody's")

    assert (path.read_text(), [*folder.iterdir()]) == ("somebody's", [path])


def test_where_it_cannot_be_is_said_before(folder: Path) -> None:
    for path, why in ((folder, "it is a folder"), (folder / "none" / "a", "there is no folder")):
        with pytest.raises(UsageError, match=why), written(path):
            pytest.fail("it is not even begun")


def test_a_kill_leaves_nothing(tmp_path: Path) -> None:
    code = (
        f"from {module.__name__} import whole_file\nimport os, signal, sys\nfrom pathlib import Path\n"
        "with whole_file(Path(sys.argv[1])) as file:\n"
        "    file.write(bytes(1 << 20)); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.csv")], check=False)

    assert (done.returncode, [*tmp_path.iterdir()]) == (-signal.SIGKILL, [])
