"""Brings here what Java needs, where the library is installed: `make jars` does it for a checkout."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from twinlake.base.errors import UnreachableError, UsageError
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

    UnreachableError where they cannot be fetched; UsageError without a Java.
    """
    if CHECKOUT is not None:
        return
    java_home = java_or_refuse(environ)
    if not jars.are_here(settings.jars):
        say(f"fetching the jars, once, into {settings.jars} (about 400 MB)")
        try:
            jars.fetch_all(settings.jars, java_home)
        except jars.JarError as error:
            raise UnreachableError(
                "the jars could not be fetched", str(error), "check the connection, then run this again"
            ) from error
    tried = settings.jars / TRIED
    if tried.exists() and settings.classes.exists() and filecmp.cmp(PACKED, settings.classes, shallow=False):
        return
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
