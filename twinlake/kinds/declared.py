"""Owns whether the fields of a definition hold what they are declared to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "True or False", NoneType: "None"}


def misfits(thing: Any, where: str = "") -> Iterator[tuple[str, Any, str]]:
    """Every field of a dataclass, and of those in it, with its value and what it is declared to be, where the
    value is something else. Declared are classes, None, `|`, `tuple[X, ...]` and `dict[X, Y]` of these."""
    hints = get_type_hints(type(thing))
    for one in fields(thing):
        yield from _misfits(getattr(thing, one.name), hints[one.name], f"{where}{one.name}")


def _misfits(value: Any, hint: Any, where: str) -> Iterator[tuple[str, Any, str]]:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        fitting = [part for part in parts if _is_one(value, get_origin(part) or part)]
        if fitting:
            yield from _misfits(value, fitting[0], where)
        else:
            yield where, value, words(hint)
    elif not _is_one(value, origin or hint):
        yield where, value, words(hint)
    elif origin is tuple:
        for number, item in enumerate(value):
            yield from _misfits(item, parts[0], f"{where}[{number}]")
    elif origin is dict:
        for key, item in value.items():
            yield from _misfits(key, parts[0], f"a name in {where}")
            yield from _misfits(item, parts[1], f"{where}[{key!r}]")
    elif is_dataclass(value):
        yield from misfits(value, f"{where}.")


def _is_one(value: Any, kind: type) -> bool:
    """A whole number will do for any, and True is none."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def words(hint: Any) -> str:
    """What a field is declared to be, in words."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(words(part) for part in parts)
    if origin is tuple:
        return f"a tuple of {words(parts[0]).removeprefix('a ')}s"
    if origin is dict:
        return f"a map from {words(parts[0])} to {words(parts[1])}"
    return _WORDS.get(hint) or str(hint.__name__)
