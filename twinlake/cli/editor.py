"""`twinlake editor-schemas`, `editor-completions`: what an editor completes and checks files by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings, say, show_error

DATA, SNIPPETS = "twinlake.completions.json", "twinlake.code-snippets"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("editor-schemas")(editor_schemas)
    app.command("editor-completions")(editor_completions)


def schemas() -> dict[str, dict[str, Any]]:
    """By the name of its file, each schema."""
    from twinlake.config.settings_schema import settings_schema
    from twinlake.topics.contract_schema import contract_schema

    return {"contract.schema.json": contract_schema(), "twinlake.schema.json": settings_schema()}


def editor_schemas(folder: Annotated[Path, typer.Argument(help="is made where it is missing")]) -> None:
    """Write the JSON Schemas of a project's files, for an editor that completes and checks them
    (docs/editors.md)."""
    _write(folder, schemas())


def editor_completions(
    folder: Annotated[Path, typer.Argument(help="is made where it is missing")],
    watched: Annotated[bool, typer.Option("--watch", help="write again after each save")] = False,
) -> None:
    """Write what an editor completes in definitions: columns of topics and tables, measures and what they
    take, as snippets and as plain data (docs/editors.md). What a file that is wrong now hides stays as it was
    written before; exit code 1 says that there is one."""
    settings = load_settings()
    is_wrong = False

    def look() -> Iterable[Path]:
        nonlocal is_wrong
        from twinlake.definitions.completions import completions, snippets
        from twinlake.definitions.loader import imported
        from twinlake.releases.check import check
        from twinlake.topics.topic import load_topic

        report = check(settings.sources)
        for problem in report.problems:
            show_error(problem)
        topics = {one["name"]: load_topic(one["name"], *settings.sources).columns for one in report.topics}
        tables = {
            one["name"]: tuple((column["name"], column["type"]) for column in one["columns"])
            for one in report.tables
            if one["columns"] is not None
        }
        earlier = _earlier(folder / DATA) if report.problems else {}
        found = completions(earlier.get("topics", {}) | topics, earlier.get("tables", {}) | tables)
        _write(folder, {DATA: found, SNIPPETS: snippets(found)})
        is_wrong = bool(report.problems)
        return imported(settings.sources)

    if watched:
        from twinlake.cli.watch import watch

        watch(settings.sources, look)
    look()
    if is_wrong:
        raise typer.Exit(1)


def _earlier(file: Path) -> dict[str, dict[str, tuple[tuple[str, str], ...]]]:
    """The columns that were written before; none where the file is not there, or another program's."""
    try:
        known = json.loads(file.read_text())
        return {
            what: {
                name: tuple((one["name"], one["type"]) for one in columns)
                for name, columns in known[what].items()
            }
            for what in ("topics", "tables")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _write(folder: Path, files: Mapping[str, Any]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, made in files.items():
            replace_file(folder / name, json.dumps(made, indent=1) + "\n")
            say(str(folder / name))
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written", error.strerror or str(error), "fix its rights, or name another"
        ) from error
