"""The definitions as their files are now, read by a process of its own.

A server that imported them would see those of its start for ever, and end with one that ends its process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from twinlake.base.errors import TwinlakeError, UsageError, error_of
from twinlake.config.library import IMPORTABLE
from twinlake.config.project import Project
from twinlake.definitions.loader import Loaded, load
from twinlake.kinds.all import from_json
from twinlake.kinds.definition import Place

LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Written:
    """By its name the JSON of each definition that was found, and what is wrong with the others."""

    definitions: dict[str, dict[str, Any]]
    wrong: tuple[TwinlakeError, ...] = ()
    places: dict[str, tuple[str, int]] = field(default_factory=dict)
    """By its name the file and line of each."""

    def loaded(self) -> Loaded:
        """The same as definitions; UsageError for one of a kind that is not known here."""
        tables = []
        for name, data in self.definitions.items():
            at = self.places.get(name)
            place = Place(file=at[0], line=at[1]) if at else None
            tables.append(replace(cast("Any", from_json(data)), place=place))
        return Loaded(tables=tuple(tables), wrong=self.wrong)


def written(*projects: Project) -> Written:
    """What the files of these projects define now.

    UsageError where reading them does not end, or ends the process.
    """
    roots = [str(project.root) for project in projects]
    try:
        done = subprocess.run(  # -P: a module of the project is not taken for one of Python's
            [sys.executable, "-P", "-m", __name__, *roots], cwd=projects[0].root,
            env={**os.environ, **IMPORTABLE}, capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        why = f"it took longer than {LIMIT_S:g} s"
        raise _unread(projects[0], why) from error
    except ValueError as error:
        raise _unread(projects[0], f"exit code {done.returncode}: {done.stderr.strip()[-600:]}") from error
    if "error" in found:
        raise error_of(found["error"])
    return Written(
        definitions=found["definitions"],
        wrong=tuple(map(error_of, found["wrong"])),
        places={name: (file, line) for name, (file, line) in found["places"].items()},
    )


def _unread(project: Project, why: str) -> UsageError:
    remedy = "run `twinlake check` where the lake server runs"
    return UsageError(f"{project.tables} cannot be read", why, remedy)


def main(roots: Sequence[str]) -> None:
    """What was found, or the error, as JSON; what a definition prints goes elsewhere."""
    found: dict[str, Any]
    try:
        with redirect_stdout(sys.stderr):
            loaded = load(*(Project.load(Path(root)) for root in roots))
        definitions = {table.name: table.to_json() for table in loaded.tables}
        places = {one.name: (one.place.file, one.place.line) for one in loaded.tables if one.place}
        wrong = [error.to_json() for error in loaded.wrong]
        found = {"definitions": definitions, "wrong": wrong, "places": places}
    except TwinlakeError as error:
        found = {"error": error.to_json()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
