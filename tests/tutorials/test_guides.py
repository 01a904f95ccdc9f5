"""The guides that show commands in order, followed as the tutorials are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tutorials import GUIDES
from tests.tutorials.reader import Reader
from tests.tutorials.steps import Press, of_page


@pytest.mark.parametrize("page", GUIDES, ids=[page.stem for page in GUIDES])
def test_a_guide_needs_no_browser(page: Path) -> None:
    assert not any(isinstance(step, Press) for step in of_page(page))


@pytest.mark.services
@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", GUIDES, ids=[page.stem for page in GUIDES])
def test_a_guide_works_as_it_is_written(page: Path, reader: Reader) -> None:
    reader.follow(page)

    assert reader.processes() == [], "the page leaves something running"
