"""Owns which row is meant by an expected one, and where the two differ.

A row is expected by the columns that are written. It is met by one that has all of these values; what is left
is paired by keys, then by how much is equal, so that a wrong value is shown beside the right one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinlake.unit_tests import values
from twinlake.unit_tests.source import Part
from twinlake.witness.rows import Found

Row = Mapping[str, Any]
Equal = Callable[[Any, Any], bool]
NEAR = 1e-9
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


def differences(wanted: Sequence[tuple[Part, Row]], found: Found, near: float = NEAR) -> list[Pair]:
    """Nothing where each expected row is there and no other; else the pairs that differ, by their keys.
    Doubles are equal within this part (`near`) of the larger one."""

    def equal(one: Any, other: Any) -> bool:
        return is_equal(one, other, near)

    got = [dict(zip(found.types, row, strict=True)) for row in found.rows]
    met = _met([row for _, row in wanted], got, equal)
    left = [number for number in range(len(wanted)) if number not in met]
    over = [number for number in range(len(got)) if number not in met.values()]
    pairs = []
    for number, other in _nearest(left, over, wanted, got, found.keys, equal):
        part, row = wanted[number]
        over.remove(other)
        left.remove(number)
        differing = tuple(name for name in row if not equal(row[name], got[other][name]))
        pairs.append((number, Pair(row, got[other], differing, part)))
    pairs += [(number, Pair(wanted[number][1], None, (), wanted[number][0])) for number in left]
    pairs.sort(key=lambda pair: pair[0])
    return [pair for _, pair in pairs] + [Pair(None, got[number]) for number in over]


def is_equal(one: Any, other: Any, near: float = NEAR) -> bool:
    """Whether an expected value is met; of a struct the fields that are written."""
    if isinstance(one, dict) and isinstance(other, dict):
        same = (is_equal(value, other[name], near) for name, value in one.items() if name in other)
        return set(one) <= set(other) and all(same)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(is_equal(a, b, near) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=near)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _met(wanted: Sequence[Row], got: Sequence[Row], equal: Equal) -> dict[int, int]:
    """By number of an expected row that of the row which meets it: as many as can be (an augmenting path for
    each), for one row may meet several expected ones of which another meets only one."""
    meets = [
        [number for number, row in enumerate(got) if all(equal(want[name], row[name]) for name in want)]
        for want in wanted
    ]
    met: dict[int, int] = {}
    taken: dict[int, int] = {}

    def place(number: int) -> None:
        reached: dict[int, int] = {}
        waiting = [number]
        for want in waiting:
            for other in meets[want]:
                if other in reached:
                    continue
                reached[other] = want
                if other in taken:
                    waiting.append(taken[other])
                    continue
                while True:  # each on the way gives its row to the one before
                    want, freed = reached[other], met.get(reached[other])
                    met[want], taken[other] = other, want
                    if want == number:
                        return
                    assert freed is not None
                    other = freed

    for number in range(len(wanted)):
        place(number)
    return met


def _nearest(
    left: Sequence[int],
    over: Sequence[int],
    wanted: Sequence[tuple[Part, Row]],
    got: Sequence[Row],
    keys: Sequence[str],
    equal: Equal,
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
