"""IntervalJoin: a row for each pair with the right time in [left time - before, left time + after], and for
rows without a partner where it says so.
"""

from __future__ import annotations

from twinlake.witness.result import Asked, Result
from twinlake.witness.sides import AT, LEFT, RIGHT, joined, same_on, sides
from twinlake.witness.text import RECORD_NUMBER, cell, micros

_PAIRS = "_pairs"


def interval_join(asked: Asked) -> Result:
    """Rows meet in stretches of time as long as the interval, so that one key with many rows is no product of
    them: a left row looks into the two or three that its interval touches."""
    definition, both = asked.definition, sides(asked)
    before, after = micros(definition["before"]), micros(definition["after"])
    long = max(before + after, 1)
    left, right = both[LEFT].relation, both[RIGHT].relation
    first, last = (cell(sql, long) for sql in (f"({AT} - {before})", f"({AT} + {after})"))
    looking = f"(SELECT *, unnest(range({first}, {last} + 1, {long})) AS stretch FROM {left})"
    found = f"(SELECT *, {cell(AT, long)} AS stretch FROM {right})"
    near = f"r.{AT} >= l.{AT} - {before} AND r.{AT} <= l.{AT} + {after}"
    asked.database.table(
        _PAIRS,
        f"SELECT l.{RECORD_NUMBER} AS l, r.{RECORD_NUMBER} AS r FROM {looking} AS l JOIN {found} AS r"
        f" ON {same_on(definition['on'])} AND l.stretch = r.stretch AND {near}",
    )
    parts = [f"SELECT l, r FROM {_PAIRS}"]
    alone = f"SELECT {RECORD_NUMBER} FROM {{0}} WHERE {RECORD_NUMBER} NOT IN (SELECT {{1}} FROM {_PAIRS})"
    if definition["how"] in ("left", "full"):
        parts.append(f"SELECT {RECORD_NUMBER} AS l, NULL AS r FROM ({alone.format(left, 'l')})")
    if definition["how"] == "full":
        parts.append(f"SELECT NULL AS l, {RECORD_NUMBER} AS r FROM ({alone.format(right, 'r')})")
    return joined(asked, both, " UNION ALL ".join(parts), {LEFT: after, RIGHT: before})
