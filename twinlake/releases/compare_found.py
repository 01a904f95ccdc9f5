"""Compare found: what two definitions of a table show of the same records, as the second engine finds it.

Equal means what it means between versions: rows meet by key, NULL equals NULL, and doubles that add up
compare within a billionth of the sizes of what was added up.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from twinlake.base.as_json import to_json
from twinlake.kinds.equality import TOLERANCE, is_number
from twinlake.kinds.kind import Kind
from twinlake.releases.comparison import SHOWN, ComparedColumn, ComparedVersion, Comparison, Sample
from twinlake.witness.rows import Found

NO_TIME = "Records of files are not counted by time."
_Row = Mapping[str, Any]
_Key = tuple[str, int]
"""The values of a row's key as text, and the how many-th of that key: a wrong definition has several."""
_Pair = tuple[_Key, _Row | None, _Row | None, tuple[str, ...]]
"""A row of either side, and the columns in which they differ."""


@dataclass(frozen=True)
class _Side:
    """The rows of one definition, without what the watermark decides."""

    definition: Kind
    types: Mapping[str, str]
    rows: Mapping[_Key, _Row]
    sizes: Mapping[_Key, _Row]

    @classmethod
    def of(cls, definition: Kind, found: Found) -> _Side:
        types = {name: found.types[name].spark for name in definition.timeless}
        seen = Counter[str]()
        rows, sizes = dict[_Key, _Row](), dict[_Key, _Row]()
        for number, values in enumerate(found.rows):
            whole = dict(zip(found.types, values, strict=True))
            text = json.dumps([to_json(whole[name]) for name in found.keys])
            key = (text, seen[text])
            seen[text] += 1
            rows[key] = {name: whole[name] for name in types}
            sizes[key] = {name: one[number] for name, one in found.sizes.items()}
        return cls(definition, types, rows, sizes)


def compare_found(
    before: tuple[str, Kind, Found], after: tuple[str, Kind, Found], position: Mapping[str, int]
) -> Comparison:
    """The difference of two definitions by the names that they go under: blue is before, green after.
    `position` says how many records of each topic both have seen."""
    blue, green = (_Side.of(definition, found) for _, definition, found in (before, after))
    meets = blue.definition.view_keys == green.definition.view_keys
    both = [key for key in blue.rows if key in green.rows] if meets else []
    alone = [
        [key for key in one.rows if not (meets and key in other.rows)]
        for one, other in ((blue, green), (green, blue))
    ]
    keys = green.definition.view_keys
    shared = [name for name in blue.types if name in green.types and not (meets and name in keys)]
    differing = {key: tuple(name for name in shared if not _same(blue, green, key, name)) for key in both}
    changed = {key: names for key, names in differing.items() if names}
    pairs: dict[str, list[_Pair]] = {
        "changed": [(key, blue.rows[key], green.rows[key], changed[key]) for key in changed],
        "only_blue": [(key, blue.rows[key], None, ()) for key in alone[0]],
        "only_green": [(key, None, green.rows[key], ()) for key in alone[1]],
    }
    return Comparison(
        table=green.definition.name,
        blue=ComparedVersion(version=before[0], delta_version=None),
        green=ComparedVersion(version=after[0], delta_version=None),
        position=dict(position),
        keys=keys,
        common=len(both),
        changed=len(changed),
        only_blue=len(alone[0]),
        only_green=len(alone[1]),
        columns=tuple(_column(blue, green, name, changed.values()) for name in shared) if meets else (),
        columns_only_blue=tuple(name for name in blue.types if name not in green.types),
        columns_only_green=tuple(name for name in green.types if name not in blue.types),
        samples=tuple(_samples(pairs, blue, green)),
        no_time=NO_TIME,
    )


def _same(blue: _Side, green: _Side, key: _Key, name: str) -> bool:
    left, right = blue.rows[key][name], green.rows[key][name]
    types = (blue.types[name], green.types[name])
    if types[0] != types[1] and not all(map(is_number, types)):
        return _as_text(left) == _as_text(right)
    if is_equal(left, right):
        return True
    known = (one.sizes[key].get(name) for one in (blue, green))
    scale = max((one for one in known if one is not None), default=0.0)
    if left is None or right is None or not math.isfinite(scale):
        return False
    return scale > 0 and abs(float(left) - float(right)) <= TOLERANCE * scale


def _as_text(value: Any) -> str | None:
    """As Spark casts it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(" ")
        return text.rstrip("0") if value.microsecond else text
    return json.dumps(value) if isinstance(value, bool) else str(to_json(value))


def is_equal(left: Any, right: Any) -> bool:
    """Whether two values are the same, as Spark's `<=>` says it: NaN equals NaN."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(is_equal(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_equal, left, right))
    if isinstance(left, float) or isinstance(right, float):
        if left is None or right is None:
            return left is right
        left, right = float(left), float(right)
        return left == right or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


def _column(blue: _Side, green: _Side, name: str, changed: Iterable[Sequence[str]]) -> ComparedColumn:
    types = (blue.types[name], green.types[name])
    adds_up = {name} <= {*blue.definition.additive} & {*green.definition.additive} and all(
        map(is_number, types)
    )
    totals = [_total(one, name) if adds_up else None for one in (blue, green)]
    return ComparedColumn(
        name=name, type=types[0] if types[0] == types[1] else " -> ".join(types),
        changed=sum(name in names for names in changed), blue_total=totals[0], green_total=totals[1],
    )  # fmt: skip


def _total(side: _Side, name: str) -> str | None:
    values = [row[name] for row in side.rows.values() if row[name] is not None]
    found = sum(values, Decimal(0)) if values and isinstance(values[0], Decimal) else sum(values)
    return str(to_json(found)) if values else None


def _samples(pairs: Mapping[str, Sequence[_Pair]], blue: _Side, green: _Side) -> Iterable[Sample]:
    """Of each sort those that have the largest share of what any column of numbers differs by."""
    numbers = [
        name for name, type_ in blue.types.items()
        if is_number(type_) and is_number(green.types.get(name, ""))
    ]  # fmt: skip
    moves = {
        (kind, key): [_move(old, new, name) for name in numbers]
        for kind, some in pairs.items() for key, old, new, _ in some
    }  # fmt: skip
    wholes = [sum(one[at] for one in moves.values() if one[at] < math.inf) for at in range(len(numbers))]

    def share(kind: str, key: _Key) -> float:
        parts = zip(moves[kind, key], wholes, strict=True)
        return max((min(1.0, move / whole if whole else 1.0) for move, whole in parts if move), default=0.0)

    for kind, some in pairs.items():
        ranked = sorted((-share(kind, one[0]), one[0], one) for one in some)
        for _, _, (_, old, new, names) in ranked[:SHOWN]:
            row = new or old or {}
            view_keys = (green if new is not None else blue).definition.view_keys
            yield Sample(
                kind=kind, key={name: to_json(row[name]) for name in view_keys}, columns=names,
                blue=None if old is None else to_json(old), green=None if new is None else to_json(new),
            )  # fmt: skip


def _move(old: _Row | None, new: _Row | None, name: str) -> float:
    """By how much a row differs there; what a missing row has counts as a whole."""
    left, right = (0.0 if side is None or side[name] is None else float(side[name]) for side in (old, new))
    return 0.0 if left == right else abs(left - right) if math.isfinite(left - right) else math.inf
