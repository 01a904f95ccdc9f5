"""Batch work on windows of local days: those with new records, ranges of them, and which files are read."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.history import START
from tests.oracle.local_days import DAY, begin, window_at
from tests.world import World
from twinlake.batch.due import Scope, gained
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.windows import Tumbling, Windows, window_range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ZONE = "Europe/Berlin"
LONG = date(2026, 10, 25)
"""A day of 25 hours."""
MIDNIGHT = begin(ZONE, LONG)
HOUR = timedelta(hours=1)
DAILY = Aggregate(
    name="daily", inputs=("orders",), columns={"region": "region", "at": "ordered_at"}, keys=("region",),
    window=Tumbling(on="at", size="1 day", time_zone=ZONE), measures={"orders": Count()},
)  # fmt: skip
HOURS = (-1, 0, 1, 12, 23.5, 24, 24.5, 25, 26, 48.5, 49)


class Days(World):
    """A version with windows of local days over orders around the long one."""

    def at_hours(self, *hours: float) -> None:
        """A batch, and a step: an order so many hours after midnight each."""
        made = self.orders.batch(200)
        made = [{**one, "ordered_at": MIDNIGHT + at * HOUR} for one, at in zip(made, hours, strict=False)]
        self.log.append([{**one, "_timestamp": START} for one in made])
        self.step()

    def counted(self) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for row in self.feed.view(self.pin()).collect():
            times = (row[name].astimezone(UTC) for name in ("window_start", "window_end"))
            found[row["region"], *times] += row["orders"]
        return found

    def days(self) -> Counter[Any]:
        held = (one for batch in self.log.batches[: self.at.position] for one in batch)
        return Counter((one["region"], *window_at(ZONE, one["ordered_at"])) for one in held)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Days:
    made = Days(spark=spark, lake=tmp_path, table=DAILY)
    for _ in range(2):
        made.at_hours(*HOURS)
        made.close()
    return made


def of(*days: int) -> Windows:
    """The windows of these days of October."""
    return Windows((*(
        one for day in days
        for one in Windows.between(*(begin(ZONE, date(2026, 10, day) + more * DAY) for more in (0, 1))).ranges
    ),))  # fmt: skip


def test_speed_and_batch_agree_and_show_local_days(world: Days) -> None:
    assert world.counted() == world.days()
    rebuilt = world.rebuild()
    assert rebuilt.certificate.equal and world.counted() == world.days()
    assert {end - start for _, start, end in world.days()} == {24 * HOUR, 25 * HOUR}


def test_only_local_days_with_new_records_are_rebuilt_and_the_certificate_says_so(world: Days) -> None:
    first = world.rebuild().certificate
    since = world.at.position
    world.at_hours(24.5, 24.9)
    world.spark.sql(
        f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000"
        f" WHERE window_start = TIMESTAMP '{begin(ZONE, date(2026, 10, 26))}'"
    )

    found = gained(world.feed, {"orders": since}, world.pin().position)
    second = world.rebuild(windows=lambda _: Scope(windows=found, base=first.as_base)).certificate

    assert found == of(25) and Windows.from_json(second.windows) == of(25)
    assert second.equal and second.rows_compared > 0
    assert {one["key"]["window_start"] for one in world.verify().differences} == {"2026-10-25T23:00:00Z"}


def test_two_local_days_that_touch_are_one_range(world: Days) -> None:
    since = world.at.position
    world.at_hours(1, 25)

    found = gained(world.feed, {"orders": since}, world.pin().position)

    assert found == Windows.between(MIDNIGHT, begin(ZONE, date(2026, 10, 27)))


def test_a_range_is_of_the_local_days_that_start_in_it(world: Days) -> None:
    """What is wrong everywhere is repaired there, and nowhere else; records of the 25th hour are among it."""
    world.close()
    world.spark.sql(f"UPDATE delta.`{world.feed.path}` SET orders__n = orders__n + 1000")
    windows = window_range("2026-10-25T00:00:00+02:00", "2026-10-25T00:00:01+02:00", DAILY.cells, "daily")

    world.rebuild(windows=windows, repair=True)

    right = world.days()
    wrong = {key: count for key, count in world.counted().items() if count != right[key]}
    assert {key[1] for key in right} - {key[1] for key in wrong} == {MIDNIGHT}


def test_a_filter_on_window_start_reads_the_files_of_that_day_alone(world: Days, spark: SparkSession) -> None:
    world.at_hours(30)
    path = world.feed.path
    view = spark.sql(DAILY.view({"daily": f"delta.`{path}`"}, ViewClock()))
    day = view.where(f"window_start = TIMESTAMP '{begin(ZONE, date(2026, 10, 26)).isoformat()}'")

    whole, one = files_read(view), files_read(day)

    assert (whole, one) == (3, 3) and files_read(view.where("window_start > TIMESTAMP '2027-01-01'")) == 0
    assert files_read(view.where(f"window_start < TIMESTAMP '{MIDNIGHT.isoformat()}'")) == 2


def files_read(view: DataFrame) -> int:
    view.collect()
    plan = view._jdf.queryExecution().executedPlan()
    leaves = plan.collectLeaves()
    return sum(int(leaves.apply(at).metrics().apply("numFiles").value()) for at in range(leaves.size()))
