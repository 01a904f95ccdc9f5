"""Findings: what `check` reports, for programs: each with its file, line and column, counted from 1.

An error of a contract or schema says by a path which entry is wrong, such as `schema[0].properties[2].name`.
Where that is in the file, the parser's marks tell; only for what is reported, so that loading stays quick.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from twinlake.base.errors import ContractError, DefinitionError, TwinlakeError

Place = tuple[int, int]
_START = (1, 1)
_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def to_json(error: TwinlakeError) -> dict[str, Any]:
    """The error with `file`, `line` and `column`; each NULL for one that is of no file."""
    found: dict[str, Any] = {**error.to_json(), "file": None, "line": None, "column": None}
    if isinstance(error, ContractError | DefinitionError) and error.file:
        file = Path(error.file).absolute()
        found["file"] = str(file)
        found["line"], found["column"] = _place(error, file)
    return found


def _place(error: ContractError | DefinitionError, file: Path) -> Place:
    if isinstance(error, DefinitionError):
        return error.line or 1, error.column or _first_column(file, error.line)
    return error.place or place_of(file, error.path)


def place_of(file: Path, path: str) -> Place:
    """Where the entry with this path begins in YAML or JSON; of one that is missing, what lacks it."""
    try:
        # outside of texts, where none can be, YAML takes no tab for a space
        node = yaml.compose(file.read_text().replace("\t", " "), yaml.SafeLoader)
    except (OSError, ValueError, yaml.YAMLError):
        return _START  # another error says so
    found = node
    for index, key in _PART.findall(path):
        inner = _inside(node, key, index)
        if inner is None:
            break
        found, node = inner
    return _START if found is None else (found.start_mark.line + 1, found.start_mark.column + 1)


def _inside(node: yaml.Node | None, key: str, index: str) -> tuple[yaml.Node, yaml.Node] | None:
    """(the node that begins the entry, the one of its value)."""
    if isinstance(node, yaml.MappingNode):
        return next(((name, value) for name, value in node.value if name.value == key), None)
    if isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
        return node.value[int(index)], node.value[int(index)]
    return None


def _first_column(file: Path, line: int) -> int:
    """That of the first character of the line."""
    try:
        text = file.read_text().splitlines()[line - 1]
    except (OSError, ValueError, IndexError):
        return 1
    return len(text) - len(text.lstrip()) + 1
