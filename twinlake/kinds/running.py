"""Owns measures of rows so far: their aggregates as window functions, and states and values made of these."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from twinlake.base import quote
from twinlake.kinds import functions
from twinlake.kinds.definition import Definition
from twinlake.kinds.measures.measure import Measure, Part

_CALL = re.compile(r"\b([a-z_0-9]+)\(")


def refuse(definition: Definition, measures: Mapping[str, Measure]) -> None:
    """DefinitionError for a measure that cannot be taken on from row to row."""
    for name, measure in measures.items():
        if measure.running(name, scaled=False) is None:
            why = f"measure {name} ({measure.kind}) would look at all rows of the window again for each row"
            raise definition.error_at_text(name, why, "measure it in an Aggregate with windows")


@dataclass(frozen=True)
class Running:
    """State columns of rows so far, as SQL over columns that are an aggregate each.

    A window function is one call of an aggregate, a part's merge is an expression with several: many parts
    have some in common, which are computed once.
    """

    parts: Mapping[str, str]
    """State column -> SQL over the columns of `calls`."""
    calls: Mapping[str, str]
    """Column -> the call of an aggregate over states."""

    @classmethod
    def of(cls, parts: Mapping[str, str]) -> Running:
        """`parts` are state columns with aggregate SQL."""
        calls: dict[str, str] = {}
        texts = {name: _over_calls(sql, calls) for name, sql in parts.items()}
        return cls(parts=texts, calls={column: call for call, column in calls.items()})


def parts(measure: Measure, name: str, scaled: bool) -> tuple[Part, ...]:
    """Those of a measure that `refuse` lets pass."""
    found = measure.running(name, scaled=scaled)
    assert found is not None, f"{name} is refused"
    return found


def _over_calls(sql: str, calls: dict[str, str]) -> str:
    """The text with a column for each call of an aggregate; `calls` has them, and gets what is new."""
    made, end = [], 0
    for found in _CALL.finditer(sql):
        if found.start() < end or functions.known().get(found[1]) != "agg_funcs":
            continue
        made.append(sql[end : found.start()])
        end = _closing(sql, found.end())
        column = calls.setdefault(sql[found.start() : end], f"_call_{len(calls)}")
        made.append(quote.name(column))
    return "".join((*made, sql[end:]))


def _closing(sql: str, start: int) -> int:
    """Where the call ends whose arguments begin here; no text of a measure has a bracket in quotes."""
    depth = 1
    for place in range(start, len(sql)):
        depth += (sql[place] == "(") - (sql[place] == ")")
        if not depth:
            return place + 1
    raise AssertionError(f"a bracket is open in {sql}")
