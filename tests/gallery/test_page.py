"""docs/gallery.md says what the code says."""

from tests.demo.gallery_page import text
from tests.project import PROJECT


def test_the_page_is_made_from_the_definitions_and_oracles_as_they_are() -> None:
    page = (PROJECT / "docs" / "gallery.md").read_text()

    assert page == text(), "python -m tests.demo.gallery_page > docs/gallery.md"
