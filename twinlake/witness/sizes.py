"""Owns the size of a sum of doubles: the same sum over absolute values, which bounds what its order decides.

Two sums of the same values differ by a tiny share of their size, however much of them cancels.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

Holds = Callable[[exp.Expression], bool]
"""Whether a node has sums of doubles in it."""
_SUMS = ("sum", "avg", "mean")
_FIRST_KNOWN = ("coalesce", "ifnull", "nvl")


def size_of(node: exp.Expression, holds: Holds) -> exp.Expression | None:
    """The expression of the size, NULL where the value is; None where it is not known how it follows."""
    if not holds(node):
        return _call("abs", node.copy())
    if isinstance(node, (exp.Paren, exp.Neg)):
        return _whole(size_of(node.this, holds))
    if isinstance(node, exp.TryCast):  # to a double: others are refused
        return size_of(node.this, holds)
    if isinstance(node, (exp.Add, exp.Sub)):
        return _of_both(exp.Add, node, holds)
    if isinstance(node, exp.Mul) or (isinstance(node, exp.Div) and not holds(node.expression)):
        return _of_both(type(node), node, holds)
    if isinstance(node, (exp.Window, exp.Filter)):
        inner, found = size_of(node.this, holds), node.copy()
        if inner is None:
            return None
        found.set("this", inner)
        return found
    return _of_call(node, holds) if isinstance(node, exp.Anonymous) else None


def _of_call(node: exp.Anonymous, holds: Holds) -> exp.Expression | None:
    name, operands = str(node.this).lower(), node.expressions
    if name in _SUMS and len(operands) == 1 and not holds(operands[0]):
        return _call(name, _call("abs", operands[0].copy()))
    if name in _FIRST_KNOWN or name == "double":
        sizes = [size_of(one, holds) for one in operands]
        known = [one for one in sizes if one is not None]
        return _call(name, *known) if len(known) == len(sizes) else None
    return None


def _of_both(sign: type[exp.Expression], node: exp.Expression, holds: Holds) -> exp.Expression | None:
    left, right = size_of(node.this, holds), size_of(node.expression, holds)
    if left is None or right is None:
        return None
    return exp.Paren(this=sign(this=left, expression=right))


def _whole(node: exp.Expression | None) -> exp.Expression | None:
    return None if node is None else exp.Paren(this=node)


def _call(name: str, *operands: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(operands))
