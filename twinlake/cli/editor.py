"""`twinlake editor-schemas`: JSON Schemas by which an editor completes and checks a project's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file
from twinlake.cli.output import say


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("editor-schemas")(editor_schemas)


def schemas() -> dict[str, dict[str, Any]]:
    """By the name of its file, each schema."""
    from twinlake.config.settings_schema import settings_schema
    from twinlake.topics.contract_schema import contract_schema

    return {"contract.schema.json": contract_schema(), "twinlake.schema.json": settings_schema()}


def editor_schemas(folder: Annotated[Path, typer.Argument(help="is made where it is missing")]) -> None:
    """Write the JSON Schemas of a project's files, for an editor that completes and checks them
    (docs/editors.md)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, made in schemas().items():
            replace_file(folder / name, json.dumps(made, indent=1) + "\n")
            say(str(folder / name))
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written", error.strerror or str(error), "fix its rights, or name another"
        ) from error
