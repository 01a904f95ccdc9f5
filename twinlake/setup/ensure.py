"""Brings here what Java needs, where the library is installed: `make jars` does it for a checkout."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace

from twinlake.base.errors import UnreachableError
from twinlake.config.library import CHECKOUT, LIBRARY
from twinlake.config.settings import Settings
from twinlake.setup import jars
from twinlake.setup.class_archive import ArchiveError, make_archive
from twinlake.setup.java import find_java

PACKED = LIBRARY / "java" / "twinlake.jar"
"""The compiled Java classes, as a wheel brings them."""


def ensure_jars(settings: Settings, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Fetches the jars once, into a folder of the user's cache, checks each, and has Java map its classes.

    UnreachableError where they cannot be fetched; NoJava without a Java.
    """
    if CHECKOUT is not None:
        return
    complete = settings.jars / ".complete"
    if not complete.exists():
        say(f"fetching the jars, once, into {settings.jars} (about 400 MB)")
        settings.jars.mkdir(parents=True, exist_ok=True)
        try:
            jars.fetch(jars.read_list(jars.LIST.read_text()), settings.jars, find_java(environ))
        except jars.JarError as error:
            raise UnreachableError(
                "the jars could not be fetched", str(error), "check the connection, then run this again"
            ) from error
        complete.touch()
    if settings.classes.exists() and filecmp.cmp(PACKED, settings.classes, shallow=False):
        return
    settings.classes.parent.mkdir(exist_ok=True)
    shutil.copy(PACKED, settings.classes)
    say("making an archive of Java's classes, once (about a minute): services start twice as fast with it")
    os.environ["JAVA_HOME"] = str(find_java(environ))
    try:
        make_archive(replace(settings, in_project=None))
    except ArchiveError as error:
        say(f"{error}; Twinlake works without it, and starts slower")
