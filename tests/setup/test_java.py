import os
import subprocess
import sys
from pathlib import Path

import pytest

from twinlake.setup import java

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _nothing_in_the_usual_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_USUAL_FOLDERS", ())


def _java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25.0.1", 25)]
)
def test_the_version_is_read_from_what_java_says(tmp_path: Path, version: str, major: int) -> None:
    assert java.major_version(_java(tmp_path, version)) == major


def test_the_version_is_read_from_the_release_file_without_starting_java(tmp_path: Path) -> None:
    home = _java(tmp_path, "8")
    (home / "release").write_text('IMPLEMENTOR="x"\nJAVA_VERSION="21.0.2"\n')

    assert java.major_version(home) == 21


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    chosen, other = _java(tmp_path / "a", "17.0.1"), _java(tmp_path / "b", "21.0.1")

    assert java.find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}) == chosen


def test_an_unsupported_java_home_is_passed_over(tmp_path: Path) -> None:
    too_new, good = _java(tmp_path / "a", "25.0.1"), _java(tmp_path / "b", "21.0.1")

    assert java.find_java({"JAVA_HOME": str(too_new), "PATH": str(good / "bin")}) == good


def test_a_java_that_is_too_old_is_named_with_the_command_that_installs_one(tmp_path: Path) -> None:
    old = _java(tmp_path, "11.0.2")

    with pytest.raises(java.NoJava) as caught:
        java.find_java({"JAVA_HOME": str(old), "PATH": ""})

    text = str(caught.value)
    assert f"Java 11 in {old}" in text
    assert "Install it with:" in text


def test_no_java_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(java.NoJava, match="no Java at all"):
        java.find_java({"PATH": str(tmp_path)})


def test_a_python_that_is_too_old_is_named_with_the_command_that_installs_one(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    old.chmod(0o755)

    done = subprocess.run(
        ["sh", str(PROJECT / "infra" / "install.sh")], env={**os.environ, "PYTHON": str(old)},
        text=True, capture_output=True,
    )  # fmt: skip

    assert done.returncode == 1
    assert "found: Python 3.9.2" in done.stderr
    assert "nstall it with" in done.stderr


def test_the_finder_runs_before_anything_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-I", str(PROJECT / "twinlake" / "setup" / "java.py")],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip(), "bin", "java").exists()
