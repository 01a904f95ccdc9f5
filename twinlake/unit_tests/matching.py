"""Owns which row is meant by an expected one, and where the two differ.

A row is expected by the columns that are written. It is met by one that has all of these values; what is left
is paired by keys, then by how much is equal, so that a wrong value is shown beside the right one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinlake.unit_tests import values
from twinlake.unit_tests.source import Part
from twinlake.witness.rows import Found

Row = Mapping[str, Any]
_NEAR = 1e-9
"""Doubles are equal within this part of the larger one: how they were added up is no property of a table."""


@dataclass(frozen=True)
class Pair:
    """A row on either side; None where it has no partner. `differing` are the columns that are not equal."""

    expected: Row | None
    got: Row | None
    differing: tuple[str, ...] = ()
    part: Part | None = None
    """Where the expected one is written."""


def expected(parts: Sequence[Part], found: Found, what: str) -> list[tuple[Part, Row]]:
    """The rows that a test lists; TestMistake for a column that is not there, or a value it cannot have."""
    rows = list[tuple[Part, Row]]()
    for part in parts:
        entries = part.mapping(f"a row of {what}")
        if not entries:
            raise part.wrong("it names no column")
        rows.append((part, {
            name: values.read(entry, values.known(name, found.types, entry.key, what), name)
            for name, entry in entries.items()
        }))  # fmt: skip
    return rows


def differences(wanted: Sequence[tuple[Part, Row]], found: Found) -> list[Pair]:
    """Nothing where each expected row is there and no other; else the pairs that differ, by their keys."""
    got = [dict(zip(found.types, row, strict=True)) for row in found.rows]
    met = _met([row for _, row in wanted], got)
    left = [number for number in range(len(wanted)) if number not in met]
    over = [number for number in range(len(got)) if number not in met.values()]
    pairs = []
    for number, other in _nearest(left, over, wanted, got, found.keys):
        part, row = wanted[number]
        over.remove(other)
        left.remove(number)
        differing = tuple(name for name in row if not equal(row[name], got[other][name]))
        pairs.append((number, Pair(row, got[other], differing, part)))
    pairs += [(number, Pair(wanted[number][1], None, (), wanted[number][0])) for number in left]
    pairs.sort(key=lambda pair: pair[0])
    return [pair for _, pair in pairs] + [Pair(None, got[number]) for number in over]


def equal(one: Any, other: Any) -> bool:
    """Whether an expected value is met; of a struct the fields that are written."""
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) <= set(other) and all(equal(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=_NEAR)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _met(wanted: Sequence[Row], got: Sequence[Row]) -> dict[int, int]:
    """By number of an expected row that of the row which meets it: as many as can be (an augmenting path for
    each), for one row may meet several expected ones of which another meets only one."""
    meets = [
        [number for number, row in enumerate(got) if all(equal(want[name], row[name]) for name in want)]
        for want in wanted
    ]
    taken: dict[int, int] = {}

    def place(number: int, tried: set[int]) -> bool:
        for other in meets[number]:
            if other not in tried:
                tried.add(other)
                if other not in taken or place(taken[other], tried):
                    taken[other] = number
                    return True
        return False

    for number in range(len(wanted)):
        place(number, set())
    return {number: other for other, number in taken.items()}


def _nearest(
    left: Sequence[int],
    over: Sequence[int],
    wanted: Sequence[tuple[Part, Row]],
    got: Sequence[Row],
    keys: Sequence[str],
) -> list[tuple[int, int]]:
    """Pairs of rows without partner that are likely meant for each other: the more keys, then the more
    columns are equal, the earlier."""

    def likeness(number: int, other: int) -> tuple[int, int]:
        row = wanted[number][1]
        same = [name for name in row if equal(row[name], got[other][name])]
        return sum(name in keys for name in same), len(same)

    ranked = sorted(
        ((likeness(number, other), number, other) for number in left for other in over),
        key=lambda one: (-one[0][0], -one[0][1], one[1], one[2]),
    )
    pairs: list[tuple[int, int]] = []
    for found, number, other in ranked:
        if any(found) and number not in {one for one, _ in pairs} and other not in {one for _, one in pairs}:
            pairs.append((number, other))
    return pairs
