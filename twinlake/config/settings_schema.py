"""Makes the JSON Schema of `twinlake.toml`, for editors, from what the sections say of each key.

The data directory's file and the project's have one name, so one schema is for both: `[project]` has no
section beside it. An editor sees one key at a time: whether the files that it names are there, and what goes
with what, `twinlake doctor` says.
"""

from __future__ import annotations

from typing import Any

from twinlake.config.keys import Key, Section
from twinlake.config.project import FOLDERS, Folder
from twinlake.config.sections import PROJECT_SECTION, SECTIONS

Schema = dict[str, Any]
_AROUND = r"^/*(\.{1,2}(/+|$))*$"
"""A path of nothing but `.` and `..`, or the root: the data directory cannot hold the project."""


def settings_schema() -> Schema:
    """Draft 7, which editors of TOML know."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A project of Twinlake, or the settings of a data directory",
        **_table({PROJECT_SECTION: _project(), **{name: _section(one) for name, one in SECTIONS.items()}}),
        "dependencies": {PROJECT_SECTION: {"propertyNames": {"const": PROJECT_SECTION}}},
    }


def _project() -> Schema:
    """Whether a folder is outside the project, its name alone does not say: `..` may lead back."""
    doc = "a project's folder: where its files are, from here"
    return {"description": doc, **_table({name: _folder(name, one) for name, one in FOLDERS.items()})}


def _folder(name: str, folder: Folder) -> Schema:
    around = {"not": {"pattern": _AROUND}} if name == "data" else {}
    doc = f"{folder.doc}; default: {folder.usual}"
    return {"description": doc, "default": folder.usual, "type": "string", "pattern": r"\S", **around}


def _section(section: Section) -> Schema:
    """A secret is not a key: it is in a file of its own."""
    properties = {
        name: _section(one) if isinstance(one, Section) else _key(section, name, one)
        for name, one in section.keys.items()
        if isinstance(one, Section) or not one.is_secret
    }
    return {"description": section.doc, **_table(properties)}


def _table(properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _key(section: Section, name: str, key: Key) -> Schema:
    """Its default is what the model holds, or in words where that is made at the start."""
    default = getattr(section.kind, name, None)
    said = {"default": default} if isinstance(default, str | int) and default != "" else {}
    doc = f"{key.doc}; default: {key.shown}" if key.shown else key.doc
    return {"description": f"{doc}; for example {key.example}", **said, **key.form}
