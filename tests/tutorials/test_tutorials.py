"""Every tutorial, and each guide that is one, word for word on real services: its commands, its files, what
it presses, and what it says that one sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import browser
from tests.project import PROJECT
from tests.tutorials.reader import Reader
from tests.tutorials.steps import Command, Shown, steps

DOCS = PROJECT / "docs"
PAGES = ["producers", *sorted(f"tutorials/{path.stem}" for path in (DOCS / "tutorials").glob("*.md"))]
NOTEBOOKS = ("tutorials/notebook",)
PRESSED = ("tutorials/approve",)
"""Those that need a browser."""


def text_of(page: str) -> str:
    return (DOCS / f"{page}.md").read_text()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.end()
    left = made.processes()
    for process in left:
        process.kill()
    assert left == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_understood_whole(page: str) -> None:
    found = steps(text_of(page), is_notebook=page in NOTEBOOKS)

    assert isinstance(found[0], Command) and found[0].line.startswith("twinlake new project ")
    assert found[-1] == Command(line="twinlake down")
    assert any(isinstance(step, Shown) for step in found)


@pytest.mark.services
@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=browser.needed if page in PRESSED else ()) for page in PAGES]
)
def test_a_tutorial_works_as_it_is_written(page: str, reader: Reader) -> None:
    for step in steps(text_of(page), is_notebook=page in NOTEBOOKS):
        reader.do(step)
    reader.leave()

    assert reader.processes() == [], "the page leaves something running"
