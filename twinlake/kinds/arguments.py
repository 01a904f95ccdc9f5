"""Owns what can be said of an argument of a definition: its type in words, its default, and what it means.

The meaning is the text below the field, in its class or in the nearest one that this inherits from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from twinlake.base.field_texts import field_texts
from twinlake.kinds.declared import words
from twinlake.kinds.measures.measure import Measure


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument of a kind, or of a part that is written in a definition."""

    name: str
    type: str
    """In words; that it may be left out, `default` says."""
    default: str | None
    """As Python; None where it has to be given."""
    meaning: str
    """Empty where no class says it."""


def arguments(cls: type[Any]) -> tuple[Argument, ...]:
    """Those that a person may write."""
    hints, meanings = get_type_hints(cls), field_texts(cls)
    return tuple(
        Argument(
            name=one.name, type=" or ".join(map(words, _options(hints[one.name]))),
            default=None if one.default is MISSING else repr(one.default),
            meaning=meanings.get(one.name, ""),
        )
        for one in fields(cls)
        if one.metadata.get("stored", True)
    )  # fmt: skip


def parts(kinds: Iterable[type[Any]]) -> tuple[type[Any], ...]:
    """The classes besides measures that are written within definitions of these kinds, each once."""
    found: dict[type[Any], None] = {}
    for kind in kinds:
        hints = get_type_hints(kind)
        for one in fields(kind):
            if one.metadata.get("stored", True):
                found |= dict.fromkeys(_classes(hints[one.name]))
    return tuple(found)


def _classes(hint: Any) -> Iterator[type[Any]]:
    if inner := get_args(hint):
        for one in inner:
            yield from _classes(one)
    elif is_dataclass(hint) and isinstance(hint, type) and not issubclass(hint, Measure):
        yield hint


def _options(hint: Any) -> tuple[Any, ...]:
    """The types of a value, None left out."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(one for one in get_args(hint) if one is not NoneType)
    return (hint,)
