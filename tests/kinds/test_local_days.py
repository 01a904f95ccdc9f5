"""Windows of local days: where they begin, what is kept of their zone, and what is refused."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.local_days import DAY, begin, day_at, window_at
from twinlake.base.errors import DefinitionError, UsageError
from twinlake.base.times import EPOCH, from_micros
from twinlake.kinds import time_zone
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.all import from_json
from twinlake.kinds.grid import micros
from twinlake.kinds.local_days import cell_runs
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.time_zone import Offsets, known_offsets, offsets_of
from twinlake.kinds.windows import Hopping, Tumbling, Window, Windows, end_sql, window_from_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR, TICK = timedelta(hours=1), timedelta(microseconds=1)
ZONES = (
    "Europe/Berlin", "America/Sao_Paulo", "Asia/Beirut", "America/St_Johns", "America/Toronto", "Asia/Tokyo",
)  # fmt: skip
BERLIN = Tumbling(on="at", size="1 day", time_zone="Europe/Berlin")
IN_NO_WINDOW = ("Pacific/Enderbury", "Pacific/Kanton")
"""Nobody lived there before 1937, and 12 hours of difference began."""


def daily(window: Window = BERLIN, **changed: Any) -> Aggregate:
    found: dict[str, Any] = {
        "name": "t", "inputs": ("orders",), "columns": {"k": "region", "at": "ordered_at"}, "keys": ("k",),
        "window": window, "measures": {"n": Count()},
    }  # fmt: skip
    return Aggregate(**(found | changed))


def zones() -> list[str]:
    return files("tzdata").joinpath("zones").read_text().split()


@given(zone=st.sampled_from(ZONES), days=st.sampled_from((1, 2, 7)),
       at=st.datetimes(datetime(1915, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)))  # fmt: skip
def test_a_time_is_in_the_window_that_plain_python_puts_it_in(zone: str, days: int, at: datetime) -> None:
    grid = Tumbling(on="at", size=f"{days} days", time_zone=zone).grid

    start = grid.cell(micros(at - EPOCH))

    assert (from_micros(start), from_micros(grid.moved(start, 1))) == window_at(zone, at, days)


@pytest.mark.parametrize(
    ("zone", "day", "start", "hours"),
    [
        ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00:00", 23),
        ("Europe/Berlin", date(2026, 10, 25), "2026-10-24T22:00:00", 25),
        ("Europe/Berlin", date(1970, 1, 1), "1969-12-31T23:00:00", 24),
        # by the sun before, and six minutes and a half later by the clock of the railway
        ("Europe/Berlin", date(1893, 4, 1), "1893-03-31T23:06:32", 24 - 392 / 3600),
        # there is no midnight: the clocks go from 24:00 to 1:00
        ("America/Sao_Paulo", date(2018, 11, 4), "2018-11-04T03:00:00", 23),
        # there are two: they go from 24:00 to 23:00
        ("America/Sao_Paulo", date(2018, 2, 17), "2018-02-17T02:00:00", 25),
        ("Asia/Beirut", date(2026, 3, 29), "2026-03-28T22:00:00", 23),
        # the clocks go from 23:30 to 0:30: that is the first instant
        ("America/Toronto", date(1919, 3, 31), "1919-03-31T04:30:00", 23.5),
        # from 0:01 to 23:01: the day began a minute before
        ("America/St_Johns", date(2006, 10, 29), "2006-10-29T02:30:00", 25),
        # the day after the 29th is the 31st
        ("Pacific/Apia", date(2011, 12, 29), "2011-12-29T10:00:00", 24),
        ("Pacific/Apia", date(2011, 12, 31), "2011-12-30T10:00:00", 24),
        ("Asia/Kolkata", date(2026, 7, 1), "2026-06-30T18:30:00", 24),
    ],
)
def test_a_local_day_begins_with_the_first_instant_of_its_date(
    zone: str, day: date, start: str, hours: float
) -> None:
    grid = Tumbling(on="at", size="1 day", time_zone=zone).grid
    at = datetime.fromisoformat(f"{start}Z")
    assert begin(zone, day) == at

    found, before = (grid.cell(micros(one - EPOCH)) for one in (at, at - TICK))

    assert (from_micros(found), grid.moved(found, 1) - found) == (at, micros(hours * HOUR))
    assert before == grid.moved(found, -1) < found


def test_a_date_that_comes_twice_is_two_windows() -> None:
    """Kwajalein had 30 September 1969 again, less an hour."""
    grid = Tumbling(on="at", size="1 day", time_zone="Pacific/Kwajalein").grid
    first = micros(datetime(1969, 9, 29, 13, tzinfo=UTC) - EPOCH)

    starts = [first, grid.moved(first, 1), grid.moved(first, 2)]

    assert [b - a for a, b in pairwise(starts)] == [micros(24 * HOUR), micros(23 * HOUR)]


def test_every_zone_but_two_has_days_that_are_windows(seed: int) -> None:
    """Of a draw of them; all take a minute."""
    for zone in {*Random(seed).sample(zones(), 40), *IN_NO_WINDOW}:
        if zone in IN_NO_WINDOW:
            with pytest.raises(ValueError, match="moved by half a day or more"):
                cell_runs(offsets_of(zone), 1)
        else:
            assert cell_runs(offsets_of(zone), 1) and cell_runs(offsets_of(zone), 7)


def test_offsets_are_all_that_the_file_of_a_zone_lists(seed: int) -> None:
    """A look at each day finds them; those after its last are of its rule for all years to come."""
    for zone in Random(seed).sample(zones(), 20):
        listed = _listed(zone)
        found = dict(offsets_of(zone)[1:])

        assert found.keys() - listed <= {at for at in found if not listed or at > max(listed)}
        here = [at for at in listed - found.keys() if -5_364_662_400 < at < 4_102_444_800]
        assert all(_offset(zone, at - 1) == _offset(zone, at) for at in here), zone


def _listed(zone: str) -> set[int]:
    """The times of RFC 8536, section 3.2: of the second header's block, in 64 bits each."""
    data = files("tzdata").joinpath("zoneinfo", *zone.split("/")).read_bytes()
    counts = struct.unpack(">6l", data[20:44])
    isut, isstd, leap, times, types, chars = counts
    second = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    (count,) = struct.unpack(">l", data[second + 32 : second + 36])
    return set(struct.unpack(f">{count}q", data[second + 44 : second + 44 + 8 * count]))


def _offset(zone: str, at: int) -> int:
    return [ahead for begin, ahead in offsets_of(zone) if begin is None or begin <= at][-1]


@pytest.mark.parametrize(
    "window",
    [
        *(Tumbling(on="at", size=size, time_zone=zone) for zone in ZONES for size in ("1 day", "2 weeks")),
        Hopping(on="at", size="7 days", every="1 day", time_zone="Europe/Berlin"),
        Tumbling(on="at", size="1 day", time_zone="Etc/GMT+3"),
    ],
    ids=lambda window: f"{window.time_zone} {window.size}",
)
def test_sql_finds_the_cells_that_python_finds(spark: SparkSession, seed: int, window: Window) -> None:
    grid, draw = window.grid, Random(seed)
    near = [at + tick for at in grid.runs[-250:] for tick in (-1, 0, 1, 3_600_000_000)]
    times = [*near, *(draw.randrange(-4 * 10**15, 5 * 10**15) for _ in range(200))]
    moved = {f"m{by}".replace("-", "_"): by for by in (-window.hops, -1, 0, 1, window.hops)}
    rows = spark.createDataFrame([(at,) for at in times], "at bigint").selectExpr(
        "at", f"{grid.cell_sql('at')} AS start"
    )
    ends = f"unix_micros({end_sql(window, 'timestamp_micros(start)')}) AS ends"
    before = f"transform({grid.before_sql('start', window.hops)}, one -> unix_micros(one)) AS before"
    shown = rows.selectExpr(
        "*", *(f"{grid.moved_sql('start', by)} AS {name}" for name, by in moved.items()), ends, before
    )

    for row in shown.collect():
        start = grid.cell(row["at"])
        assert row["start"] == start
        assert [row[name] for name in moved] == [grid.moved(start, by) for by in moved.values()]
        assert row["ends"] == grid.moved(start, window.hops)
        assert row["before"] == [grid.moved(start, -back) for back in range(window.hops)]


def test_no_time_is_in_no_cell(spark: SparkSession) -> None:
    row = spark.sql(f"SELECT {BERLIN.grid.cell_sql('CAST(NULL AS bigint)')} AS start").first()

    assert row is not None and row["start"] is None


def test_a_window_with_a_zone_keeps_its_offsets_and_one_without_is_as_it_was() -> None:
    said = json.loads(json.dumps(BERLIN.to_json()))

    assert said["time_zone"] == "Europe/Berlin" and said["offsets"][:2] == [
        ["", 3208], ["1893-03-31T23:06:32Z", 3600],
    ]  # fmt: skip
    assert window_from_json(said) == BERLIN and from_json(daily().to_json()) == daily()
    assert Tumbling(on="at", size="1 day").to_json() == {"kind": "tumbling", "on": "at", "size": "1 day"}
    assert Hopping(on="at", size="2 days", every="1 day").to_json() == {
        "kind": "hopping", "on": "at", "size": "2 days", "every": "1 day", "tiled": True,
    }  # fmt: skip


def test_a_stored_definition_goes_by_the_rules_that_it_was_read_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the package of zones says by now: its rows of before were cut by them."""
    stored = daily().to_json()
    summer_for_ever: Offsets = ((None, 7200),)
    monkeypatch.setattr(time_zone, "offsets_of", lambda name: summer_for_ever)

    found, new = from_json(stored), daily(Tumbling(on="at", size="1 day", time_zone="Europe/Berlin"))

    assert found == daily() and found.to_json() == stored != new.to_json() and found != new


@pytest.mark.parametrize(
    "offsets",
    [
        [], [["2026-01-01T00:00:00Z", 1]], [["", 0], ["soon", 0]], 7,
        [["", 0], ["1990-01-01T00:00:00Z", 0], ["1980-01-01T00:00:00Z", 0]],
    ],
)  # fmt: skip
def test_offsets_that_are_none_are_refused(offsets: Any) -> None:
    said = daily().to_json()
    with pytest.raises(UsageError, match="is not a valid table"):
        from_json({**said, "window": {**said["window"], "offsets": offsets}})


def in_zone(zone: Any, size: str = "1 day") -> Window:
    return Tumbling(on="at", size=size, time_zone=zone)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (in_zone("Europe/Brelin"), "no time zone 'Europe/Brelin'; did you mean Europe/Berlin"),
        (in_zone("../../etc/passwd"), "there is no time zone '../../etc/passwd'"),
        (in_zone(""), "there is no time zone ''"),
        (in_zone(1), "window.time_zone is 1, not text or None"),
        (in_zone("Asia/Tokyo", "1 hour"), "window size '1 hour' is not written in whole days"),
        (in_zone("Asia/Tokyo", "24 hours"), "window size '24 hours' is not written in whole days"),
        (in_zone("Asia/Tokyo", "PT24H"), "window size 'PT24H' is not written in whole days"),
        (
            Hopping(on="at", size="1 day", every="6 hours", time_zone="Asia/Tokyo"),
            "window every '6 hours' is not written in whole days",
        ),
        (in_zone("Pacific/Kanton"), "days of Pacific/Kanton cannot be windows"),
    ],
)
def test_what_has_no_local_days_is_refused(window: Window, words: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        daily(window)

    assert words in refused.value.why_text


def test_weeks_and_days_of_iso_8601_are_days() -> None:
    for size, days in (("P1W", 7), ("P2D", 2), ("1 week", 7), (" 3 days ", 3)):
        assert in_zone("UTC", size).length == timedelta(days=days) and daily(in_zone("UTC", size))


def test_a_name_that_is_no_zone_has_no_offsets() -> None:
    assert known_offsets("Mars/Olympus") is known_offsets(None) is known_offsets(3) is None


def test_windows_touched_are_ranges_of_whole_local_days() -> None:
    first = micros(begin("Europe/Berlin", date(2026, 10, 24)) - EPOCH)
    starts = [first, BERLIN.grid.moved(first, 1), BERLIN.grid.moved(first, 2)]

    found = Windows.spanning(BERLIN.grid.spans(reversed(starts)))

    assert found == Windows.between(*(begin("Europe/Berlin", date(2026, 10, day)) for day in (24, 27)))
    assert Windows.spanning(BERLIN.grid.spans(starts[1:2])) == Windows.between(
        *(begin("Europe/Berlin", date(2026, 10, day)) for day in (25, 26))
    )


@pytest.mark.parametrize(
    "window", [BERLIN, Hopping(on="at", size="3 days", every="1 day", time_zone="Europe/Berlin")]
)
def test_the_view_and_the_batch_layer_leave_out_the_same_local_days(
    spark: SparkSession, window: Window
) -> None:
    """Those that ended as long ago as they are kept."""
    table = daily(window, retention="2 days")
    assert table.ending is not None
    days = [date(2026, 10, 20) + n * DAY for n in range(12)]
    starts = [begin("Europe/Berlin", day) for day in days]
    states = spark.createDataFrame([(start,) for start in starts], "window_start timestamp")
    for hours in (0, 22, 22.5, 23, 24, 46, 47, 48):
        at = begin("Europe/Berlin", date(2026, 10, 25)) + hours * HOUR
        (shown,) = table.ending.shown({"orders": micros(at - EPOCH)}, {}).ranges
        by_view = states.where(table.ending.is_shown_sql(f"TIMESTAMP '{at.isoformat()}'")).collect()
        by_batch = states.where(shown.predicate("window_start")).collect()
        long = window.hops * DAY
        expected = [d for d in days if begin("Europe/Berlin", d + long) + timedelta(days=2) > at]
        assert [day_at("Europe/Berlin", row[0].astimezone(UTC)) for row in by_view] == expected
        assert by_view == by_batch


@pytest.mark.parametrize(
    ("last", "kept", "words"),
    [
        ("24 hours", None, "24 hours is not made of whole windows of t"),
        ("36 hours", None, "36 hours is not made of whole windows of t"),
        ("7 days", "7 days", "7 days is longer than t shows its windows"),
        ("7 days", "8 days", ""),
        ("1 week", None, ""),
    ],
)
def test_rolling_goes_by_whole_local_days(last: str, kept: str | None, words: str) -> None:
    table = daily(retention=kept)
    found = list(Rolling(name="r", inputs=(), of="t", last=(last,)).unfit({"t": table}))

    assert [words in one.why_text for one in found] == ([True] if words else [])
