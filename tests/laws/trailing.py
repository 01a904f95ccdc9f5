"""Trailing windows by their definition: of each record all records of its key, looked at one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.laws import oracle, simple_measures
from tests.laws.cuts import Shown
from tests.laws.histories import LEVELS, Record
from tests.laws.tables import MEASURES
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.measure import Measure
from twinlake.kinds.measures.totals import Sum
from twinlake.kinds.trailing import Trailing

SHORT, LONG = timedelta(seconds=74), timedelta(minutes=10)
"""Two steps of the times of generated records, and all of them."""
_COLUMNS = {name: name for name in (*LEVELS, "history", "key", "at", "amount", "wide", "ratio", "words")}


def _named(prefix: str, measures: dict[str, Measure]) -> dict[str, Measure]:
    return {f"{prefix}_{name}": measure for name, measure in measures.items()}


BEFORE = Trailing(
    name="before", inputs=("made",), where="amount IS NULL OR amount <> 1.00", columns=_COLUMNS,
    keys=("history", "key"), on="at", cell="2 minutes",
    last={"74 seconds": _named("short", MEASURES), "10 minutes": _named("long", MEASURES)},
)  # fmt: skip
"""Of lengths below and above that of a cell, with records that touch the begin of a window."""
FEW = replace(
    BEFORE, name="few",
    last={
        "74 seconds": {
            "short_n": Count(), "short_wide": Sum("wide"), "short_distinct": CountDistinct("words"),
        },
    },
)  # fmt: skip
"""The same with what mistakes show in."""
WITH_ITSELF = replace(BEFORE, name="with_itself", with_itself=True, cell="1 day")
SPREADS: dict[str, Measure] = {
    name: measure
    for name, measure in simple_measures.MEASURES.items()
    if measure.running(name, scaled=False) is not None
}
ODD = Trailing(
    name="odd", inputs=("made",), columns=_COLUMNS, keys=("history", "key"), on="at", cell="1 hour",
    last={"74 seconds": SPREADS},
)  # fmt: skip


def windows(
    records: Iterable[Record], length: timedelta, *, with_itself: bool
) -> dict[Record, list[Record]]:
    """Of each record with a time those in its window, in order."""
    timed = sorted((one for one in records if one.at), key=lambda one: (one.at, one.record_id))

    def is_within(one: Record, place: int, of: Record, end: int) -> bool:
        assert one.at and of.at
        before = place < end or (with_itself and place == end)
        return before and one.key == of.key and one.at >= of.at - length

    return {
        of: [one for place, one in enumerate(timed) if is_within(one, place, of, end)]
        for end, of in enumerate(timed)
    }


def expected(table: Trailing) -> Callable[[Iterable[Record]], Shown]:
    """What the two first tables show, by record id; amount 1.00 is filtered out."""

    def rows(records: Iterable[Record]) -> Shown:
        left = [one for one in records if one.amount is None or one.amount != 1]
        found: Shown = {}
        for prefix, length in (("short", SHORT), ("long", LONG)):
            for of, within in windows(left, length, with_itself=table.with_itself).items():
                row: dict[str, Any] = {f"{prefix}_{k}": v for k, v in oracle.measures(within).items()}
                found.setdefault(of.record_id, {"key": of.key, "at": of.at}).update(row)
        return found

    return rows
