"""docs/commands.md is what the command line is, and names every command."""

from __future__ import annotations

from twinlake.cli.app import COMMANDS
from twinlake.reference.commands import text


def test_every_command_has_a_heading_of_its_own_and_no_other_has_one() -> None:
    lines = text().splitlines()

    headings = {line.split()[2] for line in lines if line.startswith("### twinlake ")}
    assert headings == {name for names in COMMANDS.values() for name in names}


def test_a_group_that_runs_by_itself_is_there_and_an_alias_is_one_line() -> None:
    found = text()

    assert "### twinlake queries\n\n`twinlake queries [OPTIONS]`\n\nThe running queries" in found
    assert "### twinlake backup\n\n`twinlake backup [FOLDER] [OPTIONS]`\n\nCopies of the lake" in found
    assert "### twinlake user\n\nThe same as `twinlake users`.\n\n###" in found
    assert found.count("twinlake users add") == 2 and "twinlake user add" not in found
