"""docs/commands.md is what the command line is, and names every command."""

from __future__ import annotations

from tests.project import PROJECT
from twinlake.cli.app import COMMANDS
from twinlake.reference.commands import text


def test_docs_commands_md_is_what_the_code_makes() -> None:
    found = (PROJECT / "docs" / "commands.md").read_text()

    assert found == text(), "run `python -m twinlake.reference`"
    for names in COMMANDS.values():
        assert all(f"\n### twinlake {name}" in found for name in names)
