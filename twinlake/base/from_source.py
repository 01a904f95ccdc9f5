"""Modules of a project as their files are now, not as Python has compiled them once.

Python takes what it has compiled for current where the file's size and the second of its change are the same.
Files that were unpacked with a fixed time, or written twice within a second, meant what they meant before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class FromSource(SourceFileLoader):
    """Compiles a module each time; neither reads nor writes `__pycache__`."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


@contextmanager
def imported_from_source(folders: Iterable[Path]) -> Iterator[None]:
    """Until the end of the block, modules below these folders are compiled from their source when they are
    imported; not those that were installed there."""
    finder = _Finder(folders)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with suppress(ValueError):  # what was imported may have put another list there
            sys.meta_path.remove(finder)


class OwnFiles:
    """The files that lie below one of these folders, by either path, and that no tool has installed there."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._below = {form for folder in folders for form in _forms(folder)}

    def __contains__(self, file: Path) -> bool:
        return any(
            form.is_relative_to(folder) and not _is_installed(form.relative_to(folder))
            for form in _forms(file)
            for folder in self._below
        )


class _Finder(MetaPathFinder):
    """Lets the others find a module, and takes another loader for it."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._own = OwnFiles(folders)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        # nor those of loads in other threads, which would ask this one again
        others = [one for one in sys.meta_path if not isinstance(one, _Finder) and hasattr(one, "find_spec")]
        specs = (one.find_spec(fullname, path, target) for one in others)
        spec = next((one for one in specs if one is not None), None)
        if spec and spec.origin and type(spec.loader) is SourceFileLoader:
            if Path(spec.origin) in self._own:
                spec.loader = FromSource(fullname, spec.origin)
        return spec


def _is_installed(below: Path) -> bool:
    return any(part.startswith(".") or part in ("site-packages", "dist-packages") for part in below.parts)


def _forms(path: Path) -> set[Path]:
    """As it is written and without links: one of them is how the other side names it."""
    return {Path(os.path.abspath(path)), Path(os.path.realpath(path))}
