"""Owns the text of a module that defines tables: what a person would write for these definitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import twinlake
from twinlake.kinds.kind import Kind

LINE = 88
"""What is longer is written on several lines."""
_STEP = "    "


def module_text(tables: Sequence[Kind], about: str) -> str:
    """A module with these definitions, the last one as TABLE."""
    *others, table = tables
    named = {one.name.upper(): one for one in others}
    used: dict[str, str] = {}
    parts = [f"{name} = {_call(one, 0, used)}" for name, one in named.items()]
    parts.append(f"TABLE = {_call(table, 0, used)}")
    if named:
        # what is not listed is not found
        parts.append(f"TABLES = ({', '.join(named)},)")
    return "\n".join([_docstring(about), "", *_imports(used), "", *parts]) + "\n"


def _docstring(about: str) -> str:
    """In the usual form, unless a sign in it would end that or mean something else."""
    is_usual = about.replace("\n", "").isprintable() and not set(about) & set('"\\')
    return f'"""{about}"""' if is_usual else repr(about)


def _imports(used: Mapping[str, str]) -> list[str]:
    """Public names from the face; others, as of a package's own kind, from where they are."""
    places: dict[str, list[str]] = {}
    for name in sorted(used):
        place = "twinlake" if name in twinlake.__all__ else used[name]
        places.setdefault(place, []).append(name)
    return [f"from {place} import {', '.join(names)}" for place, names in sorted(places.items())]


def _call(thing: Any, depth: int, used: dict[str, str]) -> str:
    """A dataclass as the call that makes it, without what is as it is by default."""
    cls = type(thing)
    used[cls.__name__] = cls.__module__
    parts, skipped = [], False
    for one in fields(thing):
        value = getattr(thing, one.name)
        if not one.metadata.get("stored", True) or (one.default is not MISSING and value == one.default):
            skipped = True
            continue
        said = _value(value, depth + 1, used, len(one.name) + 2)
        parts.append(f"{one.name}={said}" if one.kw_only or skipped else said)
    return _bracketed(f"{cls.__name__}(", parts, ")", depth, 0, always=depth == 0)


def _value(value: Any, depth: int, used: dict[str, str], before: int) -> str:
    if is_dataclass(value):
        return _call(value, depth, used)
    if isinstance(value, dict):
        items = [f"{_text(key)}: {_value(one, depth + 1, used, len(key) + 5)}" for key, one in value.items()]
        return _bracketed("{", items, "}", depth, before)
    if isinstance(value, tuple):
        items = [_value(one, depth + 1, used, 1) for one in value]
        return _bracketed("(", items, "," * (len(items) == 1) + ")", depth, before)
    return _text(value) if isinstance(value, str) else repr(value)


def _bracketed(
    opening: str, items: Sequence[str], closing: str, depth: int, before: int, always: bool = False
) -> str:
    short = f"{opening}{', '.join(items)}{closing}"
    if not items or (not always and len(_STEP) * depth + before + len(short) < LINE and "\n" not in short):
        return short
    inner = "".join(f"{_STEP * (depth + 1)}{one},\n" for one in items)
    return f"{opening}\n{inner}{_STEP * depth}{closing.removeprefix(',')}"


def _text(value: str) -> str:
    """A text of several lines, which SQL alone is here, stays one."""
    if "\n" in value and '"' not in value and "\\" not in value:
        return f'"""{value}"""'
    return json.dumps(value, ensure_ascii=False)
