"""A project: the folder with a committed `twinlake.toml`, and where its definitions, schemas and so on are.

The data directory has a `twinlake.toml` as well, with addresses and logins. `[project]` tells them apart: a
project's file has it, and nothing else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinlake.base.errors import UsageError
from twinlake.config.library import TEMPLATE
from twinlake.config.sections import PROJECT_SECTION, SECTIONS
from twinlake.config.settings_file import lines_of, nearest

FILE = "twinlake.toml"
_HEADING = re.compile(rf"^\s*\[\s*{PROJECT_SECTION}\s*[\].]", re.MULTILINE)


@dataclass(frozen=True)
class Folder:
    """A key of `[project]`: where the folder is unless the file says so, and what is in it."""

    usual: str
    doc: str


FOLDERS: Mapping[str, Folder] = {
    "tables": Folder("jobs/tables", "definitions of tables, one module each"),
    "schemas": Folder("schemas", "schemas of topics: <topic>.v<N>.avsc, .json, .proto"),
    "contracts": Folder("contracts", "contracts of topics and tables: <name>.yaml"),
    "dags": Folder("dags", "what Airflow runs; a project without this folder has the DAGs of Twinlake"),
    "data": Folder(".twinlake", "the data directory; $TWINLAKE_HOME or --home name another one"),
}
"""The keys of `[project]`."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder with definitions, schemas and contracts; `folders` are those that it names otherwise."""

    root: Path
    folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> Path:
        """Definitions of tables, one module each."""
        return self._folder("tables")

    @property
    def schemas(self) -> Path:
        """Schemas of topics."""
        return self._folder("schemas")

    @property
    def contracts(self) -> Path:
        """Contracts of topics and tables."""
        return self._folder("contracts")

    @property
    def dags(self) -> Path:
        """DAG files; where the project has no folder of them and names none, those of the library.

        UsageError where it names one that is not there.
        """
        folder = self._folder("dags")
        if folder.is_dir():
            return folder
        if "dags" in self.folders:
            raise UsageError(
                f"the project {self.root} has no DAGs",
                f"{self.root / FILE} names {folder}, which is not a folder",
                "correct the path, or leave the key out: Airflow then runs the DAGs that Twinlake brings",
            )
        return TEMPLATE / "dags"

    @property
    def data(self) -> Path:
        """The data directory, unless $TWINLAKE_HOME or --home names another one."""
        return self._folder("data")

    @property
    def records(self) -> Path:
        """The module that draws sample records for `twinlake produce`."""
        return self.root / "records.py"

    @property
    def examples(self) -> Path:
        """Projects that this one can show beside its own tables, a folder each."""
        return self.root / "examples"

    def example_names(self) -> tuple[str, ...]:
        """The names of the examples, in the alphabet's order."""
        return tuple(sorted(file.parent.name for file in self.examples.glob(f"*/{FILE}")))

    def with_examples(self, names: tuple[str, ...]) -> tuple[Project, ...]:
        """This project, and those of its examples."""
        return (self, *(Project.load(self.examples / name) for name in names))

    def held_by(self, folder: Path) -> Path | None:
        """The project's folder, or the first one in it, that this folder is or holds, links followed."""
        outer = folder.resolve()
        ours = (self.root, *(self._folder(name) for name in FOLDERS if name != "data"))
        return next((one for one in ours if one.resolve().is_relative_to(outer)), None)

    def folder_around(self, place: Path) -> Path | None:
        """Its folder that this place is in, where it is in one."""
        ours = (self._folder(name).resolve() for name in FOLDERS)
        return next((one for one in ours if place.resolve().is_relative_to(one)), None)

    def _folder(self, name: str) -> Path:
        return self.root / Path(self.folders.get(name, FOLDERS[name].usual)).expanduser()

    @classmethod
    def load(cls, root: Path) -> Project:
        """The project in this folder. UsageError where there is none, or its file is wrong."""
        root = root.expanduser().absolute()
        file = root / FILE
        try:
            text = _text(file)
        except PermissionError as error:
            why = error.strerror or str(error)
            raise UsageError(f"{file} cannot be read", why, "fix its rights, or its folder's") from error
        if text is None or not _is_of_project(text):
            lacks = f"{file} does not exist" if text is None else f"{file} has no section [{PROJECT_SECTION}]"
            raise UsageError(
                f"{root} is not a project", lacks,
                f"name the folder of a project, or make one with `twinlake new project {root}`",
            )  # fmt: skip
        return cls._of(root, text)

    @classmethod
    def _of(cls, root: Path, text: str) -> Project:
        return cls(root=root, folders=_folders(root / FILE, text, root))

    @classmethod
    def find(cls, start: Path) -> Project | None:
        """The nearest project upward from `start`, None where there is none. Data directories are skipped,
        and files that others may not read, as theirs."""
        for folder in (start.absolute(), *start.absolute().parents):
            with suppress(PermissionError):
                text = _text(folder / FILE)
                if text is not None and _is_of_project(text):
                    return cls._of(folder, text)
        return None


def project_at(folder: Path | None) -> Project:
    """The project in this folder, else the nearest one upward. UsageError where there is none."""
    found = Project.load(folder) if folder else Project.find(Path.cwd())
    return found or Project.load(Path.cwd())  # which says why there is none


def _text(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise  # whoever looks for a project passes over it
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read", str(error), "correct the file") from error


def _is_of_project(text: str) -> bool:
    """Whether it is the file of a project, even of one that is torn."""
    try:
        return PROJECT_SECTION in tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return _HEADING.search(text) is not None


def _folders(file: Path, text: str, root: Path) -> dict[str, str]:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not valid TOML", str(error), "correct the file") from error
    lines = lines_of(text)
    mistakes = [
        f"{FILE}:{lines.get(name, 1)}: {_misplaced(name, value)}"
        for name, value in found.items()
        if name != PROJECT_SECTION
    ]
    section = found[PROJECT_SECTION]
    if not isinstance(section, dict):
        mistakes.append(f"[{PROJECT_SECTION}] is not a section")
        section = {}
    for key, value in section.items():
        if wrong := _wrong(key, value, root):
            mistakes.append(f"{FILE}:{lines.get(f'{PROJECT_SECTION}.{key}', 1)}: {wrong}")
    if mistakes:
        raise UsageError(
            f"the settings of the project {root} are wrong", "\n".join(mistakes), f"correct {file}"
        )
    return {str(key): str(value) for key, value in section.items()}


def _misplaced(name: str, value: Any) -> str:
    """What is wrong with something beside `[project]`."""
    if name in SECTIONS:
        return (
            f"[{name}] is not a section of a project; addresses and logins belong in the {FILE} of the data "
            "directory"
        )
    if name in FOLDERS:
        return f"{name} is not in a section; write it below [{PROJECT_SECTION}]"
    what = "section" if isinstance(value, dict) else "key"
    return f"there is no such {what}: {name}; a project's file has [{PROJECT_SECTION}] alone"


def _wrong(key: str, value: Any, root: Path) -> str:
    """What is wrong with a key of `[project]`, nothing where it is right."""
    if key not in FOLDERS:
        return f"there is no such setting: {key}{nearest(key, FOLDERS)}"
    if not isinstance(value, str) or not value.strip():
        return f"{key} is {value!r}, not the path of a folder"
    try:
        folder = (root / Path(value).expanduser()).resolve()
    except RuntimeError:
        return f"{key} is {value!r}: there is no such user, or no home of theirs"
    if key != "data" and not folder.is_relative_to(root.resolve()):
        return f"{key} is {value!r}, which is outside the project"
    if key == "data" and root.resolve().is_relative_to(folder):
        return f"data is {value!r}: the data directory cannot be the project's folder, nor hold it"
    return ""
