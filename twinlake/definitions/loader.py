"""The definitions that jobs/tables lists now, or the error with the line where one is wrong."""

from __future__ import annotations

import difflib
import importlib
import re
import traceback
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import cast

from twinlake.base.errors import DefinitionError, TwinlakeError
from twinlake.config.settings import PROJECT
from twinlake.kinds.all import KINDS
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.steps import Explode
from twinlake.kinds.store import Store
from twinlake.kinds.windows import Hopping, Tumbling

REMEDY = "write it as the README's chapter `Add a table` shows, then run `twinlake check`"


def defined(examples: Iterable[str] = ()) -> tuple[Kind, ...]:
    """The listed definitions, and those of these examples of the gallery.

    DefinitionError, with file and line, where one cannot be imported.
    """
    modules = ("jobs.tables", *(f"jobs.tables.gallery.{name}" for name in examples))
    return tuple(one for module in modules for one in _listed(module))


def _listed(module: str) -> tuple[Kind, ...]:
    try:
        listed = getattr(importlib.import_module(module), "TABLES", None)
    except TwinlakeError:
        raise
    except SyntaxError as error:
        raise _at(error.filename or "jobs/tables", error.lineno, error.msg, error.offset) from error
    except (Exception, SystemExit) as error:  # `sys.exit(0)` would pass for a check that found nothing
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "tables" in frame.filename]
        if not frames:
            raise
        last = frames[-1]
        raise _at(last.filename, last.lineno, _plain(error), (last.colno or 0) + 1) from error
    if not isinstance(listed, tuple):
        raise _wrong_list(
            module, f"TABLES is {_what(listed)}, not a tuple of definitions: (orders.TABLE, ...)"
        )
    for one in listed:
        if not isinstance(one, tuple(KINDS.values())):
            raise _wrong_list(module, f"TABLES has {_what(one)} in it, which is not a definition")
    return cast("tuple[Kind, ...]", listed)


def _wrong_list(module: str, why: str) -> DefinitionError:
    file = str(PROJECT.joinpath(*module.split("."), "__init__.py"))
    lines = Path(file).read_text().splitlines() if Path(file).exists() else []
    line = next((number for number, text in enumerate(lines, 1) if text.startswith("TABLES")), 1)
    return _at(file, line, why)


def _what(found: object) -> str:
    if isinstance(found, ModuleType):
        return f"the module {found.__name__}"
    return "missing" if found is None else f"a {type(found).__name__}"


def shown_path(file: str) -> str:
    """The path within the project, if it is there."""
    return str(Path(file).relative_to(PROJECT)) if Path(file).is_relative_to(PROJECT) else file


def _plain(error: BaseException) -> str:
    """Python's words for a field too many or too few of a kind, measure or window, said as what they mean."""
    gone = re.match(r"cannot import name '(\w+)' from .*'jobs\.tables'", str(error))
    if gone and not (PROJECT / "jobs" / "tables" / f"{gone[1]}.py").exists():
        # Python takes a file that is gone for a circular import
        why = f"jobs/tables/{gone[1]}.py is missing, and {gone[1]} is listed"
        return f"{why}; to remove the table, delete it here"
    needs = re.fullmatch(r"(\w+)\.__init__\(\) missing \d+ required [\w-]+ arguments?: (.+)", str(error))
    if needs:
        return f"{needs[1]} needs {needs[2].replace(chr(39), '')}"
    found = re.fullmatch(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'.*", str(error))
    own = (Tumbling, Hopping, Explode, Store)
    known = {one.__name__: one for one in (*KINDS.values(), *MEASURES.values(), *own)}
    if not found or found[1] not in known:
        return f"{type(error).__name__}: {error}"
    names = [
        one.name
        for one in fields(known[found[1]])  # type: ignore[arg-type]
        if one.metadata.get("stored", True)
    ]
    near = difflib.get_close_matches(found[2], names, 1)
    meant = f"; did you mean {near[0]}?" if near else f", only {', '.join(names)}"
    return f"{found[1]} has no field {found[2]}{meant}"


def _at(file: str, line: int | None, why: str, column: int | None = None) -> DefinitionError:
    return DefinitionError(Path(file).stem, shown_path(file), line or 0, why, REMEDY, column)
