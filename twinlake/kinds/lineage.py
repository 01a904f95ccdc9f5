"""Owns the text that finds the rows of an input behind rows of a view: those that they were made of.

`source` and `shown` are what follows FROM to read the input and the view's rows; conditions name them
`s` and `v`. The result has the columns of the source, and for stepped rows `_row` beside them.
"""

from __future__ import annotations

from collections.abc import Iterable

from twinlake.base import quote

ROW = "_row"


def behind_sql(source: str, shown: str, conditions: Iterable[str]) -> str:
    """SELECT text of the source's rows for which some shown row meets all conditions."""
    on = "\n  AND ".join(conditions) or "true"
    return f"SELECT `s`.*\nFROM {source} AS `s`\nLEFT SEMI JOIN {shown} AS `v`\n  ON {on}"


def row_of_step(name: str) -> str:
    """A column of the step, in the result."""
    return f"`{ROW}`.{quote.name(name)}"


def stepped(name: str) -> str:
    """A column of the step, in a condition."""
    return f"`s`.{row_of_step(name)}"


def same_steps(keys: Iterable[str]) -> list[str]:
    """The conditions that the steps have made the keys of a shown row; NULL is a key."""
    return [f"{stepped(key)} <=> `v`.{quote.name(key)}" for key in keys]


def same(names: Iterable[str]) -> list[str]:
    """The conditions that both have the same values in these columns."""
    return [f"`s`.{quote.name(name)} <=> `v`.{quote.name(name)}" for name in names]
