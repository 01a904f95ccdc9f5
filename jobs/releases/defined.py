"""The definitions that jobs/tables lists now, or the error with the line where one is wrong."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

from jobs.errors import DefinitionError, TwinlakeError
from jobs.kinds.kind import Kind
from jobs.settings import PROJECT

REMEDY = "write it as the README's chapter `Add a table` shows, then run `twinlake check`"


def defined() -> tuple[Kind, ...]:
    """The listed definitions; DefinitionError, with file and line, where one cannot be imported."""
    try:
        return tuple(importlib.import_module("jobs.tables").TABLES)
    except TwinlakeError:
        raise
    except SyntaxError as error:
        raise _at(error.filename or "jobs/tables", error.lineno, error.msg) from error
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tables" in frame.filename]
        if not frames:
            raise
        raise _at(frames[-1].filename, frames[-1].lineno, f"{type(error).__name__}: {error}") from error


def shown_path(file: str) -> str:
    """The path within the project, if it is there."""
    return str(Path(file).relative_to(PROJECT)) if Path(file).is_relative_to(PROJECT) else file


def _at(file: str, line: int | None, why: str) -> DefinitionError:
    return DefinitionError(Path(file).stem, shown_path(file), line or 0, why, REMEDY)
