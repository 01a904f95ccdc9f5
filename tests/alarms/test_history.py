"""History: bounded, read over what is torn or of a clock that went wrong; the worst of a minute is in it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.alarms.figures import NOW, STATUS, TOPIC, VERSION
from tests.alarms.test_watch import Receiver, World
from twinlake.alarms.history import History, Minute, Point, TablePoint, TopicPoint, history_folder

AT = int(NOW.timestamp())
ORDERS = TopicPoint(
    records=100, valid=90, invalid=4, too_late=3, late=2, lag_records=7, lag_seconds=0.25
)  # fmt: skip
SALES = TablePoint(freshness_seconds=0.5, allowed_seconds=30.0)


def at(seconds: int) -> Point:
    return Point(at=AT + seconds, disk_free=1_000, topics={"orders": ORDERS}, tables={"sales": SALES})


def written(folder: Path, seconds: Sequence[int], **bounds: int) -> History:
    history = History(folder, **bounds)
    for one in seconds:
        history.append(at(one))
    return history


def times(history: History, until: int = 7_200) -> list[int]:
    """Of the points of two hours, in seconds from AT."""
    return [point.at - AT for point in history.points(7_200, AT + until)]


def test_a_point_is_read_as_it_was_written_by_another_process(tmp_path: Path) -> None:
    hostile = Point(at=AT, disk_free=5, topics={'<b>"\n': ORDERS._replace(lag_records=None)})
    written(tmp_path, [-60]).append(hostile)

    assert History(tmp_path).points(60, AT) == [at(-60), hostile]


def test_no_history_is_no_error(tmp_path: Path) -> None:
    assert times(History(tmp_path / "none")) == []


def test_a_file_of_enough_points_makes_room_and_the_one_before_goes(tmp_path: Path) -> None:
    minutes = [60 * one for one in range(8)]
    history = written(tmp_path, minutes, most_points=3)

    assert times(history) == minutes[3:]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_process_that_starts_again_goes_on_counting(tmp_path: Path) -> None:
    for one in range(8):
        written(tmp_path, [60 * one], most_points=3)

    assert times(History(tmp_path)) == [180, 240, 300, 360, 420]


def test_bytes_are_bounded_too(tmp_path: Path) -> None:
    history = written(tmp_path, [60 * one for one in range(50)], most_bytes=400)

    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1_200
    assert times(history)[-1] == 60 * 49


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_torn_last_line_is_read_over_and_spoils_none_after_it(tmp_path: Path, cut: int) -> None:
    written(tmp_path, [0, 60, 120])
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-cut])
    whole = [0, 60, 120] if cut == 1 else [0, 60]  # without its line break alone a line is whole
    assert times(History(tmp_path)) == whole

    again = written(tmp_path, [180, 240])

    assert times(again) == [*whole, 180, 240]


@pytest.mark.parametrize("line", [b"\0\0\0", b"7", b"[1,2]", b'[1,2,{"orders":[1]},{}]', b"\xff", b"null"])
def test_a_line_that_is_none_of_ours_is_read_over(tmp_path: Path, line: bytes) -> None:
    written(tmp_path, [0])
    (file,) = tmp_path.iterdir()
    file.write_bytes(line + b"\n" + file.read_bytes())

    assert times(History(tmp_path)) == [0]


def test_where_the_clock_went_back_what_was_written_last_holds(tmp_path: Path) -> None:
    history = written(tmp_path, [0, 60, 3_600, 3_660, 120, 180])

    assert times(history) == [0, 60, 120, 180]


def test_a_point_of_a_clock_that_was_not_set_yet_hides_none(tmp_path: Path) -> None:
    history = written(tmp_path, [0, 60, -AT, 120])

    assert times(history) == [0, 60, 120]


def test_what_is_older_or_of_later_is_not_given(tmp_path: Path) -> None:
    history = written(tmp_path, [60 * one for one in range(10)], most_points=6)

    assert [point.at - AT for point in history.points(240, AT + 600)] == [360, 420, 480, 540]
    assert [point.at - AT for point in history.points(600, AT + 420)] == [60 * one for one in range(8)]


class Ticks:
    """A clock that never goes back, which a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def topic(**changed: Any) -> dict[str, Any]:
    counts = {"valid": 90, "invalid": 4, "too_late": 3, "late": 2}
    return {**STATUS, "topics": [{**TOPIC, "records": 100, "counts": counts, **changed}]}


def test_a_minute_has_its_newest_counts_and_the_worst_of_all_else() -> None:
    ticks = Ticks()
    minute = Minute(ticks)

    first = minute.add(topic(records=70, lag_records=7), {"sales": SALES}, 2_000, NOW)
    ticks.now = 30
    none = minute.add(None, {}, 1_000, NOW)
    ticks.now = 60
    fresh = {"sales": SALES._replace(freshness_seconds=0.1)}
    point = minute.add(topic(lag_seconds=0.25), fresh, 3_000, NOW + timedelta(seconds=60))

    assert (first, none, point) == (None, None, at(60))
    ticks.now = 90
    assert minute.add(None, {}, 9, NOW) is None
    ticks.now = 120
    silent = Point(at=AT, disk_free=9)
    assert minute.add(None, {}, 9, NOW) == silent, "a minute has something of the one before"


def test_what_a_topic_that_was_not_opened_has_is_not_known() -> None:
    ticks = Ticks()
    minute = Minute(ticks)
    ticks.now = 60
    broken = topic(records=None, counts={}, lag_records=None, lag_seconds=None)

    point = minute.add(broken, {}, 5, NOW)

    assert point == Point(at=AT, disk_free=5, topics={"orders": TopicPoint(*[None] * 7)})


def test_the_watch_writes_a_point_a_minute_with_what_its_alarm_says(tmp_path: Path) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    ticks = Ticks()
    world.watch._minute = Minute(ticks)
    waits = topic(lag_seconds=4.0)
    world.status = {**waits, "versions": [{**VERSION, "lag_seconds": 1_000.0}]}
    for ticks.now in (0.0, 58.0, 62.0, 80.0):
        world.look(ticks.now)

    (point,) = History(history_folder(world.settings)).points(100, AT + 100)

    allowed = world.settings.values.alarms.freshness_seconds
    assert point.at == AT + 62
    assert point.tables == {"sales": TablePoint(freshness_seconds=1_004.0, allowed_seconds=allowed)}
    assert point.topics["orders"] == ORDERS._replace(lag_records=0, lag_seconds=4.0)


def test_a_history_that_cannot_be_written_stops_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path / "home", {"log": Receiver()})
    ticks = Ticks()
    world.watch._minute = Minute(ticks)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(History, "append", full)
        ticks.now = 60.0
        world.look(60)
    assert world.watch._book.looked_at
    ticks.now = 120.0
    world.look(120)

    assert times(History(history_folder(world.settings))) == [120]
