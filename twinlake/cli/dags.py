"""`twinlake dags`: the DAGs for an Airflow elsewhere, as one folder with all of `twinlake` that they need."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from twinlake.base.errors import UsageError
from twinlake.base.files import replace_file
from twinlake.base.version import VERSION
from twinlake.cli.output import load_settings, say, tell
from twinlake.config.library import LIBRARY
from twinlake.config.sections import Limits

MARK = ".twinlake.json"
"""What was written into the folder, so that the next version takes away what it has no more; and what its
`twinlake/airflow` reads: the prefix of the DAGs' names, and how long they may take."""

POOLS = "pools.json"
PLUGIN = "plugins/twinlake_console.py"
NO_DAGS = b"twinlake/\nplugins/\n"
"""What Airflow does not look for DAGs in."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("dags")(dags_command)


def dags_command(
    folder: Annotated[Path, typer.Argument(help="is made, or replaced where this command has made it")],
    prefix: Annotated[
        str | None,
        typer.Option(help="of the DAGs' names, such as twinlake_; unless given as before, at first none"),
    ] = None,
) -> None:
    """Write the DAGs for an Airflow of your own: one folder that needs only Airflow (docs/airflow.md)."""
    settings = load_settings()
    files = dag_files(settings.project.dags)
    try:
        write(files, folder.absolute(), prefix, settings.values.limits)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written",
            error.strerror or str(error),
            "fix its rights, or name another folder",
        ) from error
    say(f"{folder}: Twinlake {VERSION}, {len(files)} files")
    tell(f"next: `airflow pools import {folder / POOLS}`, or no task of these DAGs ever begins;")
    tell("give the folder to Airflow as a bundle of DAGs, put it on the PYTHONPATH of Airflow's triggerer,")
    tell("and add the connection twinlake_default (docs/airflow.md)")


def dag_files(folder: Path) -> dict[str, bytes]:
    """By its place, each file: what is in the folder of DAGs, and what that imports of `twinlake`."""
    left = sorted(folder.glob("*.py"))
    files = {file.name: file for file in left}
    while left:
        for file in _imported(left.pop()):
            place = file.relative_to(LIBRARY.parent).as_posix()
            if place not in files:
                files[place] = file
                left.append(file)
    found = {place: file.read_bytes() for place, file in files.items()}
    found |= {place: (LIBRARY / "airflow" / place).read_bytes() for place in (POOLS, PLUGIN)}
    found[".airflowignore"] = NO_DAGS
    return dict(sorted(found.items()))


def write(
    files: dict[str, bytes], folder: Path, prefix: str | None = None, limits: Limits | None = None
) -> None:
    """The files into the folder, and what the DAGs read there; UsageError where it has others' files in it.

    A scheduler may read it meanwhile: every file is replaced as a whole, after those that it imports.
    """
    mark = folder / MARK
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "", "name a new one")
    if folder.exists() and not mark.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty", "`twinlake dags` has not made it, and replaces only what it made",
            "name a new folder",
        )  # fmt: skip
    if prefix is not None and not re.fullmatch(r"[A-Za-z0-9_.-]{0,100}", prefix):
        raise UsageError(
            f"no DAG can be called {prefix!r}", "names of DAGs have letters, digits, _, . and -",
            "choose another --prefix",
        )  # fmt: skip
    before, prefix_before = _made(mark)
    if outside := [place for place in files if not _is_within(folder, place)]:
        raise UsageError(
            f"{folder / outside[0]} is not within {folder}", "a link on the way leads elsewhere",
            "take the link away, or name a new folder",
        )  # fmt: skip
    record = {
        "version": VERSION,
        "prefix": prefix_before if prefix is None else prefix,
        "limits": asdict(limits or Limits()),
    }
    replace_file(mark, json.dumps({**record, "files": sorted({*before, *files})}))
    for place in sorted(files, key=lambda place: (-place.count("/"), not place.startswith("."))):
        replace_file(folder / place, files[place])
    for place in set(before) - set(files):
        if _is_within(folder, place):  # somebody may have written it, or made a link on the way
            (folder / place).unlink(missing_ok=True)
    replace_file(mark, json.dumps({**record, "files": sorted(files)}))


def _is_within(folder: Path, place: str) -> bool:
    return (folder / place).parent.resolve().is_relative_to(folder.resolve())


def _made(mark: Path) -> tuple[list[str], str]:
    """What an earlier version wrote, and the prefix; UsageError where somebody has written the list."""
    if not mark.exists():
        return [], ""
    try:
        known = json.loads(mark.read_text())
        files, prefix = known["files"], known["prefix"]
        if not all(isinstance(one, str) and "\0" not in one for one in (*files, prefix)):
            raise ValueError("it names files and a prefix otherwise")
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{mark} is not a list of files", f"{type(error).__name__}: {error}",
            "name a new folder, or empty this one",
        ) from error  # fmt: skip
    return files, prefix


def _imported(file: Path) -> Iterator[Path]:
    """The files of the library that a module imports when it runs, their packages included."""
    for node in running(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for parts in (name.split(".") for name in names if name.split(".")[0] == "twinlake"):
            for end in range(1, len(parts) + 1):
                module = LIBRARY.parent.joinpath(*parts[:end])
                for one in (module / "__init__.py", module.with_suffix(".py")):
                    if one.is_file():
                        yield one


def running(node: ast.AST) -> Iterator[ast.AST]:
    """All that is in it, but for what only type checkers see."""
    yield node
    for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    for child in node.orelse if for_types else ast.iter_child_nodes(node):  # type: ignore[attr-defined]
        yield from running(child)
