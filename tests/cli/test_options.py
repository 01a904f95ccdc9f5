"""What is refused before anything is done: an empty name, and an option that would be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from twinlake.base.errors import UsageError
from twinlake.cli.app import build_app
from twinlake.cli.options import names_in


def test_blanks_around_names_do_not_count_and_an_option_that_is_not_given_has_none() -> None:
    assert names_in("--table", "orders, latest_order ") == ["orders", "latest_order"]
    assert names_in("--table", None) == []


@pytest.mark.parametrize("given", ["", " ", "x,,y", "x, "])
@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("up", "--only"), ("up", "--without"), ("unit", "--only"), ("upgrade", "--only"),
        ("rotate", "--only"), ("plan", "--table"), ("plan", "--remove"),
    ],
)  # fmt: skip
def test_an_empty_name_is_refused(home: Path, command: str, option: str, given: str) -> None:
    done = CliRunner().invoke(build_app(), [command, option, given])

    assert isinstance(done.exception, UsageError)
    assert done.exception.what == f"{option} has an empty name"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["status", "--disk", "--watch"], "--disk and --watch were given"),
        (["status", "--disk", "--short"], "--disk and --short were given"),
        (["status", "--short", "--json"], "--json and --short were given"),
        (["doctor", "--example", "--json"], "--example and --json were given"),
        (["query", "SELECT 1", "--force"], "--force was given without a file"),
    ],
)
def test_an_option_that_would_be_left_out_is_refused(home: Path, arguments: list[str], what: str) -> None:
    done = CliRunner().invoke(build_app(), arguments)

    assert isinstance(done.exception, UsageError) and done.exception.what == what
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["reset", "upgrade", "release"])
def test_y_is_short_for_yes_everywhere(command: str) -> None:
    tree: Any = typer.main.get_command(build_app())

    assert [one.opts for one in tree.commands[command].params if "--yes" in one.opts] == [["--yes", "-y"]]
