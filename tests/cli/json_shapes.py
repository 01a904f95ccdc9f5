"""How a value differs from what docs/json.md says of it; and dataclasses with something in every field."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from twinlake.base.errors import TwinlakeError
from twinlake.batch.verify import CAUSES, _difference
from twinlake.cli.shapes.shared import SHARED
from twinlake.cli.shapes.value import Value, alternatives

_PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "object": (dict,), "list": (list,),
}  # fmt: skip

_KEYED: dict[str, Any] = {
    "progress": {"done": 1.0, "total": 2.0, "unit": "chunks", "message": "", "eta_s": 1.5,
                 "waiting_for": "a"},
    "differences": [_difference({"k": 1}, next(iter(CAUSES)), ["c"], {"c": 1}, None)],
    "error": TwinlakeError("x", "y", "z").to_json(),
    "repaired": [_difference({"k": 1}, next(iter(CAUSES)), ["c"], {"c": 1}, None)],
}
"""By field: what is no dataclass there, and has keys of its own."""


def wrong(shape: Value, found: Any) -> list[str]:
    """A line for each key that is missing or not documented, and each value of another type."""
    return list(_wrong(shape, shape.type, found, shape.name))


def _wrong(shape: Value, type_: str, found: Any, at: str) -> Iterator[str]:
    """Of the alternatives the one that fits best is meant."""
    each = [list(_of_one(shape, one, found, at)) for one in alternatives(type_)]
    yield from min(each, key=len)


def _of_one(shape: Value, type_: str, found: Any, at: str) -> Iterator[str]:
    if type_ in SHARED:
        yield from _wrong(SHARED[type_], SHARED[type_].type, found, at)
        return
    what, _, inner = type_.partition(" of ")
    if type_ == "any":
        return
    if not isinstance(found, _PLAIN[what]) or isinstance(found, bool) != (type_ == "boolean"):
        yield f"{at} is no {type_}: {found!r}"
    elif inner:
        for name, one in found.items() if what == "object" else enumerate(found):
            yield from _wrong(shape, inner, one, f"{at}.{name}")
    elif what == "list" and shape.keys:
        for number, one in enumerate(found):
            yield from _keys(shape, one, f"{at}.{number}")
    elif what == "object" and shape.keys:
        yield from _keys(shape, found, at)


def _keys(shape: Value, found: Mapping[str, Any], at: str) -> Iterator[str]:
    known = {one.name: one for one in shape.keys}
    if not shape.is_open:
        yield from (f"{at}.{name} is not documented" for name in found.keys() - known.keys())
    for name, one in known.items():
        if name in found:
            yield from _wrong(one, one.type, found[name], f"{at}.{name}")
        elif not one.is_optional:
            yield f"{at}.{name} is missing"


def filled(made: Any, nothing: bool = False) -> Any:
    """One of a type: of a dataclass with something in every field. With `nothing` what may be None is, and
    what may be empty is."""
    if is_dataclass(made):
        hints = get_type_hints(made)
        return made(**{
            one.name: _KEYED[one.name]
            if one.name in _KEYED and Any in _inside(hints[one.name]) and not nothing
            else filled(hints[one.name], nothing)
            for one in fields(made) if one.init
        })  # fmt: skip
    origin, inner = get_origin(made), get_args(made)
    if origin is Literal:
        return inner[0]
    if origin in (Union, types.UnionType):
        return None if nothing and type(None) in inner else filled(inner[0], nothing)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {} if nothing else {filled(inner[0]): filled(inner[1])}
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(filled(one, nothing) for one in inner)
    if origin is tuple:
        return () if nothing else (filled(inner[0]),)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return [] if nothing else [filled(inner[0])]
    if made is TwinlakeError:
        return TwinlakeError("x", "y", "z")
    plain: dict[Any, Any] = {str: "x", int: 2, float: 2.5, bool: True, Any: "any"}
    return plain[made]


def _inside(hint: Any) -> Iterator[Any]:
    yield hint
    for one in get_args(hint):
        yield from _inside(one)
