"""Bugs in the logic of a kind or measure, which speed and batch share and call equal: the witness finds each.

A bug is planted in Spark's side alone, before the version's rows are computed by it as speed and batch do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import activity, joins, trailing
from tests.laws.histories import START, generated, packed
from tests.laws.tables import NEWEST, THREE, TOTALS, VERSIONS, WINDOWED
from tests.witness import hostile
from tests.witness.asking import answered, asked, differing, log_of, shown, view_of
from tests.witness.test_kinds import FIRST, micros, whole
from twinlake.kinds import grid, latest, sessions, steps, windows
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.history import History
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures import multisets, spread
from twinlake.kinds.measures.counts import CountDistinct
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import Measure, Part
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import Last
from twinlake.kinds.measures.spread import Variance
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.top_rows import TopRows
from twinlake.kinds.trailing import Trailing
from twinlake.witness.answer import DIFFERS, EQUAL, Answer
from twinlake.witness.question import TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Plant = Callable[[pytest.MonkeyPatch], None]
Made = tuple["DataFrame", TopicLog]
"""Rows of a topic, and its log."""
AT = micros(START + timedelta(hours=3, seconds=60))


def of_parts(measure: type[Measure], change: Callable[[Part], Part]) -> Plant:
    """A measure whose state of rows is another one; its merge is as it was, so cuts still agree."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real: Any = measure.parts
        patch.setattr(measure, "parts", lambda *asked: tuple(map(change, real(*asked))))

    return plant


def in_text(of: Any, method: str, was: str, now: str) -> Plant:
    """A kind, a measure or a module whose SQL has something else in it."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real: Any = getattr(of, method)

        def changed(*asked: Any, **named: Any) -> str:
            text: str = real(*asked, **named)
            assert re.search(was, text), text
            return re.sub(was, now, text)

        patch.setattr(of, method, changed)

    return plant


def counts_nulls(part: Part) -> Part:
    return replace(part, from_rows="count(1)") if part.name.endswith("__n") else part


def earlier_wins(part: Part) -> Part:
    """Of equal `by` the earlier record, for the later."""
    text = re.sub(r"`(_epoch|_partition|_offset)` AS", r"-`\1` AS", part.from_rows)
    assert text != part.from_rows
    return replace(part, from_rows=text)


def null_is_one(part: Part) -> Part:
    return replace(part, from_rows=part.from_rows.replace("`s`", "coalesce(`s`, 'none')"))


def adds_sizes(part: Part) -> Part:
    return replace(part, from_rows=part.from_rows.replace("CAST(`d12`", "CAST(abs(`d12`)"))


def nan_is_least(part: Part) -> Part:
    return replace(part, from_rows="max(nanvl(x, double('-infinity')))")


def missed_hop(patch: pytest.MonkeyPatch) -> None:
    real = windows.Hopping.hops
    patch.setattr(windows.Hopping, "hops", property(lambda self: real.fget(self) - 1))  # type: ignore[attr-defined]


def closed_windows(patch: pytest.MonkeyPatch) -> None:
    """A record at the end of a window counts in that one, and not in the next."""
    real = grid.cell_sql
    patch.setattr(grid, "cell_sql", lambda time, size: real(f"({time} - 1L)", size))


def forgets_deletes(patch: pytest.MonkeyPatch) -> None:
    """A delete is dropped before the newest row is looked for, so that the row before it shows again."""
    real = latest.Latest.partial

    def partial(self: Any, rows: DataFrame, *more: Any) -> DataFrame:
        return real(self, rows.where(f"NOT coalesce({self.delete_when}, false)"), *more)

    patch.setattr(latest.Latest, "partial", partial)


def nulls_win(patch: pytest.MonkeyPatch) -> None:
    """NULL is after every value in the order."""
    real = steps.apply

    def apply(*asked: Any, **named: Any) -> DataFrame:
        return (
            real(*asked, **named)
            .selectExpr("*", "coalesce(at, timestamp_seconds(9999999999)) AS ordered")
            .drop("at")
            .withColumnRenamed("ordered", "at")
        )

    patch.setattr(steps, "apply", apply)


def keeps_unknown(patch: pytest.MonkeyPatch) -> None:
    """A condition that is NULL lets a row through."""
    real = steps.apply

    def apply(table: Any, rows: DataFrame, *more: Any, **named: Any) -> DataFrame:
        known = replace(table, where=f"coalesce({table.where}, true)")
        return real(known, rows, *more, **named)

    patch.setattr(steps, "apply", apply)


def widened(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(multisets, "GROWTH", 1.1)


MEASURED = Aggregate(
    name="measured", inputs=("made",), keys=("g",), measures={"n": Sum("i")},
    columns={name: name for name in hostile.TYPES if name != "items"},
)  # fmt: skip


def measuring(measure: Measure) -> Aggregate:
    return replace(MEASURED, measures={"it": measure})


ONES: dict[str, tuple[Aggregate, Plant]] = {
    "Avg counts NULLs": (measuring(Avg("d12")), of_parts(Avg, counts_nulls)),
    "Last takes the earlier of a tie": (measuring(Last("s", by="yes")), of_parts(Last, earlier_wins)),
    "Max takes NaN for the smallest": (measuring(Max("x")), of_parts(Max, nan_is_least)),
    "CountDistinct counts NULL": (measuring(CountDistinct("s")), of_parts(CountDistinct, null_is_one)),
    "TopK takes the greater item of a tie": (
        measuring(TopK("s", 2)), in_text(TopK, "value", r"l\.item < r\.item THEN", "l.item > r.item THEN"),
    ),
    "Variance is that of all": (
        measuring(Variance("d12")), in_text(spread, "_variance", r"/ \((.*) - 1\) END$", r"/ (\1) END"),
    ),
    "Quantile has coarse buckets": (measuring(Quantile("d12", (0.5,))), widened),
    "Histogram has an edge in the bucket below it": (
        measuring(Histogram("d12", edges=(-1, 0.01))), in_text(Histogram, "_bucket", "<= `d12`", "< `d12`"),
    ),
    "Sum adds up sizes": (measuring(Sum("d12")), of_parts(Sum, adds_sizes)),
}  # fmt: skip
OF_HISTORIES: dict[str, tuple[Kind, Plant]] = {
    "closed windows": (WINDOWED, closed_windows),
    "a missed hop": (activity.SLIDING, missed_hop),
    "Latest forgets deletes": (NEWEST, forgets_deletes),
    "NULL wins in Latest": (NEWEST, nulls_win),
    "NULL comes first in TopRows": (THREE, nulls_win),
    "TopRows shows a row too few": (THREE, in_text(TopRows, "_first", r", 3\)$", ", 2)")),
    "a History begins a version with each row": (
        VERSIONS, in_text(History, "view", r"NOT \(IF.*\) AS `_changed`", "true AS `_changed`"),
    ),
    "a History ends versions at rows that change nothing": (
        VERSIONS, in_text(History, "view", r"`_to` AS `valid_to`", "`_next` AS `valid_to`"),
    ),
    "a delete ends no version of a History": (
        VERSIONS, in_text(History, "view", r"\) WHERE `_changed`", ") WHERE `_changed` AND NOT `_deleted`"),
    ),
    "a trailing window leaves out the record that it begins with": (
        trailing.BEFORE, in_text(Trailing, "_over", r"`_point` DESC, `_asks`", "`_point` DESC, `_asks` DESC"),
    ),
    "a trailing window forgets its first block": (
        trailing.BEFORE, in_text(Trailing, "_over", r"struct\(true AS `_asks`, .*? AS `_point`\)",
                                 "struct(true AS `_asks`, unix_micros(`at`) AS `_point`)"),
    ),
    "a row passes whose condition is NULL": (replace(TOTALS, where="amount > 0.00"), keeps_unknown),
    "sessions end at the gap itself": (
        activity.VISITS, in_text(sessions, "begins_sql", r"\) > max", r") >= max"),
    ),
}  # fmt: skip
JOINED: dict[str, tuple[Any, Plant]] = {
    "as-of before, and not at, its time": (
        joins.AS_OF["left"], in_text(AsOfJoin, "view", r"`at` <= `left`", r"`at` < `left`"),
    ),
    "as-of passes over a delete": (
        joins.AS_OF["left"],
        in_text(AsOfJoin, "_history", r"WHERE `_home`", r"WHERE `_home` AND NOT coalesce(gone, false)"),
    ),
    "a join leaves out the end of its interval": (
        joins.NEAR["left"], in_text(IntervalJoin, "view", r"<= `left`\.`at` \+", r"< `left`.`at` +"),
    ),
}  # fmt: skip


SEED = 1
"""Rows in which each bug of a measure shows; of one group in a hundred of drawn ones it may show in none."""


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    rows = hostile.rows(spark, SEED, groups=60).where("g IS NULL OR g > 0").cache()
    return rows, log_of(rows, tmp_path_factory.mktemp("log"), watermark=0)


@pytest.fixture(scope="module")
def histories(spark: SparkSession, seed: int, tmp_path_factory: pytest.TempPathFactory) -> Made:
    rows = whole(packed(spark, [*generated(60), *activity.activity(seed, 60)])).cache()
    return rows, log_of(rows, tmp_path_factory.mktemp("log"), watermark=AT)


def found(table: Kind, rows: DataFrame, log: TopicLog, folder: Path) -> Answer:
    return answered(asked(table, shown(table, rows, log), {"made": log}, folder))


@pytest.mark.parametrize("bug", ONES)
def test_a_bug_in_a_measure_differs(
    made: Made, bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, plant = ONES[bug]
    plant(monkeypatch)

    answer = found(table, *made, tmp_path)

    assert answer.verdict == DIFFERS and answer.differences[0].columns == ("it",), differing(answer)


@pytest.mark.parametrize("bug", OF_HISTORIES)
def test_a_bug_in_a_kind_differs(
    histories: Made, bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, plant = OF_HISTORIES[bug]
    plant(monkeypatch)

    answer = found(table, *histories, tmp_path)

    assert answer.verdict == DIFFERS, differing(answer)


@pytest.fixture(scope="module")
def two(spark: SparkSession, seed: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """By table the states of its rows; the log of the topic, of which only clocks are read."""
    pairs = joins.pairs(40, seed)
    states = {}
    for one, of_side in ((joins.ASKS, [p.left for p in pairs]), (joins.HITS, [p.right for p in pairs])):
        rows = whole(packed(spark, of_side))
        states[one.name] = one.partial(rows).cache()
    log = log_of(rows, tmp_path_factory.mktemp("log"), watermark=micros(FIRST + timedelta(hours=3)))
    yield states, {"made": log}


@pytest.mark.parametrize("bug", JOINED)
def test_a_bug_in_a_join_differs(two: Any, bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states, logs = two
    table, plant = JOINED[bug]
    reads = {name: (one, view_of(one, {name: states[name]}, logs)) for name, one in joins.TABLES.items()}
    plant(monkeypatch)

    answer = answered(asked(table, view_of(table, states, logs), logs, tmp_path, reads))

    assert answer.verdict == DIFFERS, differing(answer)


def test_a_window_too_many_in_rolling_differs(
    histories: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, log = histories
    top = Rolling(name="top", of="windowed", last=("1 minute", "2 minutes")).bound({"windowed": WINDOWED})
    in_text(Rolling, "_over", r"`window_start` < timestamp", "`window_start` <= timestamp")(monkeypatch)
    log = replace(log, watermark=micros(START + timedelta(seconds=60)))

    view = view_of(top, {"windowed": WINDOWED.partial(rows)}, {"made": log})
    answer = answered(asked(top, view, {"made": log}, tmp_path, {"windowed": (WINDOWED, None)}))

    assert answer.verdict == DIFFERS, differing(answer)


def test_nothing_differs_without_a_bug(made: Made, histories: Made, tmp_path: Path) -> None:
    """The same tables, all at once: what differs above differs because of the bug."""
    measures = {f"m{number}": one.measures["it"] for number, (one, _) in enumerate(ONES.values())}
    answers = [found(replace(MEASURED, measures=measures), *made, tmp_path)]
    answers += [found(table, *histories, tmp_path) for table, _ in OF_HISTORIES.values()]

    assert [answer.verdict for answer in answers] == [EQUAL] * len(answers)
