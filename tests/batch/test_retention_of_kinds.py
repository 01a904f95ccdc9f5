"""Retention of topics and tables, over every kind of table and night after night: no row changes by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.batch.test_ended import ENDING, TABLES, kept, minutes, starts
from tests.batch.test_retention import made_of, opened, project, shown, some, take
from tests.history import LATEST, SALES
from tests.reading.test_past_tables import KEPT
from tests.releases.lake import Lake
from tests.tables import STATUSES
from tests.world import Killed
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.times import utc_now
from twinlake.difference.diff import changes
from twinlake.difference.pinned import exact_side, only
from twinlake.difference.touched import touched
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.windows import Hopping
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.version import Pin

pytestmark = pytest.mark.faults
__all__ = ["project"]  # a fixture

RICH = replace(
    ENDING, name="rich",
    measures={"orders": Count(), "customers": CountDistinct("customer", exact=True),
              "middle": Quantile("amount"), "most": TopK("customer", most=2), "who": CollectSet("customer"),
              "newest": Last("amount")},
)  # fmt: skip
HOPPING = Hopping(on="ordered_at", size="3 minutes", every="1 minute")
ENDED: dict[str, Kind] = {
    "rich": RICH,
    "hopping": replace(RICH, name="hopping", window=HOPPING),
    "rolling": Rolling(name="rolling", of="rich", last=("3 minutes", "10 minutes")),
    "shares": Derived(
        name="shares", reads=("rich",), columns=("region", "orders"), keys=("region",), by=("region",),
        sql="SELECT region, sum(orders) AS orders FROM rich GROUP BY region",
    ),
}  # fmt: skip
"""Tables whose windows end, and tables that read them."""
STORED: tuple[Any, ...] = (
    replace(LATEST, name="deleted", delete_when="status = 'cancelled'"),
    replace(SALES, name="hopping", window=HOPPING),
    replace(RICH, name="rich", retention=None),
    KEPT,
    STATUSES,
)  # fmt: skip
OF_TOPIC: dict[str, Kind] = {
    **{one.name: one for one in STORED},
    "ending": replace(ENDING, name="ending", retention="40 days"),
    "rolling": Rolling(name="rolling", of="rich", last=("3 minutes", "100 days")),
    "joined": Derived(
        name="joined", reads=("kept", "deleted"), columns=("customer", "orders", "status"),
        keys=("customer",), by=("customer",),
        sql="SELECT d.customer, count(*) AS orders, max(d.status) AS status FROM deleted d "
        "JOIN kept k ON d.customer = k.customer GROUP BY d.customer",
    ),
}  # fmt: skip
"""Tables over a topic whose records go."""
Pins = dict[str, tuple[MaintainedVersion, Pin]]


def test_windows_of_every_kind_end_night_after_night_and_both_layers_agree(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path)
    lake.promote(lake.build(ENDED))
    take(lake, minutes(0, 9), minutes(5, 16, begin=100), minutes(14, 21, begin=200))
    began, before = pins(lake), shown(lake)
    agree(lake, ENDED)

    deleted = {one["table"]: one["rows"] for one in lake.do("expire")["tables"]}

    assert deleted["rich"] > 0 and deleted["hopping"] > 0
    assert shown(lake) == before
    late = (minutes(2, 4, begin=300), minutes(9, 12, each=5, begin=400), minutes(21, 24, begin=500))
    take(lake, *late)
    agree(lake, ENDED)
    changes_are_those_of_all_keys(lake, began)
    before = shown(lake)
    assert sum(one["rows"] for one in lake.do("expire")["tables"]) > 0
    assert shown(lake) == before
    changes_are_those_of_all_keys(lake, began)
    for table in ENDED:
        assert lake.do("rebuild", table=table, due=True)["equal"], table
    assert shown(lake) == before
    take(lake, minutes(24, 60, begin=700))
    lake.do("expire")
    changes_are_those_of_all_keys(lake, began)
    agree(lake, ENDED)
    lake.stop()


@pytest.mark.parametrize("point", [Point.BEFORE_REPLACE, Point.AFTER_REPLACE])
def test_what_ends_while_a_killed_rebuild_waits_to_go_on_stays_away(
    spark: SparkSession, tmp_path: Path, point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, tmp_path)
    lake.promote(lake.build(TABLES))
    take(lake, minutes(0, 10), minutes(5, 21, begin=100))
    (feed,) = (one for one in opened(lake) if one.version.table == SALES.name)
    spark.sql(f"DELETE FROM delta.`{feed.path}` WHERE window_start = TIMESTAMP '2026-01-31 12:15:00Z'")
    with monkeypatch.context() as patched:
        patched.setattr(breakpoints, "at", killing(point))
        with pytest.raises(Killed):
            lake.do("rebuild", job="r", table=SALES.name, repair=True)
    lake.do("expire", table=SALES.name)
    take(lake, minutes(21, 23, begin=400))

    assert lake.do("rebuild", job="r", table=SALES.name, repair=True)["equal"]

    assert lake.do("verify", table=SALES.name)["equal"]
    assert set(starts(lake)) == set(range(12, 23))
    lake.do("expire", table=SALES.name)
    assert kept(lake) == set(range(12, 23))
    lake.stop()


def test_a_topic_s_records_go_after_two_kills_and_no_table_of_any_kind_changes(
    spark: SparkSession,
    tmp_path: Path,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = Lake(spark, tmp_path, project=project)
    lake.promote(lake.build(OF_TOPIC))
    old, older = some(60, 40), some(0, 60)
    records = [*older, *old, *some(100, 30, utc_now() - timedelta(days=3))]
    take(lake, older, old, records[100:])
    before = shown(lake)
    assert stored(before) == made_of(lake, records, STORED)
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(breakpoints, "at", killing(Point.BEFORE_RETENTION, "orders"))
            with pytest.raises(Killed):
                lake.do("expire")

    (done,) = lake.do("expire")["topics"]

    assert (done["records"], done["deleted"]) == (100, True)
    assert shown(lake) == before
    agree(lake, OF_TOPIC)
    amended = [
        {**one, "order_id": 1_000 + one["order_id"], "status": "paid" if number % 3 else "cancelled"}
        for number, one in enumerate(some(20, 30))
    ]
    take(lake, amended)
    expected = made_of(lake, [*records, *amended], STORED)
    assert stored(shown(lake)) == expected
    agree(lake, OF_TOPIC)
    for table in OF_TOPIC:
        assert lake.do("rebuild", table=table, repair=True)["equal"], table
    assert stored(shown(lake)) == expected
    lake.stop()


def killing(point: Point, of: str | None = None) -> Any:
    """Kills at a point, of this table or topic or of any."""

    def at(reached: Point, table: str = "") -> None:
        if reached is point and of in (None, table):
            raise Killed

    return at


def agree(lake: Lake, tables: dict[str, Kind]) -> None:
    for table in tables:
        assert lake.do("verify", table=table, due=True)["equal"], table


def stored(found: dict[str, list[str]]) -> dict[str, list[str]]:
    return {table.name: found[table.name] for table in STORED}


def pins(lake: Lake) -> Pins:
    """Where the tables of ended windows are now."""
    found = {one.version.table: one for one in opened(lake)}
    versions = lake.server.lake.versions
    return {name: (found[name], versions.pin(found[name].version)) for name in ("rich", "hopping")}


def changes_are_those_of_all_keys(lake: Lake, since: Pins) -> None:
    """A changelog that looks at the keys that steps have touched finds what a look at all keys finds."""
    for table, (feed, now) in pins(lake).items():
        left, right = exact_side(feed, since[table][1]), exact_side(feed, now)
        by = touched(feed, since[table][1], now)
        assert by is not None, table
        keys = feed.definition.view_keys
        found, every = changes(only(left, by), only(right, by), keys), changes(left, right, keys)
        assert sorted(map(repr, found.collect())) == sorted(map(repr, every.collect())), table
