"""What `Walk` counts is what `du` counts, whatever lies in the folder and happens to it meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.project import PROJECT
from twinlake.base.disk import Walk, room

NOBODY = 65534


def du(*folders: Path) -> int:
    """Bytes by the system's own command, all folders together."""
    done = subprocess.run(["du", "-sc", "--block-size=1", *map(str, folders)], capture_output=True, text=True)
    return int(done.stdout.splitlines()[-1].split()[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Small and large files, a sparse one, one with two names, links, and a folder of many entries."""
    folder = tmp_path / "folder"
    (folder / "many").mkdir(parents=True)
    for number in range(300):
        (folder / "many" / f"{'x' * 80}{number}").write_text("x" * number)
    with open(folder / "large", "wb") as file:
        file.write(os.urandom(3_000_000))
        os.fsync(file)  # it has its blocks once it is on the disk
    with open(folder / "sparse", "wb") as file:
        file.truncate(50_000_000)
    os.link(folder / "large", folder / "many" / "large again")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "not counted").write_bytes(os.urandom(1_000_000))
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "loop").symlink_to(folder)
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    return folder


def test_it_counts_what_du_counts(folder: Path) -> None:
    walk = Walk()
    found = list(walk.entries(folder))

    assert sum(one.bytes for one in found) == du(folder)
    assert 3_000_000 < du(folder) < 6_000_000
    assert {one.path for one in found} >= {"", "many", "link", "sparse", "pipe", f"many/{'x' * 80}7"}
    assert walk.unreadable == {}


def test_a_file_of_two_names_in_two_folders_is_in_the_first_alone(folder: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    os.link(folder / "large", second / "large")
    walk = Walk()

    counted = [sum(one.bytes for one in walk.entries(each)) for each in (folder, second)]

    assert sum(counted) == du(folder, second) and counted[1] < 1_000_000


def test_a_folder_that_is_counted_elsewhere_is_left_out(folder: Path) -> None:
    paths = {one.path for one in Walk().entries(folder, [folder / "many"])}
    assert "" in paths and not any(path.startswith("many") for path in paths)


def test_of_no_folder_there_is_nothing(tmp_path: Path) -> None:
    walk = Walk()
    assert list(walk.entries(tmp_path / "none")) == [] and walk.unreadable == {}
    assert room(tmp_path / "none" / "deeper") == room(tmp_path)


def test_what_vanishes_meanwhile_is_left_out(folder: Path) -> None:
    walk, found = Walk(), list[str]()
    for one in walk.entries(folder):
        if one.path == "":  # its names are read next
            continue
        if not found:
            for file in [*(folder / "many").iterdir(), folder / "large", folder / "sparse"]:
                file.unlink()
            (folder / "many").rmdir()
        found.append(one.path)

    assert walk.unreadable == {}
    assert len(found) < 10


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_what_may_not_be_read_is_named_and_the_rest_is_counted() -> None:
    with tempfile.TemporaryDirectory() as made:
        closed = Path(made) / "closed"
        closed.mkdir(mode=0o700)
        (closed / "file").write_bytes(b"x" * 100_000)
        (Path(made) / "open").write_bytes(b"x" * 10_000)
        Path(made).chmod(0o755)
        code = (
            "import os, sys; from twinlake.base.disk import Walk\n"
            f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
            "walk = Walk(); found = list(walk.entries(__import__('pathlib').Path(sys.argv[1])))\n"
            "print(sorted(one.path for one in found), walk.unreadable)"
        )
        done = subprocess.run([sys.executable, "-c", code, made], capture_output=True, text=True, cwd=PROJECT)

    assert done.stdout.strip() == f"['', 'closed', 'open'] {{'{closed}': 'Permission denied'}}", done.stderr
