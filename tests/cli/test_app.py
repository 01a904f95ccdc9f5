"""The command line imports the module of one command alone: which that is, a list says."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest
import typer

from tests.project import PROJECT
from twinlake.cli.app import COMMANDS, GROUPS, command_of


@pytest.mark.parametrize("module", COMMANDS)
def test_a_module_adds_the_commands_that_are_listed(module: str) -> None:
    app = typer.Typer()
    import_module(f"twinlake.cli.{module}").register(app)

    commands = [one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands]
    groups = [one.name for one in app.registered_groups]
    assert {*commands, *groups} == set(COMMANDS[module])


def test_each_command_is_in_one_group() -> None:
    grouped = [command for commands in GROUPS.values() for command in commands]

    assert sorted(grouped) == sorted(command for commands in COMMANDS.values() for command in commands)


def test_help_shows_the_groups_in_their_order() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "--help"], cwd=PROJECT, capture_output=True, text=True,
        env={"COLUMNS": "100", "PATH": "", "LANG": "C.UTF-8"},
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    places = [done.stdout.index(f" {title} ") for title in GROUPS]
    assert places == sorted(places) and done.stdout.index(" plan ") < done.stdout.index(" promote ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell: str) -> None:
    def completed(*words: str) -> str:
        line = " ".join(("twinlake", *words))
        asked = {
            "_TWINLAKE_COMPLETE": f"complete_{shell}", "COMP_WORDS": line, "COMP_CWORD": str(len(words)),
            "_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }  # fmt: skip
        code = "import sys; sys.argv = ['twinlake']; from twinlake.__main__ import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True,
            env={"PATH": "", **asked},
        )  # fmt: skip
        return done.stdout

    assert "promote" in completed("pro") and "rollback" not in completed("pro")
    assert "--unwitnessed" in completed("promote", "--unw")


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


@pytest.mark.parametrize(
    ("arguments", "what", "help"),
    [
        (["quarantine", "--json"], "Missing argument 'topic'", "twinlake quarantine --help"),
        (["users", "list", "--json", "--nope"], "No such option: --nope", "twinlake users list --help"),
        (["jobs", "list", "--limit", "x", "--json"], "'x' is not a whole", "twinlake jobs list --help"),
    ],
)
def test_with_json_what_was_typed_wrongly_is_an_error_on_stdout(
    arguments: list[str], what: str, help: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", *arguments], cwd=PROJECT, capture_output=True, text=True
    )

    error = json.loads(done.stdout)
    assert done.returncode == 2 and what in error.pop("what") and done.stderr
    assert error == {"error": "UsageError", "why": "", "remedy": f"see `{help}`"}


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
