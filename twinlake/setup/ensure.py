"""Brings here what Java needs, where the library is installed: `make jars` does it for a checkout."""

from __future__ import annotations

import fcntl
import filecmp
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.files import full_disk
from twinlake.config.library import CHECKOUT, LIBRARY
from twinlake.config.settings import Settings
from twinlake.setup import jars
from twinlake.setup.class_archive import TRIED, ArchiveError, make_archive
from twinlake.setup.java import NoJava, find_java

PACKED = LIBRARY / "java" / "twinlake.jar"
"""The compiled Java classes, as a wheel brings them."""


def java_or_refuse(environ: Mapping[str, str]) -> Path:
    """The JAVA_HOME to use; UsageError where there is no Java that fits."""
    try:
        return find_java(environ)
    except NoJava as error:
        what, _, remedy = str(error).partition("\n")
        raise UsageError(what, "", remedy.replace("\n", "; ")) from error


def ensure_jars(settings: Settings, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Fetches the jars once, into a folder of the user's cache, checks each, and has Java map its classes.

    UnreachableError where they cannot be fetched; UsageError without a Java, or where they cannot be kept.
    """
    if CHECKOUT is not None:
        return
    java_home = java_or_refuse(environ)
    if _all_is_here(settings):
        return
    try:
        with _alone(settings.jars, say):
            if not _all_is_here(settings):  # another command may have brought it meanwhile
                _bring(settings, java_home, say)
    except OSError as error:
        raise full_disk(settings.jars, error=error) or UsageError(
            f"the jars cannot be kept in {settings.jars}", str(error),
            "fix its rights, or name another folder for caches in XDG_CACHE_HOME",
        ) from error  # fmt: skip


def _all_is_here(settings: Settings) -> bool:
    return (
        jars.are_here(settings.jars)
        and (settings.jars / TRIED).exists()
        and settings.classes.exists()
        and filecmp.cmp(PACKED, settings.classes, shallow=False)
    )


@contextmanager
def _alone(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """While no other process brings something to this folder; the kernel lets go with the process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another command, which fetches the jars into {folder}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _bring(settings: Settings, java_home: Path, say: Callable[[str], None]) -> None:
    if not jars.are_here(settings.jars):
        say(f"fetching the jars, once, into {settings.jars} (about 400 MB)")
        try:
            jars.fetch_all(settings.jars, java_home)
        except jars.JarError as error:
            raise full_disk(settings.jars) or UnreachableError(
                "the jars could not be fetched", str(error), "check the connection, then run this again"
            ) from error
    tried = settings.jars / TRIED
    tried.unlink(missing_ok=True)
    settings.classes.parent.mkdir(exist_ok=True)
    shutil.copy(PACKED, settings.classes)
    say("making an archive of Java's classes, once (about a minute): services start twice as fast with it")
    os.environ["JAVA_HOME"] = str(java_home)
    try:
        make_archive(settings)
    except ArchiveError as error:
        say(f"{error}; Twinlake works without it, and starts slower")
    tried.touch()
