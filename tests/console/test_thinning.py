"""Thinning: rates are exact over any steps, the worst stays in sight, and a gap stays a gap."""

from __future__ import annotations

from collections.abc import Sequence

from twinlake.alarms.history import Point, TablePoint, TopicPoint
from twinlake.console.thinning import MOST, thin

NOW = 1_769_860_800
HOUR, DAY = 3_600, 86_400
NOTHING = TopicPoint(*[None] * 7)


def point(minutes: int, records: int | None = None, lag: int | None = None, late: float = 0.0) -> Point:
    """`minutes` after an hour before NOW."""
    topic = NOTHING._replace(records=records, invalid=records, lag_records=lag)
    table = TablePoint(freshness_seconds=late, allowed_seconds=30.0)
    at = NOW - HOUR + 60 * minutes
    return Point(at=at, disk_free=1_000 - minutes, topics={"orders": topic}, tables={"sales": table})


def rates(points: Sequence[Point], most: int = MOST) -> list[float | None]:
    return thin(points, HOUR, NOW, most).topics["orders"]["records"]


def test_a_rate_is_what_has_grown_by_its_seconds() -> None:
    found = rates([point(0, 100), point(1, 160), point(2, 160), point(3, 460)])

    assert found == [None, 1.0, 0.0, 5.0, *[None] * 57]


def test_steps_of_several_minutes_have_all_records_of_them_and_the_worst_lag() -> None:
    points = [point(n, 60 * n, lag=n % 7, late=float(n == 31)) for n in range(61)]
    found = thin(points, HOUR, NOW, most=12)

    assert found.times == [NOW - HOUR + 300 * step for step in range(13)]
    assert found.topics["orders"]["records"] == [1.0] * 13
    worst = [max(n % 7 for n in range(5 * step, min(5 * step + 5, 61))) for step in range(13)]
    assert found.topics["orders"]["lag_records"] == worst
    assert found.tables["sales"]["freshness_seconds"] == [0.0] * 6 + [1.0] + [0.0] * 6
    assert found.disk_free[0] == 996.0, "the least of the step"


def test_a_day_and_a_week_fit_in_what_a_picture_has_room_for() -> None:
    for days in (1, 7):
        minutes = [Point(at=at, disk_free=1) for at in range(NOW - days * DAY, NOW + 1, 60)]
        found = thin(minutes, days * DAY, NOW)
        assert MOST / 2 < len(found.times) <= MOST + 1
        assert set(found.disk_free) == {1} and found.newest == found.until == NOW


def test_where_nothing_was_written_nothing_is_shown_and_no_rate_goes_over_it() -> None:
    found = thin([point(0, 0, 1), point(1, 60, 1), point(6, 9_000, 1), point(7, 9_060, 1)], HOUR, NOW)

    assert found.topics["orders"]["records"][:9] == [None, 1.0, None, None, None, None, None, 1.0, None]
    assert found.topics["orders"]["lag_records"][:9] == [1, 1, None, None, None, None, 1, 1, None]
    assert found.tables["sales"]["freshness_seconds"][:7] == [0.0, 0.0, None, None, None, None, 0.0]


def test_counts_that_begin_again_are_no_rate_and_those_after_are() -> None:
    assert rates([point(0, 500), point(1, 560), point(2, 30), point(3, 90)])[:4] == [None, 1.0, None, 1.0]


def test_a_replay_takes_from_one_verdict_and_makes_no_other_unknown() -> None:
    points = [point(0, 100), point(1, 160)]
    topics = points[1].topics["orders"]._replace(invalid=5)
    found = thin([points[0], Point(at=points[1].at, disk_free=1, topics={"orders": topics})], HOUR, NOW)

    assert found.topics["orders"]["invalid"][1] is None and found.topics["orders"]["records"][1] == 1.0


def test_what_was_not_known_in_a_minute_is_a_gap_of_that_topic_alone() -> None:
    other = NOTHING._replace(records=7, lag_records=3)
    points = [point(0, 10, 1), point(1), point(2, 30, 1), point(3, 90, 1)]
    with_other = [
        Point(at=one.at, disk_free=1, topics={**one.topics, "returns": other}) for one in points
    ]  # fmt: skip
    found = thin(with_other, HOUR, NOW).topics

    assert found["orders"]["lag_records"][:4] == [1, None, 1, 1]
    assert found["orders"]["records"][:4] == [None, None, None, 1.0]
    assert found["returns"]["records"][:4] == [None, 0.0, 0.0, 0.0]


def test_nothing_is_nothing() -> None:
    found = thin([], DAY, NOW)

    assert (found.topics, found.tables, found.newest) == ({}, {}, None)
    assert {*found.disk_free} == {None}
