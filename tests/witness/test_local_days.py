"""Windows of local days: the witness finds what Spark shows by DuckDB's own zones, and bugs in it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.laws.by_witness import said_by_oracle
from tests.laws.histories import packed
from tests.laws.local_days import HOUR, PLACES, Place
from tests.laws.test_local_days import (
    a_day_of_the_25th_hour,
    all_of_24_hours,
    days_of_utc,
    ends_after_24_hours,
)
from tests.laws.test_oracles_by_the_witness import CASES, keyed
from tests.oracle.local_days import DAY, begin, day_at
from tests.witness.asking import answered, asked, differing, log_of, shown, view_of
from tests.witness.test_kinds import micros, whole
from twinlake.kinds.all import from_json
from twinlake.kinds.kind import Kind
from twinlake.kinds.rolling import Rolling
from twinlake.witness.answer import DIFFERS, EQUAL, NOT_WITNESSED, Answer
from twinlake.witness.question import TopicLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONG = "25 and 23 hours"
KNOWN = {
    name: replace(place, days=tuple(day for day in place.days if day.year > 1900))
    for name, place in PLACES.items()
}
"""The engine is asked about no time before 1900."""
WINDOWED = CASES["windowed"][2]
"""The types of what is shown."""
Made = tuple["DataFrame", TopicLog]


def made_of(spark: SparkSession, place: Place, folder: Path, count: int = 60) -> Made:
    rows = whole(packed(spark, place.histories(count))).cache()
    clock = begin(place.zone, place.days[0]) + 28 * HOUR
    return rows, log_of(rows, folder, watermark=micros(clock))


def answer(table: Kind, made: Made, folder: Path) -> Answer:
    return answered(asked(table, shown(table, *made), {"made": made[1]}, folder))


@pytest.mark.parametrize("name", KNOWN)
def test_the_witness_finds_local_days(spark: SparkSession, name: str, tmp_path: Path) -> None:
    """Some of them final, by a clock after the first day's end."""
    found = answer(KNOWN[name].table, made_of(spark, KNOWN[name], tmp_path), tmp_path)

    assert found.verdict == EQUAL and found.rows > 50, differing(found)
    assert found.final and (found.final.verdict, found.final.rows) == (EQUAL, found.rows)


def test_the_witness_leaves_out_local_days_that_are_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    """The day before the long one has ended three hours more than a day before the clock."""
    made = made_of(spark, KNOWN[LONG], tmp_path)
    tables = [replace(KNOWN[LONG].table, retention=kept) for kept in ("1 day", "2 days", "3 days")]

    answers = [answer(table, made, tmp_path) for table in tables]

    assert [one.verdict for one in answers] == [EQUAL] * 3
    assert answers[0].rows < answers[1].rows < answers[2].rows


@pytest.mark.parametrize(
    "plant", [all_of_24_hours, days_of_utc, a_day_of_the_25th_hour, ends_after_24_hours]
)
def test_a_wrong_length_of_a_day_differs(
    spark: SparkSession, plant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_of(spark, KNOWN[LONG], tmp_path)
    plant(monkeypatch)

    assert answer(KNOWN[LONG].table, made, tmp_path).verdict == DIFFERS


@pytest.mark.parametrize("hours", [-0.5, 0, 24.5, 25, 100])
def test_the_witness_finds_the_last_local_days(spark: SparkSession, hours: float, tmp_path: Path) -> None:
    """Bounds, too: three days are 73 hours where one of them is long."""
    place = KNOWN[LONG]
    rows, log = made_of(spark, place, tmp_path, 240)  # of fewer none may be of the last days
    day = begin(place.zone, place.days[0])
    log = replace(log, watermark=micros(day + hours * HOUR))
    top = Rolling(name="top", of="local", last=("1 day", "3 days")).bound({"local": place.table})
    view = view_of(top, {"local": place.table.partial(rows)}, {"made": log}).cache()

    found = answered(asked(top, view, {"made": log}, tmp_path, {"local": (place.table, None)}))

    assert found.verdict == EQUAL and found.rows > 0, differing(found)
    assert found.final and found.final.verdict == EQUAL
    last = begin(place.zone, day_at(place.zone, day + hours * HOUR))
    first = begin(place.zone, day_at(place.zone, last) - 3 * DAY)
    bounds = view.where("last = '3 days'").select("window_start", "window_end").distinct().collect()
    assert [(row[0].timestamp(), row[1].timestamp()) for row in bounds] == [
        (first.timestamp(), last.timestamp())
    ]


def said(place: Place, table: Kind, folder: Path) -> Answer:
    """Of what plain Python says, without Spark."""

    def rows(records: Any) -> list[dict[str, Any]]:
        return keyed(place.expected(records), "key", "window_start", final=False)

    return said_by_oracle(table, place.histories(100), rows, WINDOWED, folder)


@pytest.mark.parametrize("name", KNOWN)
def test_the_witness_finds_what_plain_python_says(name: str, tmp_path: Path) -> None:
    found = said(KNOWN[name], KNOWN[name].table, tmp_path)

    assert found.verdict == EQUAL and found.rows > 100, found


def shifted(of: Any, at: date, seconds: int) -> Any:
    """The definition as another package of zones would have made it: from this day on clocks go otherwise."""
    stored = of.to_json()
    moment = f"{at}T12:00:00Z"
    before = [one for one in stored["window"]["offsets"] if one[0] < moment]
    stored["window"]["offsets"] = [*before, [moment, before[-1][1] + seconds]]
    return from_json(stored)


def test_where_the_engine_has_other_rules_of_a_zone_there_is_no_verdict(tmp_path: Path) -> None:
    """Never a wrong difference: rules come with the engine, and with the package that the definition knew."""
    place = KNOWN[LONG]

    found = said(place, shifted(place.table, date(2026, 10, 26), -3600), tmp_path)

    assert found.verdict == NOT_WITNESSED and found.refused == "time zone Europe/Berlin"
    assert "the engine has other rules of it than the definition has kept, as of 2026-10-26" in found.why


def test_rules_that_are_others_after_all_records_are_no_matter(tmp_path: Path) -> None:
    place = replace(KNOWN[LONG], days=(date(2026, 10, 25),))

    assert said(place, shifted(place.table, date(2027, 3, 1), -3600), tmp_path).verdict == EQUAL


def test_a_zone_that_the_engine_does_not_know_has_no_verdict(tmp_path: Path) -> None:
    table = KNOWN[LONG].table.to_json()
    table["window"]["time_zone"] = "Europe/Atlantis"

    found = said(KNOWN[LONG], from_json(table), tmp_path)

    assert (found.verdict, found.refused) == (NOT_WITNESSED, "time zone Europe/Atlantis")


def test_a_time_before_1900_has_no_verdict(tmp_path: Path) -> None:
    place = replace(KNOWN[LONG], days=(date(1893, 4, 1),))

    found = said(place, place.table, tmp_path)

    assert found.verdict == NOT_WITNESSED and "before 1900" in found.why


def test_no_records_are_no_windows(tmp_path: Path) -> None:
    found = said_by_oracle(KNOWN[LONG].table, [], lambda _: [], WINDOWED, tmp_path)

    assert (found.verdict, found.rows) == (EQUAL, 0), found


