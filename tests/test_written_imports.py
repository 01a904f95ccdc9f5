"""Programs that tests and docs hold as text import what is there: most of them run in shards alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import PROJECT

WRITTEN = re.compile(r"from ((?:twinlake|tests|benchmarks)(?:\.\w+)+) import ([\w, ]+)")
"""In modules, too, where Python itself would tell; a name of `twinlake` alone is its face's to tell."""


def source(module: str) -> Path | None:
    file = PROJECT / module.replace(".", "/")
    places = (file.with_suffix(".py"), file / "__init__.py")
    return next((place for place in places if place.is_file()), file if file.is_dir() else None)


def missing(text: str) -> Iterator[str]:
    """What is imported somewhere in a text and is not there."""
    for module, names in WRITTEN.findall(text):
        found = source(module)
        held = found.read_text() if found and found.is_file() else ""
        for name in (one.split(" as ")[0].strip() for one in names.split(",")):
            if found is None or not (re.search(rf"\b{name}\b", held) or source(f"{module}.{name}")):
                yield f"{module}: {name}"


def test_every_import_that_is_written_somewhere_is_of_something_that_is_there() -> None:
    folders = ("twinlake", "jobs", "tests", "benchmarks", "docs")
    files = {
        file for name in folders for kind in ("py", "md") for file in (PROJECT / name).rglob(f"*.{kind}")
    } - {Path(__file__)}

    assert len(files) > 500
    assert [f"{file}: {one}" for file in files for one in missing(file.read_text())] == []


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ('"from twinlake.lake import store; from twinlake.base import errors"', ["twinlake.lake: store"]),
        ('"from twinlake.lake.storage import store"', []),
        ("from twinlake.nowhere import it", ["twinlake.nowhere: it"]),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named(written: str, told: list[str]) -> None:
    assert [*missing(written)] == told
