"""Pages that are tests: read as steps, and followed word for word on real services."""

from tests.project import PROJECT

DOCS = PROJECT / "docs"
TUTORIALS = tuple(sorted((DOCS / "tutorials").glob("*.md")))
GUIDES = (DOCS / "first_project.md", DOCS / "producers.md")
PAGES = (*GUIDES, *TUTORIALS)
