"""Owns which fields of a definition stand on top of its statement, as `key: value`: what SQL does not say.

They are found by what a kind's fields are declared to be, so a new field of a kind needs no line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from twinlake.base.errors import near
from twinlake.kinds.sql_form.header import Said
from twinlake.kinds.sql_form.text import SqlText


@dataclass(frozen=True, kw_only=True)
class Key:
    """`path` is the field, and that of the dataclass in it; `type` is text, whole number, or names."""

    path: tuple[str, ...]
    type: type
    is_needed: bool

    @property
    def name(self) -> str:
        return ".".join(self.path)


def keys(kind: type[Any], said_by_sql: Sequence[str]) -> dict[str, Key]:
    """By its name each key that a definition of the kind may have."""
    return {
        key.name: key
        for field in fields(kind)
        if field.metadata.get("stored", True) and field.name not in said_by_sql
        for key in _keys(kind, field, ())
    }


def read(source: SqlText, said: Sequence[Said], known: Mapping[str, Key], kind: str) -> dict[str, Any]:
    """The values of fields, by name; DefinitionError for a key that is unknown, given twice, or missing."""
    found = dict[str, Any]()
    places = dict[str, Said]()
    for one in said:
        if one.key not in known:
            meant = near(one.key, known) or "; it has none"
            raise source.wrong(one.key_at, f"{one.key} is no key of {kind} in SQL{meant}")
        if one.key in places:
            raise source.wrong(one.key_at, f"{one.key} is given twice")
        places[one.key] = one
        *outer, name = known[one.key].path
        into = found.setdefault(outer[0], {}) if outer else found
        into[name] = _value(source, one, known[one.key].type)
    for key in known.values():
        if key.is_needed and key.name not in places and (beside := _beside(key, places)):
            raise source.wrong(beside.key_at, f"{key.name} is missing beside {beside.key}")
    return found


def made(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the dataclasses that are made of several keys."""
    hints = get_type_hints(kind)
    return {
        name: _one_of(hints[name])(**value) if isinstance(value, dict) else value
        for name, value in found.items()
    }


def written(table: Any, known: Mapping[str, Key]) -> dict[str, str]:
    """By its key, the text of each field that is not as it is by default."""
    defaults = {one.name: one.default for one in fields(table)}
    texts = {}
    for key in known.values():
        value, default = getattr(table, key.path[0]), defaults[key.path[0]]
        if len(key.path) == 2 and value is not None:
            inner = {one.name: one.default for one in fields(value)}
            value, default = getattr(value, key.path[1]), inner[key.path[1]]
        if value is not None and value != default:
            texts[key.name] = ", ".join(value) if isinstance(value, tuple) else str(value)
    return texts


def _keys(owner: type, field: Any, outer: tuple[str, ...]) -> Iterator[Key]:
    type_ = _one_of(get_type_hints(owner)[field.name])
    path = (*outer, field.name)
    if is_dataclass(type_) and not outer:
        yield from (key for one in fields(type_) for key in _keys(type_, one, path))  # type: ignore[arg-type]
    elif type_ in (str, int) or (get_origin(type_) is tuple and get_args(type_)[0] is str):
        is_needed = field.default is MISSING and field.default_factory is MISSING
        yield Key(path=path, type=get_origin(type_) or type_, is_needed=is_needed)


def _one_of(hint: Any) -> Any:
    """What a field is declared to be, where it is not None."""
    args = [one for one in get_args(hint) if one is not type(None)]
    return args[0] if type(None) in get_args(hint) and len(args) == 1 else hint


def _value(source: SqlText, one: Said, type_: type) -> Any:
    if type_ is tuple:
        return tuple(name.strip() for name in one.value.split(",")) if one.value.strip() else ()
    if not one.value:
        raise source.wrong(one.key_at, f"{one.key} has no value")
    if type_ is int and not one.value.isdecimal():
        raise source.wrong(one.value_at, f"{one.key} is {one.value}, not a whole number")
    return type_(one.value)


def _beside(key: Key, places: Mapping[str, Said]) -> Said | None:
    """What makes the key needed: another of the same part, or, of what the kind itself needs, any."""
    return next((one for name, one in places.items() if name.split(".")[0] == key.path[0]), None)
