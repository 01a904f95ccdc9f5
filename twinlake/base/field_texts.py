"""What stands below each field of a dataclass, in its source: the words that reference pages are made of."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import is_dataclass
from functools import cache
from typing import Any


def field_texts(cls: type[Any]) -> dict[str, str]:
    """By field the text below it, in the class or in the nearest one that it inherits from, on one line."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if is_dataclass(one):
            found |= _written(one)
    return found


@cache
def _written(cls: type[Any]) -> dict[str, str]:
    """By field the text below it in the class's own source."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = " ".join(said.split())
    return found
