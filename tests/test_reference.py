"""The reference pages of docs/ are what the code makes."""

from __future__ import annotations

import pytest

from twinlake.reference.__main__ import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run `python -m twinlake.reference`"
