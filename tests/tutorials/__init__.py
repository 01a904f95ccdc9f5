"""Pages that are tests: read as steps, and followed word for word on real services."""

from tests.project import PROJECT

DOCS = PROJECT / "docs"
PAGES = (DOCS / "first_project.md", DOCS / "producers.md", *sorted((DOCS / "tutorials").glob("*.md")))
