"""The home is for its owner alone: what lies open in it is closed by the folder around it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from twinlake.services.folders import Folders


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Folders]:
    umask = os.umask(0)
    yield Folders(home=tmp_path / "home")
    os.umask(umask)


def mode(home: Path) -> int:
    return stat.S_IMODE(home.stat().st_mode)


def test_a_home_is_made_for_its_owner_alone(folders: Folders) -> None:
    folders.make()

    assert mode(folders.home) == 0o700
    assert folders.close() == ""


def test_a_home_that_is_open_to_all_is_closed_with_a_word(folders: Folders) -> None:
    for name in ("lake", "run"):
        (folders.home / name).mkdir(parents=True)
    (folders.home / "twinlake.toml").touch()
    folders.home.chmod(0o755)

    assert "was open to every user" in folders.close()
    assert mode(folders.home) == 0o700
    assert folders.close() == ""


def test_a_folder_with_files_of_others_is_left_as_it_is_with_a_warning(folders: Folders) -> None:
    folders.home.mkdir(mode=0o755)
    (folders.home / "mine.txt").touch()

    warned = folders.close()

    assert "every user of this machine can read the lake" in warned and "mine.txt" in warned
    assert f"`chmod 700 {folders.home}`" in warned
    assert mode(folders.home) == 0o755


def test_a_group_that_was_let_in_stays_in(folders: Folders) -> None:
    folders.home.mkdir()
    folders.home.chmod(0o750)

    assert folders.close() == ""
    assert mode(folders.home) == 0o750


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_a_folder_of_somebody_else_is_left_to_him(folders: Folders) -> None:
    """As the SQL server's container has one."""
    folders.home.mkdir()
    folders.home.chmod(0o777)
    os.chown(folders.home, 65534, -1)

    assert folders.close() == ""
    assert mode(folders.home) == 0o777
