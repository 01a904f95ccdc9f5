"""Puts the command line together: every module of this folder adds its own part."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, TyperInfo

from twinlake.base.errors import UsageError
from twinlake.base.version import VERSION

COMMANDS: dict[str, tuple[str, ...]] = {
    "services": ("up", "down", "logs", "reset"), "status": ("status",), "doctor": ("doctor",),
    "produce": ("produce",),
    "check": ("check",), "dev": ("dev",), "show": ("show",),
    "batch": ("rebuild", "verify", "expire", "maintain"),
    "jobs": ("jobs",),
    "releases": ("plan", "build", "diff", "gate", "promote", "reject", "rollback", "retire", "releases"),
    "query": ("query", "explain"), "get": ("get",),
    "quarantine": ("quarantine", "replay"), "changelog": ("changelog",), "publish": ("publish",),
    "webhook": ("webhook",),
    "pause": ("pause", "resume"), "reload": ("reload", "topic"), "gallery": ("gallery",), "dags": ("dags",),
    "editor": ("editor-schemas", "editor-completions"), "new": ("new",), "test": ("test",),
    "users": ("users", "user"), "audit": ("audit",), "alarm": ("alarm",), "queries": ("queries",),
    "backup": ("backup", "restore"), "rotate": ("rotate",), "support": ("support",), "unit": ("unit",),
    "upgrade": ("upgrade",), "release": ("release",), "pages": ("open",), "sql": ("sql",), "acls": ("acls",),
    "tables": ("tables", "describe"),
}  # fmt: skip
"""Module -> the commands that it adds."""
GROUPS: dict[str, tuple[str, ...]] = {
    "Start and stop": ("up", "down", "status", "logs", "open", "doctor", "reset"),
    "Write a project": (
        "new", "check", "dev", "test", "show", "produce", "gallery", "editor-schemas", "editor-completions",
        "dags",
    ),
    "Change what readers see": (
        "release", "plan", "build", "diff", "gate", "promote", "reject", "rollback", "releases", "retire",
        "reload", "topic",
    ),
    "Read tables": (
        "tables", "describe", "sql", "query", "get", "explain", "changelog", "publish", "webhook",
    ),
    "Prove and repair": ("verify", "rebuild", "quarantine", "replay"),
    "Operate": (
        "jobs", "queries", "pause", "resume", "alarm", "audit", "users", "user", "rotate", "backup",
        "restore", "expire", "maintain", "support", "unit", "acls", "upgrade",
    ),
}  # fmt: skip
"""How the help shows them, in this order."""
_TITLES = {command: title for title, commands in GROUPS.items() for command in commands}
_VALUED = ("--home", "--project")
"""Options before a command that are followed by a value."""


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


class InOrder(TyperGroup):
    """Its commands in the order of GROUPS, which is that of the titles, too."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=list(_TITLES).index)


def build_app(command: str | None = None) -> typer.Typer:
    """The whole command line; or this command alone, for what others import takes a second."""
    app = typer.Typer(
        name="twinlake",
        cls=InOrder,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_choose_home)
    modules = [name for name, commands in COMMANDS.items() if command is None or command in commands]
    for name in modules or COMMANDS:
        import_module(f"twinlake.cli.{name}").register(app)
    _group(app)
    return app


def _group(app: typer.Typer) -> None:
    """Under the titles of GROUPS."""
    found: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for one in found:
        one.rich_help_panel = _TITLES[str(one.name or getattr(one.callback, "__name__", ""))]


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that these arguments name; None where that is for the whole command line to say."""
    left = list(arguments)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option in _VALUED and left:
            left.pop(0)
        elif not option.startswith(tuple(f"{one}=" for one in _VALUED)):
            return None
    return left[0] if left else None
