"""Value: a JSON value that `--json` prints, and its keys: written by hand, or made from a dataclass."""

from __future__ import annotations

import re
import textwrap
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from twinlake.base.field_texts import field_texts

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", Any: "any"}


@dataclass(frozen=True, kw_only=True)
class Value:
    """Of a key, of all that a command prints, or of a shape that several share."""

    name: str
    type: str
    """`string`, `integer`, `number`, `boolean`, `null`, `any`, `object`, the name of a shared shape, `list of
    X`, `object of X` (names nobody knows before, each with an X), or `X or Y`."""
    about: str
    keys: tuple[Value, ...] = ()
    """Of the object, or of each object in it; where there are none, its keys are free."""
    is_optional: bool = False
    """Whether the key may be missing."""
    is_open: bool = False
    """Whether there may be other keys beside these."""


Keys = tuple[Value, ...]


def keys(text: str, **inner: Keys) -> Keys:
    """Of lines `name  type  words`, with two blanks or more between them; `name?` for a key that may be
    missing. A line that is indented goes on with the words above. `inner` are the keys of objects."""
    made = []
    for line in _lines(text):
        name, type_, about = re.split(r" {2,}", line, maxsplit=2)
        plain = name.removesuffix("?")
        made.append(Value(
            name=plain, type=type_, about=about, keys=inner.pop(plain, ()), is_optional=plain != name
        ))  # fmt: skip
    _refuse(inner, "there is no such key")
    return tuple(made)


def of(made: type, text: str = "", *, without: Sequence[str] = (), **inner: Keys | str) -> Keys:
    """The fields of a dataclass, as `asdict` gives them. What each means is its docstring, or a line `name
    words` of the text. `inner` are the keys of those that are dataclasses, or a shared shape's name."""
    words = dict(re.split(r" {2,}", line, maxsplit=1) for line in _lines(text))
    words = {name: about for name, about in words.items() if name not in without}
    hints = get_type_hints(made)
    said = {name: _as_cell(text) for name, text in field_texts(made).items()}
    found = []
    for field in fields(made):
        if field.name in without:
            continue
        hint, nested = hints[field.name], inner.pop(field.name, ())
        type_ = _type(hint)
        if isinstance(nested, str):
            type_, nested = re.sub(r"object( of string)?(?!.*object)", nested, type_), ()
        elif _has_dataclass(hint) and not nested:
            raise TypeError(f"{made.__name__}.{field.name} has keys of its own: say which")
        about = words.pop(field.name, "") or said.get(field.name, "")
        if not about:
            raise TypeError(f"what {made.__name__}.{field.name} means is not said")
        found.append(Value(name=field.name, type=type_, about=about + _one_of(hint), keys=nested))
    _refuse(words, f"{made.__name__} has no such field")
    _refuse(inner, f"{made.__name__} has no such field")
    return tuple(found)


def alternatives(type_: str) -> list[str]:
    """Of `list of (X or null) or null`: `list of (X or null)`, `null`."""
    found, depth = [""], 0
    for word in type_.split(" "):
        if word == "or" and not depth:
            found.append("")
            continue
        depth += word.count("(") - word.count(")")
        found[-1] = f"{found[-1]} {word}".strip()
    (first, *others) = found
    return found if others or not first.startswith("(") else alternatives(first[1:-1])


def _lines(text: str) -> list[str]:
    found: list[str] = []
    for line in textwrap.dedent(text).strip("\n").splitlines():
        if line.startswith(" "):
            found[-1] += f" {line.strip()}"
        elif line:
            found.append(line)
    return found


def _refuse(left: Mapping[str, Any], why: str) -> None:
    if left:
        raise TypeError(f"{', '.join(left)}: {why}")


def _type(hint: Any) -> str:
    """A Python type as JSON has it."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, of_what = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "string"
    if origin in (Union, types.UnionType):
        return " or ".join(map(_type, of_what))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of("object", of_what[1])
    if origin is tuple and of_what[-1] is not Ellipsis:
        return "list" if len(set(of_what)) > 1 else _of("list", of_what[0])
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _of("list", of_what[0])
    if is_dataclass(hint):
        return "object"
    raise TypeError(f"{hint} is nothing that JSON has")


def _of(what: str, hint: Any) -> str:
    inner = _type(hint)
    if inner == "any":
        return what
    return f"{what} of ({inner})" if len(alternatives(inner)) > 1 else f"{what} of {inner}"


def _has_dataclass(hint: Any) -> bool:
    return is_dataclass(hint) or any(map(_has_dataclass, get_args(hint)))


def _one_of(hint: Any) -> str:
    """The texts that there may be."""
    names = [f"`{name}`" for one in (hint, *get_args(hint)) if get_origin(one) is Literal
             for name in get_args(one)]  # fmt: skip
    return f": {', '.join(names)}" if names else ""


def _as_cell(words: str) -> str:
    """A docstring as the cells of a table are written."""
    begins = words[:1].lower() if words[1:2].islower() else words[:1]
    return f"{begins}{words[1:]}".removesuffix(".")
