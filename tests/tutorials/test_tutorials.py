"""Every tutorial, word for word on real services: its commands, its files, what it presses, and what it says
that one sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import chromium
from tests.tutorials import PAGES, TUTORIALS
from tests.tutorials.reader import Reader
from tests.tutorials.steps import Command, Press, Shown, of_page


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_a_page_is_understood_whole(page: Path) -> None:
    found = of_page(page)

    assert isinstance(found[0], Command) and found[0].line.startswith("twinlake new project ")
    assert found[-1] == Command(line="twinlake down")
    assert any(isinstance(step, Shown) for step in found)


def needs(page: Path) -> list[pytest.MarkDecorator]:
    return [chromium.needed] if any(isinstance(step, Press) for step in of_page(page)) else []


@pytest.mark.services
@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", [pytest.param(page, marks=needs(page), id=page.stem) for page in TUTORIALS])
def test_a_tutorial_works_as_it_is_written(page: Path, reader: Reader) -> None:
    reader.follow(page)

    assert reader.processes() == [], "the page leaves something running"
