"""`twinlake show`: a definition as SQL or as Python, whichever of them it is written in."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import NotFoundError, UsageError, near
from twinlake.cli.output import load_settings
from twinlake.definitions.loader import Loaded, load
from twinlake.kinds.definition import SQL
from twinlake.kinds.kind import Kind


def register(app: typer.Typer) -> None:
    """Adds `show`."""
    app.command("show")(show_command)


def show_command(
    table: Annotated[str, typer.Argument(help="as its definition is called")],
    sql: Annotated[bool, typer.Option("--sql", help="as the statement of a .sql file")] = False,
    python: Annotated[bool, typer.Option("--python", help="as the module of a .py file")] = False,
) -> None:
    """Write a table's definition in either form: what is in its file, and what could stand there instead.

    Both forms are one definition with one fingerprint: a table whose file is replaced is not built again.
    """
    if sql == python:
        why = "both forms are asked for" if sql else "it is not said in which form"
        raise UsageError("a definition is shown in one form", why, "add --sql or --python")
    found = _named(table, load(*load_settings().sources))
    about = _about(found)
    if sql:
        from twinlake.kinds.sql_form.writing import statement

        text = statement(found, about)
    else:
        from twinlake.scaffold.definition_text import module_text

        text = module_text([found], about)
    typer.echo(text, nl=False)


def _named(table: str, loaded: Loaded) -> Kind:
    """The definition; the error of its file where that is wrong."""
    for one in loaded.tables:
        if one.name == table:
            return one
    for error in loaded.wrong:
        if error.facts.get("table") == table:
            raise error
    what = f"there is no table {table!r}{near(table, (one.name for one in loaded.tables))}"
    raise NotFoundError(what, "no definition has this name", "name another")


def _about(table: Kind) -> str:
    """What is said of it in prose on top of its file."""
    if table.place is None:
        return ""
    text = Path(table.place.file).read_text()
    if table.place.file.endswith(SQL):
        from twinlake.kinds.sql_form import header

        return header.read(text).about
    return ast.get_docstring(ast.parse(text)) or ""
