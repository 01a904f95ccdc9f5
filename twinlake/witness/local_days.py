"""Owns local days as DuckDB's own rules of time zones have them, where these are the definition's.

DuckDB finds each midnight by its clock; the definition only says where the clocks of the zone were changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from twinlake.base.times import EPOCH, from_micros, parse_moment
from twinlake.witness.database import Database
from twinlake.witness.refused import Refused
from twinlake.witness.text import cell, micros
from twinlake.witness.types import text_literal

DAY = micros(timedelta(days=1))
US = 1_000_000
FIRST, AFTER = -2_208_988_800 * US, 4_102_444_800 * US
"""1900 and 2100."""
_ALWAYS = -(1 << 60)
"""Before all times."""
_MARGIN = 3
"""So many days more on both sides, in which a window begins or ends, or a zone is beside UTC."""


def local_windows(
    database: Database, window: Mapping[str, Any], first: int, last: int, name: str
) -> str:
    """A relation of the windows that hold times in [first, last], and some more: `_begin`, `_until`, in
    microseconds like these. Refused where the engine knows another zone of this name."""
    zone = window["time_zone"]
    if not FIRST <= first <= last < AFTER:
        why = "a time before 1900 or after 2099, of which the engines may have other rules of zones"
        raise Refused(f"time zone {zone}", why)
    every, size = (micros(window.get(key) or window["size"]) // DAY for key in ("every", "size"))
    low, high = first // DAY - size - _MARGIN, last // DAY + size + _MARGIN
    if every > 1:  # days are counted from 1970 on
        low, high = min(low, -_MARGIN), max(high, _MARGIN)
    changes = _changes(database, window, low, high, f"{name}_changes")
    begins = database.table(f"{name}_days", _begins(zone, changes, low, high))
    zero = f"(SELECT _number FROM {begins} WHERE _date = 0)" if every > 1 else "0"
    days = f"SELECT *, lead(_begin, {size}) OVER (ORDER BY _begin) AS _until FROM {begins}"
    return database.table(
        name, f"SELECT _begin, _until FROM ({days}) WHERE (_number - {zero}) % {every} = 0"
    )


def _local(zone: str, at: str) -> str:
    """What a clock there shows, as microseconds like the time's own."""
    return f"epoch_us(timezone({text_literal(zone)}, timezone('UTC', make_timestamp(CAST({at} AS BIGINT)))))"


def _changes(database: Database, window: Mapping[str, Any], low: int, high: int, name: str) -> str:
    """A relation of where its clocks were changed (`_at`), and by how much they are ahead from then on
    (`_ahead`). Refused where the engine's clock shows something else, just before or after a change or in any
    half day."""
    zone = window["time_zone"]
    if not database.one(f"SELECT count(*) FROM pg_timezone_names() WHERE name = {text_literal(zone)}")[0]:
        raise Refused(f"time zone {zone}", "the engine does not know it")
    values = ", ".join(
        f"({micros(parse_moment(begin) - EPOCH) if begin else _ALWAYS}, {ahead * US})"
        for begin, ahead in window["offsets"]
    )
    changes = database.table(name, f"SELECT * FROM (VALUES {values}) AS c(_at, _ahead)")
    asked = (
        f"SELECT _at FROM {changes} UNION ALL SELECT _at - 1 FROM {changes}"
        f" UNION ALL SELECT unnest(range({low * DAY}, {high * DAY}, {DAY // 2})) AS _at"
    )
    within = f"SELECT _at FROM ({asked}) WHERE _at >= {low * DAY} AND _at < {high * DAY}"
    compared = f"({within}) AS a ASOF JOIN {changes} AS c ON a._at >= c._at"
    (other,) = database.one(
        f"SELECT min(a._at) FROM {compared} WHERE {_local(zone, 'a._at')} <> a._at + c._ahead"
    )
    if other is not None:
        why = "the engine has other rules of it than the definition has kept"
        raise Refused(f"time zone {zone}", f"{why}, as of {from_micros(other):%Y-%m-%d}")
    return changes


def _begins(zone: str, changes: str, low: int, high: int) -> str:
    """SELECT text of the days: `_begin`, `_date` in microseconds, and `_number`, which counts them.

    A day begins at midnight by the engine's clock, or where the clocks are changed beyond it: at the first of
    these with a new date. A date that comes twice is two days.
    """
    dates = f"SELECT unnest(range({low * DAY}, {high * DAY}, {DAY})) AS _date"
    ahead = f"SELECT DISTINCT _ahead FROM {changes}"
    midnights = f"SELECT _date - _ahead AS _at, _date AS _clock FROM ({dates}), ({ahead})"
    real = f"SELECT _at FROM ({midnights}) WHERE {_local(zone, '_at')} = _clock"
    changed = f"SELECT _at FROM {changes} WHERE _at >= {low * DAY} AND _at < {high * DAY}"
    dated = f"SELECT _at, {cell(_local(zone, '_at'), DAY)} AS _date FROM ({real} UNION {changed})"
    before = "max(_date) OVER (ORDER BY _at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    new = f"SELECT _at, _date FROM (SELECT *, {before} AS _seen FROM ({dated})) WHERE _date > _seen"
    length = "coalesce(lead(_at) OVER (ORDER BY _at) - _at, 0)"
    twice = f"range(CASE WHEN {length} >= {DAY + DAY // 2} THEN 2 ELSE 1 END)"
    days = f"SELECT _at, _date, unnest({twice}) AS _again FROM ({new})"
    begin = f"_at + _again * {DAY}"
    return (
        f"SELECT {begin} AS _begin, CASE WHEN _again = 0 THEN _date END AS _date,"
        f" row_number() OVER (ORDER BY {begin}) AS _number FROM ({days})"
    )
