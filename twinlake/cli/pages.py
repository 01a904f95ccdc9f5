"""`twinlake open`: the pages of the console and of Airflow in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Annotated

import typer

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.cli.output import is_terminal, load_settings, say, tell

PAGES = ("console", "airflow")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("open")(open_command)


def open_command(
    page: Annotated[str, typer.Argument(metavar="|".join(PAGES), help="whose pages")] = "console",
) -> None:
    """Open the pages of the console or of Airflow in a browser, and print where they are.

    Without a terminal, or a screen, only print it.
    """
    if page not in PAGES:
        raise UsageError(f"there is no {page!r} to open", "", f"one of {', '.join(PAGES)}")
    settings = load_settings()
    services = settings.services()
    url, user = {
        "console": (services.console_url, services.console_user),
        "airflow": (services.airflow_url, services.airflow_user),
    }[page]
    if not url:
        raise UnreachableError(
            f"{page} is not running", f"{settings.services_file} names no address of it",
            f"start it: `twinlake up --only {page}`",
        )  # fmt: skip
    say(url)
    if user:
        tell(f"sign in as {user}; its password is in {settings.services_file}")
    if is_terminal() and _has_screen() and not webbrowser.open(url):
        tell("no browser could be started here")


def _has_screen() -> bool:
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
