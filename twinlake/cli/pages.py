"""`twinlake open`: the pages of the console, of Airflow and of the documentation in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import UnreachableError, UsageError
from twinlake.base.files import shown_path
from twinlake.cli.output import is_terminal, load_settings, say, tell
from twinlake.config.library import CHECKOUT, LIBRARY

PAGES = ("console", "airflow", "docs")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("open")(open_command)


def open_command(
    page: Annotated[str, typer.Argument(metavar="|".join(PAGES), help="whose pages")] = "console",
) -> None:
    """Open the console, Airflow or the documentation in a browser, and print where it is.

    Without a terminal, or a screen, only print it. The documentation is this version's, and needs no service.
    """
    if page not in PAGES:
        raise UsageError(f"there is no {page!r} to open", "", f"one of {', '.join(PAGES)}")
    if page == "docs":
        _open(site().as_uri())
        return
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
    password = shown_path(settings.services_file)
    _open(url, f"sign in as {user}; its password is in {password}" if user else "")


def site() -> Path:
    """The first page of the documentation, as a wheel brings it; a checkout has to build it."""
    first = (LIBRARY / "site" if CHECKOUT is None else CHECKOUT / "build" / "site") / "index.html"
    if not first.is_file():
        raise UsageError("the documentation is not built here", f"there is no {first}", "run `make site`")
    return first


def _open(url: str, remark: str = "") -> None:
    say(url)
    if remark:
        tell(remark)
    if is_terminal() and _has_screen() and not webbrowser.open(url):
        tell("no browser could be started here")


def _has_screen() -> bool:
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys())
