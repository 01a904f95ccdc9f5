"""The law of Rolling: the measures over the last windows are those of the records with times in them."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws import oracle
from tests.laws.histories import START, History, generated, packed
from tests.laws.tables import WINDOWED, stored
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.rolling import Rolling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = timedelta(minutes=1)
LENGTHS = {"1 minute": MINUTE, "3 minutes": 3 * MINUTE, "1 day": timedelta(days=1)}
TOP = Rolling(name="top", of="windowed", last=tuple(LENGTHS)).bound({"windowed": WINDOWED})
WATERMARKS = {
    "in a window": START + timedelta(seconds=100),
    "at the end of one": START + 2 * MINUTE,
    "before all": START - timedelta(days=30),
}
Shown = dict[str, dict[tuple[Any, ...], dict[str, Any]]]
"""By history, and by length and key, the measures."""


@pytest.fixture(scope="module")
def many() -> list[History]:
    return generated()


@pytest.fixture(scope="module")
def states(spark: SparkSession, many: list[History], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = str(tmp_path_factory.mktemp("rolling") / "states")
    stored(WINDOWED, packed(spark, many)).write.parquet(file)
    return f"parquet.`{file}`"


def text_of(states: str, watermark: datetime | None) -> str:
    known = (
        {} if watermark is None else {"made": f"(SELECT TIMESTAMP '{watermark.isoformat()}' AS watermark)"}
    )
    return TOP.view({"windowed": states}, ViewClock(watermarks=known))


def shown(spark: SparkSession, text: str) -> Shown:
    found: Shown = defaultdict(dict)
    for row in spark.sql(text).collect():
        values = row.asDict()
        covered = values.pop("window_end") - values.pop("window_start")
        history, length, key = (values.pop(name) for name in ("history", "last", "key"))
        assert covered == LENGTHS[length] and (length, key) not in found[history]
        found[history][length, key] = {name: values[name] for name in values if not name.startswith("ratio")}
    return found


def expected(history: History, end: datetime) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Sums of doubles are left out: they are the Aggregate's, and asked about there."""
    known = {}
    for length, long in LENGTHS.items():
        within = [one for one in history.records if one.at is not None and end - long <= one.at < end]
        for (key,), measures in oracle.aggregate(within, windowed=False).items():
            values = {name: value for name, value in measures.items() if not name.startswith("ratio")}
            known[length, key] = values
    return known


@pytest.mark.parametrize("watermark", WATERMARKS.values(), ids=WATERMARKS)
def test_the_last_windows_are_shown_the_same_for_every_cut(
    spark: SparkSession, many: list[History], states: str, watermark: datetime
) -> None:
    found = shown(spark, text_of(states, watermark))

    end = START + (watermark - START) // MINUTE * MINUTE
    for index, history in enumerate(many):
        for side in ("cut", "whole"):
            assert found[f"{index}/{side}"] == expected(history, end), history
    assert any(found.values()) == (watermark > START)


def test_without_a_watermark_there_are_no_last_windows(spark: SparkSession, states: str) -> None:
    assert shown(spark, text_of(states, None)) == {}


def test_the_bounds_of_what_was_rolled_are_shown(spark: SparkSession, states: str) -> None:
    rows = spark.sql(text_of(states, WATERMARKS["in a window"])).where("last = '3 minutes'")

    bounds = {
        (row["window_start"].astimezone(UTC), row["window_end"].astimezone(UTC)) for row in rows.collect()
    }
    assert bounds == {(START - 2 * MINUTE, START + MINUTE)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("`window_start` < ", "`window_start` <= "),
        ("`window_start` >= ", "`window_start` > "),
        (" - pmod(", " - 0 * pmod("),
    ],
    ids=["the open window is counted", "the first window is not counted", "the watermark is no window's end"],
)
def test_a_planted_bug_is_found(
    spark: SparkSession, many: list[History], states: str, old: str, new: str
) -> None:
    text = text_of(states, WATERMARKS["in a window"])
    planted = text.replace(old, new)
    assert planted != text

    found = shown(spark, planted)

    assert [found[f"{index}/cut"] for index in range(len(many))] != [
        expected(history, START + MINUTE) for history in many
    ]
