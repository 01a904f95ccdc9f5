"""docs/api.md is what the code says."""

from tests.project import PROJECT
from twinlake.server.api_doc import text


def test_docs_api_md_is_what_the_code_makes() -> None:
    found = (PROJECT / "docs" / "api.md").read_text()

    assert found == text(), "python -m twinlake.server.api_doc > docs/api.md"
