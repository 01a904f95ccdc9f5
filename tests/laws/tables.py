"""Definitions that the laws are asked about: every kind, every measure, packed by history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.laws.histories import LEVELS
from twinlake.base.times import parse_duration
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.history import History
from twinlake.kinds.kind import UNKNOWN_TIME, StoredKind, ViewClock
from twinlake.kinds.latest import Latest
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.steps import Explode
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.windows import Tumbling

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACES = {name: name for name in ("history", *LEVELS)}
_MEASURED = {name: name for name in ("key", "at", "amount", "wide", "ratio", "words")}
MEASURES = {
    "n": Count(),
    "n_amount": Count("amount"),
    "sales": Sum("amount"),
    "average": Avg("amount"),
    "smallest": Min("amount"),
    "largest": Max("amount"),
    "wide": Sum("wide"),
    "wide_average": Avg("wide"),
    "ratio": Sum("ratio"),
    "ratio_average": Avg("ratio"),
    "first_word": Min("words"),
    "distinct": CountDistinct("words"),
}
WINDOWED = Aggregate(
    name="windowed", inputs=("made",), where="amount IS NULL OR amount <> 1.00", columns=_PLACES | _MEASURED,
    keys=("history", "key"), window=Tumbling(on="at", size="1 minute"), measures=MEASURES,
)  # fmt: skip
TOTALS = replace(WINDOWED, name="totals", window=None)
WORDS = Aggregate(
    name="words", inputs=("made",), explode=Explode(name="word", array="split(words, ' ')"),
    columns=_PLACES | {"word": "word"}, keys=("history", "word"), measures={"n": Count()},
)  # fmt: skip
NEWEST = Latest(
    name="newest", inputs=("made",), columns=_PLACES | _MEASURED | {"gone": "gone"}, keys=("history", "key"),
    order=("at",), delete_when="gone", values=("at", "amount", "words"),
)  # fmt: skip
THREE = TopRows(
    name="three", inputs=("made",), columns=_PLACES | _MEASURED, keys=("history", "key"), order=("at",),
    rows=3, values=("at", "amount", "words"),
)  # fmt: skip
VERSIONS = History(
    name="versions", inputs=("made",), columns=_PLACES | _MEASURED | {"gone": "gone"},
    keys=("history", "key"), order=("at",), delete_when="gone", values=("words",),
)  # fmt: skip
PLAIN = Events(
    name="plain", inputs=("made",), where="key <> ''", columns={"history": "history", "key": "key"}
)


def stored(table: Aggregate | Latest | TopRows | History, rows: DataFrame) -> DataFrame:
    """The rows of the version: partials of the blocks, merged into segments, merged into bases."""
    state = None
    for depth in (3, 2, 1):
        level = replace(table, keys=(*LEVELS[3 - depth :], *table.keys))
        state = level.partial(rows) if state is None else level.merge(state)
    assert state is not None
    return state


def view_text(
    table: StoredKind, relation: str, watermark: str = UNKNOWN_TIME, scaled: tuple[str, ...] = ()
) -> str:
    """The view that a reader would get."""
    late_after = {"made": parse_duration("3 hours")}
    return table.view(
        {table.name: relation}, ViewClock(watermarks={"made": watermark}, late_after=late_after), scaled
    )
