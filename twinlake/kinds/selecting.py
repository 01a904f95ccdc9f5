"""Selecting: a first SELECT over one table or two, for a person to go on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twinlake.base import quote
from twinlake.base.errors import UsageError
from twinlake.kinds.derived import Derived
from twinlake.kinds.guess import free_name
from twinlake.kinds.kind import Kind


def selected(name: str, table: Kind) -> Kind:
    """All columns of one table."""
    shown = _shown(table, ())
    keys = tuple(shown[key] for key in table.view_keys)
    sql = f"\n        SELECT {_list(shown)}\n        FROM {table.name}\n    "
    return Derived(name=name, reads=(table.name,), columns=tuple(shown.values()), keys=keys, by=keys, sql=sql)


def matched(name: str, left: Kind, right: Kind) -> Kind:
    """The rows of two tables with equal keys."""
    if left.name == right.name:
        raise UsageError(
            f"{name} cannot be made of {left.name} twice", "it matches the rows of two tables",
            "name one table, or another one beside it",
        )  # fmt: skip
    of_right = set(right.output)
    on = [key for key in left.view_keys if key in of_right and not key.startswith("_")]
    if not on:
        raise UsageError(
            f"{left.name} and {right.name} cannot be joined",
            f"{right.name} has no key of {left.name}: {', '.join(left.view_keys)}",
            "begin with one of them, and write the SELECT",
        )  # fmt: skip
    shown = _shown(left, ())
    others = _shown(right, tuple(shown.values()), on)
    keys = [shown[key] for key in left.view_keys] + [others[key] for key in right.view_keys if key not in on]
    equal = " AND ".join(f"l.{quote.name(key)} = r.{quote.name(key)}" for key in on)
    sql = f"""
        SELECT {_list(shown, "l.")},
          {_list(others, "r.")}
        FROM {left.name} AS l JOIN {right.name} AS r ON {equal}
    """
    columns = (*shown.values(), *others.values())
    return Derived(
        name=name, reads=(left.name, right.name), columns=columns, keys=tuple(keys), by=tuple(on), sql=sql
    )


def _shown(table: Kind, taken: Sequence[str], without: Sequence[str] = ()) -> dict[str, str]:
    """By column of a table its name in one derived from it: what begins with _ is a record's."""
    found: dict[str, str] = {}
    for one in table.output:
        if one not in without:
            name = f"record{one}" if one.startswith("_") else one
            used = [*taken, *found.values()]
            clashes = name.lower() in (other.lower() for other in used)
            found[one] = free_name(f"{table.name}_{name}", used, table.name) if clashes else name
    return found


def _list(shown: Mapping[str, str], side: str = "") -> str:
    return ", ".join(
        f"{side}{quote.name(one)}" + ("" if one == name else f" AS {quote.name(name)}")
        for one, name in shown.items()
    )
