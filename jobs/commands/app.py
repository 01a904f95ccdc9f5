"""Puts the command line together: every module of this folder adds its own part."""

from __future__ import annotations

from importlib import import_module

import typer

_COMMANDS = ("services", "topics", "check", "batch", "jobs", "releases", "query")


def build_app() -> typer.Typer:
    """The whole command line."""
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
