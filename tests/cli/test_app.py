"""The command line imports the module of one command alone: which that is, a list says."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
import typer

from tests.project import PROJECT
from twinlake.cli.app import COMMANDS, command_of


@pytest.mark.parametrize("module", COMMANDS)
def test_a_module_adds_the_commands_that_are_listed(module: str) -> None:
    app = typer.Typer()
    import_module(f"twinlake.cli.{module}").register(app)

    commands = [one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands]
    groups = [one.name for one in app.registered_groups]
    assert {*commands, *groups} == set(COMMANDS[module])


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["check"], "check"),
        (["--home", "test", "--project=new", "check", "--json"], "check"),
        (["--version"], None),
        (["--help", "check"], None),
        ([], None),
        (["--home"], None),
    ],
)
def test_the_command_is_found_behind_the_options(arguments: list[str], command: str | None) -> None:
    assert command_of(arguments) == command


def test_a_command_s_help_imports_no_other_command() -> None:
    code = (
        "import sys; sys.argv[1:] = ['check', '--help']\n"
        "from twinlake.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('twinlake.cli.')))"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)

    assert "twinlake.cli.check" in done.stdout and "twinlake.cli.releases" not in done.stdout
