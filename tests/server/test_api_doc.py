"""docs/api.md is what the code says."""

from jobs.server.api_doc import text
from jobs.settings import PROJECT


def test_docs_api_md_is_what_the_code_makes() -> None:
    assert (PROJECT / "docs" / "api.md").read_text() == text(), "python -m jobs.server.api_doc > docs/api.md"
