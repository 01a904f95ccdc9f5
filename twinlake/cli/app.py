"""Puts the command line together: every module of this folder adds its own part."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import UsageError
from twinlake.base.version import VERSION

_COMMANDS = (
    "services", "doctor", "produce", "check", "batch", "jobs", "releases", "query", "quarantine",
    "changelog", "pause", "reload", "gallery", "dags", "editor", "new", "test",
)  # fmt: skip


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"twinlake {VERSION}")
        raise typer.Exit


def _choose_home(
    home: Annotated[
        str | None,
        typer.Option(help="the data directory; else $TWINLAKE_HOME, or .twinlake in the project"),
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="the folder of the project; else the nearest one upward from here")
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="print it, and end", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """One definition per table: a speed and a batch layer that are proved equal."""
    if home == "":
        raise UsageError("--home names no folder", "it is empty", "leave it out, or name a folder")
    if home is not None:
        folder = Path(home).expanduser().absolute()
        os.environ["TWINLAKE_HOME"] = str(folder)  # for what the command starts, too
    if project == "":
        raise UsageError("--project names no folder", "it is empty", "leave it out, or name a folder")
    if project is not None:
        os.environ["TWINLAKE_PROJECT"] = str(Path(project).expanduser().absolute())


def build_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="twinlake",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_choose_home)
    for name in _COMMANDS:
        import_module(f"twinlake.cli.{name}").register(app)
    return app
