"""Windows, sessions, cells and batch work at odd moments, in odd zones, against integer arithmetic.

Moments are microseconds here: what Python makes of the years 1 and 9999 has no part in it.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.history import START, Orders
from tests.longer import some
from tests.moments import ODD_MOMENTS, ZONES
from tests.world import World
from twinlake.base.times import EPOCH, parse_duration
from twinlake.batch.due import gained
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.events import Events
from twinlake.kinds.grid import micros
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store
from twinlake.kinds.windows import Hopping, Tumbling, Windows, window_range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
FIRST, LAST = (micros(view_clock - EPOCH) for view_clock in (ODD_MOMENTS[0], ODD_MOMENTS[-1]))
LATE_AFTER = timedelta(hours=3)
_SHARED: dict[str, Any] = {
    "inputs": ("made",), "columns": {"key": "key", "at": "at"}, "keys": ("key",), "measures": {"n": Count()},
}  # fmt: skip
WINDOWS = (
    Tumbling(on="at", size="7 seconds"), Tumbling(on="at", size="1 hour"), Tumbling(on="at", size="1 day"),
    Tumbling(on="at", size="400 days"), Hopping(on="at", size="1 day", every="6 hours"),
    Hopping(on="at", size="3 weeks", every="1 week"),
)  # fmt: skip
VISITS = Sessions(name="visits", on="at", gap="30 minutes", grid="1 day", **_SHARED)
KEPT = Events(
    name="kept", inputs=("made",), columns={"key": "key", "at": "at"},
    store=Store(keys=("key",), on="at", cell="1 day", back="6 hours", ahead="1 hour"),
)  # fmt: skip
DAILY = Aggregate(
    name="daily", inputs=("orders",), columns={"region": "region", "at": "ordered_at"}, keys=("region",),
    window=Tumbling(on="at", size="1 day"), measures={"orders": Count()},
)  # fmt: skip

Records = list[tuple[str, int]]
"""(key, time)"""


def drawn(draw: random.Random, count: int) -> Records:
    """All odd moments, and so many others around them."""
    found = [(draw.choice("ab"), micros(view_clock - EPOCH)) for view_clock in ODD_MOMENTS]
    for _ in range(count):
        reach = draw.choice((0, 2, MINUTE, HOUR, 2 * DAY))
        at = micros(draw.choice(ODD_MOMENTS) - EPOCH) + draw.randint(-reach, reach)
        found.append((draw.choice("ab"), min(max(at, FIRST), LAST)))
    return found


def frame(spark: SparkSession, records: Records) -> DataFrame:
    rows = [(number, *record) for number, record in enumerate(records)]
    return spark.createDataFrame(rows, "_offset long, key string, m long").selectExpr(
        "key", "timestamp_micros(m) AS at", "0 AS _epoch", "0 AS _partition", "_offset",
        "timestamp_micros(m) AS _timestamp",
    )  # fmt: skip


def shown(spark: SparkSession, table: Any, records: Records, watermark: datetime) -> Counter[Any]:
    """(key, start, end, final) -> how many records, of a version that was cut in two and merged."""
    half = len(records) // 2
    states = table.partial(frame(spark, records[:half])).union(table.partial(frame(spark, records[half:])))
    table.merge(states).union(states.limit(0)).createOrReplaceTempView("odd")
    literal = f"TIMESTAMP '{watermark.isoformat()}'"
    view_clock = ViewClock(watermarks={"made": literal}, late_after={"made": LATE_AFTER})
    start, end = table.view_keys[-1], table.output[len(table.keys) + 1]
    columns = ("key", f"unix_micros({start})", f"unix_micros({end})", "final", "n")
    found: Counter[Any] = Counter()
    for row in spark.sql(table.view({table.name: "odd"}, view_clock)).selectExpr(*columns).collect():
        found[row[:-1]] += row["n"]
    return found


def windowed(window: Tumbling | Hopping, records: Records, watermark: datetime) -> Counter[Any]:
    size, every = micros(window.length), micros(window.grid.size)
    found: Counter[Any] = Counter()
    for key, at in records:
        for hop in range(size // every):
            start = at - at % every - hop * every
            passed = start + size + micros(LATE_AFTER) <= micros(watermark - EPOCH)
            found[key, start, start + size, passed] += 1
    return found


def visited(records: Records, watermark: datetime) -> Counter[Any]:
    gap = micros(parse_duration(VISITS.gap))
    found: Counter[Any] = Counter()
    for key in "ab":
        session: list[int] = []
        for at in [*sorted(at for one, at in records if one == key), None]:
            if session and (at is None or at - session[-1] > gap):
                passed = session[-1] + gap + micros(LATE_AFTER) < micros(watermark - EPOCH)
                found[key, session[0], session[-1], passed] = len(session)
                session = []
            if at is not None:
                session.append(at)
    return found


@pytest.fixture(params=some(ZONES))
def zone(request: pytest.FixtureRequest, in_zone: Callable[[str], None]) -> Iterator[str]:
    in_zone(request.param)
    yield request.param


def test_windows_and_sessions_are_the_same_in_every_zone_and_year(
    spark: SparkSession, zone: str, seed: int
) -> None:
    draw = random.Random(f"{seed}-{zone}")
    records, watermark = drawn(draw, 400), draw.choice(ODD_MOMENTS[12:-2])

    for window in WINDOWS:
        table = Aggregate(name="windows", window=window, **_SHARED)
        found = shown(spark, table, records, watermark)
        assert found == windowed(window, records, watermark), window
        assert {final for *_, final in found} == {True, False}
    assert shown(spark, VISITS, records, watermark) == visited(records, watermark)


def test_cells_are_the_same_in_every_zone_and_year(spark: SparkSession, zone: str, seed: int) -> None:
    records = drawn(random.Random(f"{seed}-{zone}"), 200)

    kept = KEPT.partial(frame(spark, records)).selectExpr("_offset", "unix_micros(_cell) AS c", "_home")

    found: dict[int, dict[int, bool]] = defaultdict(dict)
    for row in kept.collect():
        found[row["_offset"]][row["c"]] = row["_home"]
    for number, (_, at) in enumerate(records):
        first, last, home = (view_clock - view_clock % DAY for view_clock in (at - 6 * HOUR, at + HOUR, at))
        assert found[number] == {cell: cell == home for cell in range(first, last + 1, DAY)}


class Days(World):
    """A version with windows of days over orders at odd moments."""

    def produce(self, count: int = 20) -> None:
        draw = random.Random(f"{self.seed}-{self.log.end()}")
        moments = [EPOCH + timedelta(microseconds=at) for _, at in drawn(draw, count)]
        records = zip(self.orders.batch(len(moments)), moments, strict=True)
        self.log.append([{**record, "ordered_at": at, "_timestamp": START} for record, at in records])

    def days(self, since: int = 0) -> Counter[tuple[str, int]]:
        """The orders of the log by region and day."""
        counted: Counter[tuple[str, int]] = Counter()
        for record in (one for held in self.log.batches[since : self.at.position] for one in held):
            at = micros(record["ordered_at"] - EPOCH)
            counted[record["region"], at - at % DAY] += 1
        return counted

    def counted(self) -> Counter[tuple[str, int]]:
        view = self.feed.view(self.pin()).selectExpr("region", "unix_micros(window_start) AS day", "orders")
        return Counter({(row["region"], row["day"]): row["orders"] for row in view.collect()})


RANGES = (
    (None, "0001-01-02"),
    ("0001-01-01T00:00:00Z", "1900-03-01T00:00:00+00:00"),
    ("2026-03-08", "2026-03-08T19:00:00-05:00"),
    ("2026-10-25T02:00:00+02:00", "2026-11-01T01:00:00-04:00"),
)
"""One for each zone; `test_the_orders_of_the_last_days_of_time_are_repaired` has the last one."""


def test_batch_work_on_a_range_is_on_the_days_that_start_in_it(
    spark: SparkSession, tmp_path: Path, zone: str, seed: int
) -> None:
    """What is wrong everywhere is found in the range, repaired there, and nowhere else."""
    draw = random.Random(f"{seed}-{zone}")
    world = Days(spark=spark, lake=tmp_path, table=DAILY, seed=draw.randrange(10**6))
    world.fill(segments=2)
    since = world.at.position
    world.produce()
    world.step()
    assert world.counted() == world.days()
    days = {day for _, day in world.days(since)}
    assert gained(world.feed, {"orders": since}, world.pin().position) == Windows.of(days, timedelta(days=1))

    start, end = RANGES[ZONES.index(zone)]
    windows = window_range(start, end, DAILY.cells, DAILY.name)
    world.close()
    spark.sql(f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000")
    done = world.rebuild(windows=windows, repair=True)

    (asked,) = windows.ranges
    low, high = (
        open_end if view_clock is None else micros(view_clock - EPOCH)
        for view_clock, open_end in ((asked.start, FIRST - DAY), (asked.end, LAST + 1))
    )
    expected = world.days()
    within = {key for key in expected if low <= key[1] < high}
    found = world.counted()
    assert within and {key for key in expected if found[key] == expected[key]} == within
    assert done.certificate.differing == len(within)


def test_the_orders_of_the_last_days_of_time_are_repaired(spark: SparkSession, tmp_path: Path) -> None:
    """Their windows end in the year 10000."""
    world = Days(spark=spark, lake=tmp_path, table=DAILY)
    at = ODD_MOMENTS[-1]
    world.log.append([{**one, "ordered_at": at, "_timestamp": START} for one in Orders(1).batch(5)])
    world.step()
    world.close()
    spark.sql(f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000")

    found = world.rebuild(windows=window_range("9999-12-31", None, DAILY.cells, "daily"), repair=True)

    assert found.certificate.differing == len(world.days()) and world.counted() == world.days()
