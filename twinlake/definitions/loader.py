"""Finds the definitions of projects: in each module of their folder of tables, what it calls TABLE or TABLES,
and in each file of SQL the one that it is.

A file that cannot be read, or is wrong in itself, hides none of the others.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType

from twinlake.base.errors import DefinitionError, TwinlakeError, near, raised_at
from twinlake.base.files import shown_path
from twinlake.base.from_source import OwnFiles, imported_from_source
from twinlake.base.interrupt import Interrupted
from twinlake.config.project import Project
from twinlake.kinds.all import KINDS
from twinlake.kinds.definition import SQL, Place
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.steps import Explode
from twinlake.kinds.store import Store
from twinlake.kinds.windows import Hopping, Tumbling

REMEDY = "write it as docs/tables.md shows (`Add a table`), then run `twinlake check`"
ENDINGS = (".py", SQL)
"""How files end that may define tables."""
_BESIDE: dict[str, Path] = {}
"""The modules that definitions have imported of their projects, outside the folders of tables."""
_FAILED: set[Path] = set()
"""The files that raised when definitions imported them."""
_PACKAGE = "twinlake_tables_of_"
"""Each folder of tables is a package of its own name, so that those of two projects fit one process."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The definitions that were found, and what is wrong with the others."""

    tables: tuple[Kind, ...]
    wrong: tuple[TwinlakeError, ...] = ()

    def sound(self) -> tuple[Kind, ...]:
        """The definitions; raises the first error where something is wrong."""
        if self.wrong:
            raise self.wrong[0]
        return self.tables


def load(*projects: Project) -> Loaded:
    """The definitions of these projects as their files are now, in the order of the files.

    It never raises for what is in them.
    """
    for name in _BESIDE:
        sys.modules.pop(name, None)  # its file may have changed
    _BESIDE.clear()
    _FAILED.clear()
    before = set(sys.modules)
    tables, wrong = list[Kind](), list[TwinlakeError]()
    with imported_from_source(folder for one in projects for folder in (one.root, one.tables)):
        for project in projects:
            package = _package(project.tables)
            for file in _files(project.tables):
                try:
                    found = _of_file(project.tables, file, package)
                    # a module may name what a neighbour has defined: it is one table still
                    tables += [one for one in found if not any(one is known for known in tables)]
                except TwinlakeError as error:
                    wrong.append(error)
    _BESIDE.update(_of_projects(projects, sys.modules.keys() - before))
    twice = dict(_named_twice(tables))
    once = tuple(table for table in tables if table.name.lower() not in twice)
    return Loaded(tables=once, wrong=(*wrong, *twice.values()))


def imported(projects: Sequence[Project]) -> list[Path]:
    """The files of these projects that definitions have imported when they were last loaded, or could not,
    beside those in their folders of tables."""
    own = OwnFiles(one.root for one in projects)
    return [file for file in dict.fromkeys((*_BESIDE.values(), *_FAILED)) if file in own]


def _of_projects(projects: Sequence[Project], names: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Those of these modules that lie in a project, are not installed there, and have no kind or measure:
    a class is known as that under which it was listed."""
    kept = {one.__module__.split(".")[0] for one in (*KINDS.values(), *MEASURES.values())} | {"twinlake"}
    own = OwnFiles(one.root for one in projects)
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file is None or name.split(".")[0] in kept or name.startswith(_PACKAGE):
            continue
        if Path(file) in own:
            yield name, Path(file)


def _files(folder: Path) -> list[Path]:
    """Those that may define tables; `_name.py` is for its neighbours alone."""
    found = (file.relative_to(folder) for ending in ENDINGS for file in folder.rglob(f"*{ending}"))
    return sorted(file for file in found if not any(part.startswith(("_", ".")) for part in file.parts))


def _of_file(folder: Path, file: Path, package: str) -> tuple[Kind, ...]:
    if file.suffix != SQL:
        return _of_module(folder, file, package)
    from twinlake.kinds.sql_form.reading import read  # it brings a parser along, which not everybody needs

    return (read(folder / file),)


def _of_module(folder: Path, file: Path, package: str) -> tuple[Kind, ...]:
    """The definitions of one module; DefinitionError, with file and line, for what is wrong there."""
    path = folder / file
    try:
        with redirect_stdout(sys.stderr):  # what it prints would be a part of `--json`
            module = importlib.import_module(".".join((package, *file.with_suffix("").parts)))
    except (TwinlakeError, KeyboardInterrupt, Interrupted):
        raise
    except BaseException as error:  # `sys.exit(0)` would pass for a check that found nothing
        _FAILED.update(_passed(error))
        why = error.msg if isinstance(error, SyntaxError) else _plain(error)
        at, line, column = raised_at(error, folder) or (str(path), 1, None)
        raise _at(at, line, why, column, path.stem) from error
    return tuple(_listed(path, module))


def _passed(error: BaseException) -> Iterator[Path]:
    """The files through which an import has failed."""
    if isinstance(error, SyntaxError) and error.filename:
        yield Path(error.filename)
    yield from (Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def _package(folder: Path) -> str:
    """The package of the folder, without what an earlier call has imported: files may have changed."""
    name = _PACKAGE + hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    for module in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
        del sys.modules[module]
    importlib.invalidate_caches()
    sys.modules[name] = package = ModuleType(name)
    package.__path__ = [str(folder)]
    return name


def _listed(path: Path, module: ModuleType) -> Iterator[Kind]:
    kinds = tuple(KINDS.values())
    one, several = getattr(module, "TABLE", None), getattr(module, "TABLES", ())
    if one is not None and not isinstance(one, kinds):
        raise _at_name(path, "TABLE", f"TABLE is {_what(one)}, not a definition")
    if not isinstance(several, tuple | list):
        raise _at_name(path, "TABLES", f"TABLES is {_what(several)}, not a tuple of definitions")
    found = [*([] if one is None else [one]), *several]
    for each in found:
        if not isinstance(each, kinds):
            raise _at_name(path, "TABLES", f"TABLES has {_what(each)} in it, which is not a definition")
    for name, value in vars(module).items():
        if isinstance(value, kinds) and _is_of(value, path) and not any(value is each for each in found):
            raise _at_name(
                path, name, f"{name} is a definition that nobody finds: call it TABLE, or list it in TABLES"
            )
    yield from found


def _is_of(table: Kind, path: Path) -> bool:
    return table.place is None or Path(table.place.file) == path


def _named_twice(tables: list[Kind]) -> Iterator[tuple[str, DefinitionError]]:
    """Of each name that several have: one error, with all places. Names differ by more than case."""
    for name in dict.fromkeys(table.name.lower() for table in tables):
        same = [table for table in tables if table.name.lower() == name]
        if len(same) > 1:
            places = ", ".join(_place(table.place) for table in same)
            why = f"{len(same)} definitions have this name: {places}"
            files = {Path(table.place.file).with_suffix("") for table in same if table.place}
            # of one name without their endings: the table was written in its other form
            yield name, same[0].error(why, "rename one of them" if len(files) > 1 else "remove one of them")


def _place(place: Place | None) -> str:
    return f"{shown_path(place.file)}:{place.line}" if place else "?"


def _at_name(file: Path, name: str, why: str) -> DefinitionError:
    lines = file.read_text().splitlines()
    begins = re.compile(rf"{name}\b")
    line = next((number for number, text in enumerate(lines, 1) if begins.match(text)), 1)
    return _at(str(file), line, why)


def _what(found: object) -> str:
    return f"the module {found.__name__}" if isinstance(found, ModuleType) else f"a {type(found).__name__}"


def _plain(error: BaseException) -> str:
    """Python's words for a field too many or too few of a kind, measure or window, said as what they mean."""
    if isinstance(error, ModuleNotFoundError) and str(error.name).split(".")[0] == "jobs":
        return f"{error}; import a neighbour as `from . import name`, or `from .name import ...`"
    if isinstance(error, ImportError) and "partially initialized module" in str(error):
        return f"{str(error.name).rpartition('.')[2]} and what it imports import each other in a circle"
    if gone := re.match(rf"No module named '{_PACKAGE}\w+\.([\w.]+)'", str(error)):
        return f"there is no neighbour {gone[1]} beside it"
    if gone := re.match(r"cannot import name '(\w+)'", str(error)):
        return _not_there(gone[1], error.name if isinstance(error, ImportError) else None)
    if isinstance(error, NameError) and error.name:
        known = sys.modules["twinlake"].__all__  # what definitions begin with
        return f"there is no {error.name} here{near(error.name, known, listed=False)}"
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
    meant = near(found[2], names, listed=False) or f", only {', '.join(names)}"
    return f"{found[1]} has no field {found[2]}{meant}"


def _not_there(name: str, module: str | None) -> str:
    """Of a name that a module was to give."""
    if module is None or re.fullmatch(rf"{_PACKAGE}\w+", module):
        return f"there is no neighbour {name} beside it"
    known = getattr(sys.modules.get(module), "__all__", None) or dir(sys.modules.get(module))
    short = re.sub(rf"^{_PACKAGE}\w+\.", "", module)
    return f"{short} has no {name}{near(name, known, listed=False)}"


def _at(
    file: str, line: int | None, why: str, column: int | None = None, table: str = ""
) -> DefinitionError:
    """`table` is that whose module has imported the file, where that is another one."""
    return DefinitionError(table or Path(file).stem, shown_path(file), line or 0, why, REMEDY, column)
