"""Owns what differs between two results of one table over the same records, and how that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinlake.unit_tests.matching import is_equal
from twinlake.unit_tests.values import shown
from twinlake.witness.rows import Found

MOST = 5
"""So many rows that differ are shown; all of them are counted."""


def differing(before: Found, now: Found) -> list[str]:
    """Lines for a person, the first of which counts; nothing where both are the same."""
    columns = list(_columns(before, now))
    if before.keys != now.keys:
        return [*columns, f"the keys are {', '.join(now.keys)}, and were {', '.join(before.keys)}"]
    old, new = _by_key(before), _by_key(now)
    both = [name for name in now.types if name in before.types]
    lines = []
    for key in [*old, *(key for key in new if key not in old)]:
        name = ", ".join(f"{column}={text}" for column, text in zip(now.keys, key, strict=True)) or "the row"
        if key not in new:
            lines.append(f"- {name}")
        elif key not in old:
            lines.append(f"+ {name}")
        elif parts := [
            f"{column} {shown(old[key][column])} -> {shown(new[key][column])}"
            for column in both
            if not is_equal(old[key][column], new[key][column])
        ]:
            lines.append(f"~ {name}: {', '.join(parts)}")
    more = [f"and {len(lines) - MOST} rows more"] if len(lines) > MOST else []
    counted = [f"{len(lines)} of {len(old | new)} rows differ"] if lines else []
    return [*counted, *columns, *lines[:MOST], *more]


def _columns(before: Found, now: Found) -> Iterator[str]:
    for name in before.types:
        if name not in now.types:
            yield f"column {name} is gone"
    for name, type_ in now.types.items():
        if name not in before.types:
            yield f"column {name} {type_.spark} is new"
        elif before.types[name] != type_:
            yield f"column {name} is {type_.spark}, and was {before.types[name].spark}"


def _by_key(found: Found) -> dict[tuple[str, ...], dict[str, Any]]:
    rows = (dict(zip(found.types, row, strict=True)) for row in found.rows)
    return {tuple(shown(row[name]) for name in found.keys): row for row in rows}
