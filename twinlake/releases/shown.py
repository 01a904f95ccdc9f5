"""Shown: a comparison as a person decides by it: what changes, how much, where and since when.

The console's page and the report to pass on show the same: largest differences first, totals only of columns
that add up, and what is equal apart. Values come from records that anybody may have produced: they are cut
here, and escaped where they are shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from twinlake.base.errors import visible
from twinlake.difference.over_time import DIGITS
from twinlake.kinds.equality import is_number
from twinlake.releases.comparison import ComparedColumn, Comparison, Sample
from twinlake.releases.over_time import OverTime, span_text

LONGEST_VALUE = 200
OLDER = "It was compared by a Twinlake that did not look at time yet: `twinlake diff` compares it again."


def as_shown(found: Comparison) -> dict[str, Any]:
    """Plain data for a page."""
    columns = sorted((_column(one) for one in found.columns), key=_differs_by, reverse=True)
    numbers = {one.name for one in found.columns if all(map(is_number, one.type.split(" -> ")))}
    over_time = _over_time(found.over_time) if found.over_time else None
    return {
        "table": found.table, "equal": found.equal, "blue": found.blue.version, "green": found.green.version,
        "position": dict(found.position), "same": found.common - found.changed, "changed": found.changed,
        "common": found.common, "only_blue": found.only_blue, "only_green": found.only_green,
        "keys": list(found.keys), "blue_raises": found.blue_raises,
        "delta_versions": [found.blue.delta_version, found.green.delta_version],
        "columns_only_blue": list(found.columns_only_blue),
        "columns_only_green": list(found.columns_only_green),
        "columns": [one for one in columns if _differs(one)],
        "equal_columns": [one for one in columns if not _differs(one)],
        "samples": [_sample(one, found.keys, numbers) for one in found.samples],
        "over_time": over_time, "no_time": found.no_time or ("" if over_time else OLDER),
    }  # fmt: skip


def shown(value: Any) -> str:
    """A value as text, with an end; what hides something in it is visible."""
    if value is None:
        return "null"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= LONGEST_VALUE:
        return visible(text)
    return f"{visible(text[:LONGEST_VALUE])}… ({len(text):,} characters)"


def _over_time(found: OverTime) -> dict[str, Any]:
    """`plots` has what differs, `same` the names of what both versions have alike at every time."""
    each = span_text(found.seconds)
    lines = [*found.totals, found.rows]
    plots = [
        _plot(f"{'Rows' if one is found.rows else f'Sum of {one.name}'} per {each}", one.blue, one.green)
        for one in lines if not one.is_alike
    ]  # fmt: skip
    differing = {"name": "rows that differ", "values": list(found.differing), "side": "changed", "colour": 1}
    return {
        "column": found.column, "each": each, "first": found.first, "last": found.last,
        "untimed": found.untimed, "at": list(found.at),
        "plots": [*plots, {"title": f"Rows that differ per {each}", "curves": [differing]}],
        "same": [one.name for one in lines if one.is_alike],
    }  # fmt: skip


def _plot(title: str, blue: Sequence[float | None], green: Sequence[float | None]) -> dict[str, Any]:
    sides = (("blue", blue, 0), ("green", green, 2))
    curves = [
        {"name": name, "values": [*values], "side": name, "colour": colour} for name, values, colour in sides
    ]
    return {"title": title, "curves": curves}


def _column(one: ComparedColumn) -> dict[str, Any]:
    """`percent` is by how much the total changes, of blue's; None where blue has none, or nothing changes."""
    difference, blue = _difference(one.blue_total, one.green_total), _decimal(one.blue_total)
    percent = float(Decimal(difference) / abs(blue) * 100) if difference and blue else None
    return {**asdict(one), "difference": difference, "percent": percent}


def _differs(column: Mapping[str, Any]) -> bool:
    """A total that one side does not have, or that is no number, is another one, too."""
    return bool(column["changed"]) or column["blue_total"] != column["green_total"]


def _differs_by(column: Mapping[str, Any]) -> tuple[float, int]:
    percent, difference = column["percent"], column["difference"]
    return (abs(percent) if percent is not None else math.inf if difference else 0.0, column["changed"])


def _sample(one: Sample, keys: tuple[str, ...], numbers: Collection[str]) -> dict[str, Any]:
    names = one.columns or [name for name in (one.blue or one.green or {}) if name not in keys]
    return {
        "kind": one.kind,
        "key": [{"name": name, "value": shown(value)} for name, value in one.key.items()],
        "values": [_value(one, name, name in numbers) for name in names],
    }


def _value(one: Sample, name: str, is_number: bool) -> dict[str, Any]:
    """A value of a side that is missing is None."""
    blue, green = ((side or {}).get(name) for side in (one.blue, one.green))
    return {
        "name": name,
        "blue": None if one.blue is None else shown(blue),
        "green": None if one.green is None else shown(green),
        "difference": _difference(blue, green) if is_number else None,
    }


def _difference(blue: Any, green: Any) -> str | None:
    """Of two numbers, with its sign."""
    before, after = _decimal(blue), _decimal(green)
    if before is None or after is None or before == after:
        return None
    with localcontext(prec=2 * DIGITS):
        return f"{after - before:+f}"


def _decimal(value: Any) -> Decimal | None:
    """Of a number as results write it: those with all their digits are texts."""
    if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > 50:
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None
