"""`twinlake new project`: a folder that runs at once, with all that a person would otherwise copy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file, shown_path
from twinlake.cli.output import say, tell
from twinlake.config.library import TEMPLATE

_HIDDEN = {"gitignore": ".gitignore", "gitkeep": ".gitkeep"}
"""Names in the template -> in a project: a package leaves hidden files out."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    new = typer.Typer(help="Make what a person would otherwise copy.", no_args_is_help=True)
    new.callback()(lambda: None)  # with one command alone, typer would leave its name out
    new.command("project")(project_command)
    app.add_typer(new, name="new")


def project_command(
    folder: Annotated[Path, typer.Argument(help="is made; its name is the project's")],
) -> None:
    """Make a project that runs at once: one topic, one table, their contracts, DAGs, sample records."""
    root = folder.expanduser().absolute()
    if not _NAME.fullmatch(root.name):
        raise UsageError(
            f"a project cannot be called {root.name!r}",
            "names have letters, digits, _ and -, a letter first", "choose another folder",
        )  # fmt: skip
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        why = "there is something in it already" if root.is_dir() else "it is a file"
        raise UsageError(f"{root} cannot become a project", why, "name a new folder")
    for place, content in files(root.name):
        replace_file(root / place, content)
    say(f"{shown_path(root)}: a project with topic visits and table visits_per_page")
    tell(f"next: `cd {shown_path(root)}`, `twinlake up`, `twinlake produce visits --count 1000`, then")
    tell('`twinlake query "SELECT * FROM serve.visits_per_page"`; README.md says where what is')


def files(name: str) -> Iterator[tuple[str, str]]:
    """By its place in a project of this name, each file's content."""
    for file in sorted(TEMPLATE.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            place = file.relative_to(TEMPLATE)
            yield (
                place.with_name(_HIDDEN.get(place.name, place.name)).as_posix(),
                file.read_text().replace("PROJECT_NAME", name),
            )
