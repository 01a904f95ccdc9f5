"""History: each version of a key's row, whatever the cut and the merge, by a time and by the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import histories, oracle
from tests.laws.cuts import Shown, wrong_kept_plans, wrong_states, wrong_views
from tests.laws.histories import START, Record, generated, packed
from tests.laws.tables import VERSIONS
from twinlake.kinds import steps
from twinlake.kinds.history import History

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLLOWED = replace(VERSIONS, name="followed", order=())
"""By the log, over records whose times in Kafka are in part equal, and go back."""


@pytest.fixture(scope="module")
def many() -> list[histories.History]:
    return generated()


@pytest.fixture(scope="module")
def rows(spark: SparkSession, many: list[histories.History]) -> DataFrame:
    return stamped(packed(spark, many)).cache()


def stamped(rows: DataFrame) -> DataFrame:
    seconds = "pmod(_offset, 1000) DIV 2 * 3 + _partition - IF(_offset % 5 = 4, 9, 0)"
    stamp = f"timestampadd(SECOND, CAST({seconds} AS int), _timestamp) AS _timestamp"
    return rows.selectExpr(*(stamp if name == "_timestamp" else name for name in rows.columns))


def stamp(record: Record) -> datetime:
    _, partition, offset = record.record_id
    return START + timedelta(seconds=offset // 2 * 3 + partition - (9 if offset % 5 == 4 else 0))


def expected(table: History) -> Callable[[Iterable[Record]], Shown]:
    return lambda records: oracle.versions(records, None if table.order else stamp)


@pytest.mark.parametrize("table", [VERSIONS, FOLLOWED], ids=lambda table: table.name)
def test_every_cut_and_merge_shows_the_versions_of_each_key(
    spark: SparkSession, many: list[histories.History], rows: DataFrame, table: History
) -> None:
    assert wrong_views(spark, table, rows, many, expected(table)) == []
    assert wrong_states(table, rows, many) == []


def test_a_row_with_the_values_of_the_one_before_begins_no_version_and_one_after_a_delete_does(
    many: list[histories.History],
) -> None:
    """The histories have all of it: late rows, ties, rows without a time, deletes of nothing, equal rows."""
    seen = set[str]()
    for key, group in (
        (key, [one for one in history.records if one.key == key]) for history in many for key in ("a", "b")
    ):
        times = [one.at for one in group if one.at]
        seen |= {"late"} if times != sorted(times) else set()
        seen |= {"tie"} if len(set(times)) < len(times) else set()
        seen |= {"timeless"} if len(times) < len(group) else set()
        ordered = sorted((one for one in group if one.at), key=lambda one: (one.at, one.record_id))
        seen |= {"delete of nothing"} if ordered and ordered[0].gone else set()
        shown = oracle.versions(group)
        current = [row for row in shown.values() if row["is_current"]]
        assert len(current) <= 1 and all(row["valid_to"] is None for row in current)
        assert all(one_key == key for one_key, _ in shown)
        alive = len({one.at for one in ordered if not one.gone})
        seen |= {"equal"} if len(shown) < alive else set()

    assert seen == {"late", "tie", "timeless", "delete of nothing", "equal"}


def in_view(was: str, now: str) -> Callable[[pytest.MonkeyPatch], None]:
    """A view with something else in its text."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real: Any = History.view

        def view(*asked: Any, **named: Any) -> str:
            text: str = real(*asked, **named)
            assert re.search(was, text), text
            return re.sub(was, now, text)

        patch.setattr(History, "view", view)

    return plant


def forgets_deletes(patch: pytest.MonkeyPatch) -> None:
    real: Any = History.partial
    patch.setattr(
        History, "partial", lambda table, rows: real(table, rows.where("NOT coalesce(gone, false)"))
    )


def keeps_the_newest(patch: pytest.MonkeyPatch) -> None:
    """A merge that keeps of each key what seems to matter: a late row then ends too much."""
    real: Any = History.merge

    def merge(table: History, states: DataFrame) -> DataFrame:
        keys = ", ".join(f"`{key}`" for key in table.keys)
        newest = f"row_number() OVER (PARTITION BY {keys} ORDER BY valid_from DESC, _offset DESC) AS nth"
        found: DataFrame = real(table, states)
        return found.selectExpr("*", newest).where("nth <= 2").drop("nth")

    patch.setattr(History, "merge", merge)


def times_at_null(patch: pytest.MonkeyPatch) -> None:
    """A row without a time is valid from the beginning of time."""
    real = steps.apply

    def apply(*asked: Any, **named: Any) -> DataFrame:
        made = real(*asked, **named)
        early = "coalesce(at, timestamp_seconds(0)) AS at"
        return made.selectExpr(*(early if name == "at" else f"`{name}`" for name in made.columns))

    patch.setattr(steps, "apply", apply)


@pytest.mark.parametrize(
    ("table", "plant"),
    [
        (VERSIONS, forgets_deletes),
        (VERSIONS, keeps_the_newest),
        (VERSIONS, times_at_null),
        (VERSIONS, in_view(r"NOT \(IF.*\) AS `_changed`", "true AS `_changed`")),
        (VERSIONS, in_view(r"BY `_from`, `_epoch`, `_partition`, `_offset`", "BY `_from`, hash(words)")),
        (VERSIONS, in_view(r"WHERE NOT `_deleted`", "")),
        (FOLLOWED, in_view(r"max\(valid_from\) OVER \([^)]*\)", "valid_from")),
        (FOLLOWED, in_view(r", `_partition` ORDER BY `_epoch`,", " ORDER BY `_epoch`, `_partition`,")),
    ],
    ids=("forgets deletes", "keeps the newest", "times at NULL", "every row", "ties by value",
         "shows deletes", "by Kafka's clock alone", "by the record id alone"),
)  # fmt: skip
def test_a_mistake_is_caught(
    spark: SparkSession, many: list[histories.History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch,
    table: History, plant: Callable[[pytest.MonkeyPatch], None],
) -> None:  # fmt: skip
    plant(monkeypatch)

    assert wrong_views(spark, table, rows, many, expected(table))


def test_versions_of_no_length_are_caught(
    spark: SparkSession, many: list[histories.History], rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_view(r"WHERE `_next` IS NULL OR `_from` < `_next`", "WHERE true")(monkeypatch)

    with pytest.raises(AssertionError, match="two rows for"):
        wrong_views(spark, VERSIONS, rows, many, expected(VERSIONS))


def test_a_key_of_minus_zero_is_zero_before_and_after_a_merge(spark: SparkSession) -> None:
    table = History(
        name="t", inputs=("made",), columns={"k": "k", "at": "at", "v": "v"}, keys=("k",), order=("at",),
        values=("v",),
    )  # fmt: skip
    rows = spark.sql(
        "SELECT k, timestamp_seconds(n) AS at, n AS v, 0 AS _epoch, 0 AS _partition, n AS _offset,"
        " timestamp_seconds(n) AS _timestamp FROM VALUES (-0.0D, 1L), (0.0D, 2L), (NULL, 3L) AS r(k, n)"
    )
    states = table.partial(rows)

    for found in (states, table.merge(states)):
        assert sorted(str(row["k"]) for row in found.collect()) == ["0.0", "0.0", "None"]


def test_kept_plans_make_the_states_that_fresh_ones_make(
    spark: SparkSession, many: list[histories.History]
) -> None:
    batches = [packed(spark, cut) for cut in (many[:1], many[1:5], many[5:40])]

    assert wrong_kept_plans(spark, VERSIONS, batches) == []
