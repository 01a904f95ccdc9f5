"""The command line `twinlake`: puts the commands together and turns errors into exit codes."""

from __future__ import annotations

import sys
from importlib import import_module

import typer

from jobs.commands.output import report_error
from jobs.errors import TwinlakeError

_COMMANDS = ("services", "topics", "check", "batch", "jobs", "releases", "query")


def build_app() -> typer.Typer:
    """The whole command line; every module in jobs/commands adds its own part."""
    app = typer.Typer(
        name="twinlake",
        help="One definition per table: a speed and a batch layer that are proved equal.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name in _COMMANDS:
        import_module(f"jobs.commands.{name}").register(app)
    return app


def main() -> None:
    """Runs one command: exit code 0 ok, 1 difference or failed check, 2 wrong use, 3 not reachable."""
    try:
        build_app()()
    except TwinlakeError as error:
        sys.exit(report_error(error, as_json="--json" in sys.argv))


if __name__ == "__main__":
    main()
