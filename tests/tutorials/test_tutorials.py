"""Every tutorial, word for word on real services: its commands, its files, and what it says that one sees."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project import PROJECT
from tests.tutorials.reader import Reader
from tests.tutorials.shell import LONGEST_S
from tests.tutorials.steps import Command, Shown, steps

PAGES = sorted(path.stem for path in (PROJECT / "docs" / "tutorials").glob("*.md"))
NOTEBOOKS = ("notebook",)


def text_of(page: str) -> str:
    return (PROJECT / "docs" / "tutorials" / f"{page}.md").read_text()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    yield made
    made.leave()
    for data in made.folder.glob("*/.twinlake"):  # a page that failed has not come to its last line
        down = [sys.executable, "-m", "twinlake", "--home", str(data), "down"]
        print(subprocess.run(down, cwd=data.parent, capture_output=True, text=True, timeout=LONGEST_S))
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
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_works_as_it_is_written(page: str, reader: Reader) -> None:
    for step in steps(text_of(page), is_notebook=page in NOTEBOOKS):
        reader.do(step)
    reader.leave()

    assert reader.processes() == [], "the page leaves something running"
