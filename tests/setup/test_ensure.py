"""What an installed library fetches for itself, and what it says where it cannot."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from twinlake.base.errors import FullDiskError, UnreachableError, UsageError
from twinlake.config.settings import Settings
from twinlake.setup import ensure, jars
from twinlake.setup.class_archive import ArchiveError
from twinlake.setup.java import NoJava


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A library that is no checkout, with a jar of classes, and a Java that is not asked for anything."""
    (tmp_path / "packed.jar").write_bytes(b"classes")
    monkeypatch.setattr(ensure, "CHECKOUT", None)
    monkeypatch.setattr(ensure, "PACKED", tmp_path / "packed.jar")
    monkeypatch.setattr(ensure, "find_java", lambda environ: tmp_path / "java")
    monkeypatch.setenv("JAVA_HOME", "before")  # put back at the end
    return Settings(home=tmp_path / "home", jars=tmp_path / "cache" / "jars")


def test_without_a_java_it_says_which_one_is_needed(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(environ: object) -> Path:
        raise NoJava("twinlake needs Java 17 or 21; found: no Java at all.\nInstall it with:  apt\nor so")

    monkeypatch.setattr(ensure, "find_java", none)

    with pytest.raises(UsageError, match="needs Java 17 or 21") as refused:
        ensure.ensure_jars(installed, {}, print)

    assert refused.value.remedy == "Install it with:  apt; or so"


def test_jars_that_cannot_be_fetched_are_reported_and_fetched_the_next_time(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise jars.JarError("no connection")

    monkeypatch.setattr(jars, "fetch", away)

    for _ in range(2):
        with pytest.raises(UnreachableError, match="no connection"):
            ensure.ensure_jars(installed, {}, print)


def test_all_is_done_once_and_the_classes_again_for_another_wheel(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(jars, "fetch", lambda artifacts, target, java: target.mkdir(parents=True))
    monkeypatch.setattr(ensure, "make_archive", lambda settings: done.append(settings.classes.read_text()))

    for content in ("classes", "classes", "others"):
        ensure.PACKED.write_text(content)
        ensure.ensure_jars(installed, {}, lambda text: None)

    assert done == ["classes", "others"]
    assert (installed.jars / jars.COMPLETE).exists()


def test_a_wheel_of_the_same_version_with_other_jars_fetches_them(
    installed: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def fetch(artifacts: Sequence[jars.Artifact], target: Path, java: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        fetched.append(" ".join(one.name for one in artifacts))

    monkeypatch.setattr(jars, "fetch", fetch)
    monkeypatch.setattr(jars, "LIST", tmp_path / "jars.txt")
    monkeypatch.setattr(ensure, "make_archive", lambda settings: None)

    for name in ("a", "a", "b"):
        jars.LIST.write_text(f"spark g:{name}:1 {'0' * 64}\n")
        ensure.ensure_jars(installed, {}, lambda text: None)

    assert fetched == ["a", "b"]


def test_an_archive_that_was_interrupted_is_made_the_next_time_and_one_that_failed_is_not(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[BaseException] = [KeyboardInterrupt(), ArchiveError("no room")]

    def make(settings: Settings) -> None:
        raise outcomes.pop(0)

    monkeypatch.setattr(jars, "fetch", lambda artifacts, target, java: target.mkdir(parents=True))
    monkeypatch.setattr(ensure, "make_archive", make)
    with pytest.raises(KeyboardInterrupt):
        ensure.ensure_jars(installed, {}, lambda text: None)

    for _ in range(2):
        ensure.ensure_jars(installed, {}, lambda text: None)

    assert outcomes == []


def test_jars_that_are_missing_are_fetched_again_by_a_command_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_ATTEMPTS", 0)
    monkeypatch.setattr(jars, "FETCH_JARS", "run `twinlake up`", raising=False)

    with pytest.raises(jars.JarError, match="then run `twinlake up`; it goes on"):
        jars.fetch(jars.read_list(jars.LIST.read_text())[:1], tmp_path, tmp_path)


def test_two_commands_at_once_fetch_the_jars_once(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched, said = list[Path](), list[str]()
    second_is_there = threading.Event()

    def fetch(artifacts: object, target: Path, java: Path) -> None:
        fetched.append(target)
        if len(fetched) > 1:
            second_is_there.set()
        assert second_is_there.wait(60)
        target.mkdir(parents=True, exist_ok=True)

    def say(text: str) -> None:
        said.append(text)
        if text.startswith("waiting for another command"):
            second_is_there.set()

    monkeypatch.setattr(jars, "fetch", fetch)
    monkeypatch.setattr(ensure, "make_archive", lambda settings: None)
    commands = [threading.Thread(target=ensure.ensure_jars, args=(installed, {}, say)) for _ in range(2)]
    for command in commands:
        command.start()
    for command in commands:
        command.join()

    assert fetched == [installed.jars]
    assert f"waiting for another command, which fetches the jars into {installed.jars}" in said


def test_a_cache_that_cannot_be_written_is_named_with_the_way_to_another_one(installed: Settings) -> None:
    installed.jars.parent.write_text("a file where the cache should be")

    with pytest.raises(UsageError, match=f"cannot be kept in {installed.jars}") as refused:
        ensure.ensure_jars(installed, {}, print)

    assert "XDG_CACHE_HOME" in refused.value.remedy


def test_where_the_disk_is_full_it_does_not_blame_the_connection(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise jars.JarError("58 jars could not be fetched")

    full = FullDiskError("the disk is full", "", "make room")
    monkeypatch.setattr(jars, "fetch", no_room)
    monkeypatch.setattr(ensure, "full_disk", lambda *folders, error=None: full)

    with pytest.raises(FullDiskError):
        ensure.ensure_jars(installed, {}, print)


def test_jars_that_are_here_are_used_where_nothing_can_be_written(
    installed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "fetch", lambda artifacts, target, java: target.mkdir(parents=True))
    monkeypatch.setattr(ensure, "make_archive", lambda settings: None)
    ensure.ensure_jars(installed, {}, print)
    lock = installed.jars.with_name(f"{installed.jars.name}.lock")
    lock.unlink()

    ensure.ensure_jars(installed, {}, print)

    assert not lock.exists()
