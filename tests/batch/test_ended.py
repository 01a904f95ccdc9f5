"""Windows of a table with a retention end by the watermark, for both layers; what has ended is deleted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.batch.test_retention import SHARES, opened, take
from tests.history import SALES
from tests.releases.lake import START, Lake, order
from tests.world import Killed
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import ChangedTableError, NotFoundError
from twinlake.base.job import Run
from twinlake.base.times import utc_now
from twinlake.batch.maintain import drop_old_commits, vacuum
from twinlake.difference.diff import changes
from twinlake.difference.pinned import exact_side, only
from twinlake.difference.touched import touched
from twinlake.kinds.kind import Kind
from twinlake.kinds.windows import Hopping
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.version import Pin
from twinlake.reading.past_tables import PastTables

MINUTE = timedelta(minutes=1)
ENDING = replace(SALES, retention="10 minutes")
HOPPING = replace(
    SALES,
    name="hopping",
    retention="10 minutes",
    window=Hopping(on="ordered_at", size="3 minutes", every="1 minute"),
)
TABLES: dict[str, Kind] = {table.name: table for table in (ENDING, HOPPING, SHARES)}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(spark, tmp_path)
    made.promote(made.build(TABLES))
    yield made
    made.stop()


def minutes(first: int, last: int, each: int = 4, begin: int = 0) -> list[dict[str, Any]]:
    """So many orders in each minute of [first, last) after the start; `begin` is their first number."""
    places = [(minute, number) for minute in range(first, last) for number in range(each)]
    return [
        order(begin + at, ordered_at=START + minute * MINUTE + timedelta(seconds=number))
        for at, (minute, number) in enumerate(places)
    ]


def starts(lake: Lake, table: str = SALES.name) -> dict[int, int]:
    """What a reader sees: by the window's minute after the start, how many orders are in it."""
    versions = lake.server.lake.versions
    live = lake.server.lake.version(table)
    rows = versions.opened(live).view(versions.pin(live)).groupBy("window_start").sum("orders").collect()
    return {(row[0].astimezone(START.tzinfo) - START) // MINUTE: row[1] for row in rows}


def rows(lake: Lake, table: str) -> list[Any]:
    """What a reader sees."""
    versions, live = lake.server.lake.versions, lake.server.lake.version(table)
    return versions.opened(live).view(versions.pin(live)).collect()


def kept(lake: Lake, table: str = SALES.name) -> set[int]:
    """The windows, or their tiles, that have states, by the minute after the start."""
    (feed,) = (one for one in opened(lake) if one.version.table == table)
    assert feed.definition.cells
    rows = feed.rows().select(feed.definition.cells.column).distinct().collect()
    return {(row[0].astimezone(START.tzinfo) - START) // MINUTE for row in rows}


def pinned(lake: Lake) -> tuple[MaintainedVersion, Pin]:
    live = lake.server.lake.version(SALES.name)
    found = lake.server.lake.versions.opened(live)
    assert isinstance(found, MaintainedVersion)
    return found, lake.server.lake.versions.pin(live)


def test_windows_end_by_the_watermark_and_both_layers_agree(lake: Lake) -> None:
    take(lake, minutes(0, 8))
    assert set(starts(lake)) == set(range(8))
    # the newest order is at 20:03, so that a window [n, n + 1) is shown while n + 11 minutes are later
    take(lake, minutes(8, 21, begin=100))

    assert set(starts(lake)) == set(range(10, 21)) and set(starts(lake, "hopping")) == set(range(8, 21))
    for table in TABLES:
        assert lake.do("verify", table=table)["equal"]
    assert kept(lake) == set(range(21)), "nothing is deleted by itself"

    found = lake.do("expire", check=True)["tables"]
    assert [one["table"] for one in found] == ["hopping", "sales_per_region"] and found[0]["rows"] == 8 * 4
    assert (found[1]["rows"], found[1]["before"]) == (10 * 4, "2026-01-31T12:10:00Z")
    assert not any(one["deleted"] for one in found) and kept(lake) == set(range(21))

    done = lake.do("expire")["tables"]

    assert [{**one, "deleted": False, "bytes": 0} for one in done] == [{**one, "bytes": 0} for one in found]
    assert all(one["deleted"] for one in done)
    assert kept(lake) == set(range(10, 21)) and kept(lake, "hopping") == set(range(8, 21))
    assert set(starts(lake)) == set(range(10, 21))
    for table in TABLES:
        assert lake.do("verify", table=table)["equal"]
        assert lake.do("rebuild", table=table)["equal"]
    assert kept(lake) == set(range(10, 21)), "a rebuild brings nothing back"
    assert not any(one["rows"] for one in lake.do("expire")["tables"])


def test_what_comes_for_a_window_that_has_ended_is_in_the_log_and_in_no_row(lake: Lake) -> None:
    take(lake, minutes(0, 21))
    assert lake.do("verify", table=SALES.name, due=True)["equal"]
    lake.do("expire")
    take(lake, minutes(2, 4, begin=200), minutes(12, 14, each=5, begin=300))

    shown = starts(lake)
    assert set(shown) == set(range(10, 21)) and (shown[12], shown[13], shown[14]) == (9, 9, 4)
    for only_due in (True, False):
        assert lake.do("verify", table=SALES.name, due=only_due)["equal"]
        assert lake.do("rebuild", table=SALES.name, due=only_due)["equal"]
    assert lake.do("expire", table=SALES.name)["tables"][0]["rows"] == 2 * 4
    assert lake.do("verify", table=SALES.name, due=True)["equal"]
    with pytest.raises(NotFoundError, match="there is no table 'sale'"):
        lake.do("expire", table="sale")
    with pytest.raises(ValueError, match="both a topic and a table"):
        lake.do("expire", table=SALES.name, topic="orders")


def test_a_lost_row_of_a_window_that_is_shown_is_found_and_one_of_another_is_not_asked_for(
    lake: Lake,
) -> None:
    take(lake, minutes(0, 21))
    feed, _ = pinned(lake)
    for minute, is_equal in ((3, True), (15, False)):
        feed.spark.sql(
            f"DELETE FROM delta.`{feed.path}` WHERE window_start = TIMESTAMP '2026-01-31 12:{minute:02}:00Z'"
        )
        if is_equal:
            assert lake.do("verify", table=SALES.name)["equal"]
        else:
            with pytest.raises(Exception, match="differ in 4 keys"):
                lake.do("verify", table=SALES.name)
    assert lake.do("rebuild", table=SALES.name, repair=True)["replaced"]
    assert set(starts(lake)) == set(range(10, 21))


def test_a_changelog_is_told_of_rows_that_have_ended(lake: Lake) -> None:
    take(lake, minutes(0, 12))
    feed, old = pinned(lake)
    take(lake, minutes(12, 16, begin=100))
    lake.do("expire")
    feed, new = pinned(lake)

    by = touched(feed, old, new)

    assert by is not None
    keys = feed.definition.view_keys
    left, right = exact_side(feed, old), exact_side(feed, new)
    found = changes(only(left, by), only(right, by), keys).collect()
    everything = changes(left, right, keys).collect()
    assert sorted(map(repr, found)) == sorted(map(repr, everything))
    gone = [row for row in found if row["r"] is None]
    assert len(gone) == 4 * 4, "windows 1 to 4: window 0 had ended before"


def test_as_of_shows_what_was_shown_then_whatever_has_been_deleted_since(lake: Lake) -> None:
    take(lake, minutes(0, 8), minutes(8, 12, begin=100), minutes(12, 21, begin=200))
    past = PastTables(lake.server.lake.spark, lake.path, utc_now)

    def rows(as_of: str) -> tuple[list[str], bool]:
        schema, said = past._made(as_of, f"serve.{SALES.name}")
        found = past.spark.table(f"{schema}.{SALES.name}").select(*SALES.timeless).collect()
        return sorted(map(repr, found)), bool(said["computed"])

    before = [rows(f"position:orders={batch}")[0] for batch in (1, 2, 3)]
    assert [len(one) for one in before] == [8 * 4, 11 * 4, 11 * 4]
    lake.do("expire")
    assert [rows(f"position:orders={batch}") for batch in (1, 2, 3)] == [(one, False) for one in before]
    (feed,) = (one for one in opened(lake) if one.version.table == SALES.name)
    away = lake.path / "away"
    shutil.move(feed.path, away)  # as if all its files were cleaned up
    try:
        assert [rows(f"position:orders={batch}") for batch in (1, 2, 3)] == [(one, True) for one in before]
    finally:
        shutil.move(away, feed.path)


@pytest.mark.parametrize("point", [Point.BEFORE_RETENTION, Point.AFTER_RETENTION])
def test_killed_on_either_side_of_its_commit_nothing_is_seen(
    spark: SparkSession, tmp_path: Path, point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, tmp_path)
    lake.promote(lake.build(TABLES))
    take(lake, minutes(0, 21))
    before = starts(lake)

    def here(reached: Point, table: str = "") -> None:
        if reached is point and table == SALES.name:
            raise Killed

    monkeypatch.setattr(breakpoints, "at", here)
    with pytest.raises(Killed):
        lake.do("expire")
    monkeypatch.undo()
    lake.stop()

    again = Lake(spark, tmp_path)
    try:
        is_done = point is Point.AFTER_RETENTION
        assert kept(again) == set(range(10 if is_done else 0, 21)) and starts(again) == before
        assert again.do("expire", table=SALES.name)["tables"][0]["deleted"] is not is_done
        assert kept(again) == set(range(10, 21)) and starts(again) == before
        take(again, minutes(21, 22, begin=300))
        assert again.do("verify", table=SALES.name)["equal"]
        assert set(starts(again)) == set(range(11, 22))
    finally:
        again.stop()


def test_a_longer_retention_is_a_release_that_shows_again_what_the_log_has(lake: Lake) -> None:
    take(lake, minutes(0, 21))
    lake.do("expire")
    longer = {**TABLES, SALES.name: replace(ENDING, retention="15 minutes")}
    plan = lake.build(longer)

    compared = lake.do("diff", table=SALES.name)
    lake.promote(plan)

    assert (compared["only_green"], compared["only_blue"], compared["changed"]) == (5 * 4, 0, 0)
    assert set(starts(lake)) == set(range(5, 21))
    take(lake, minutes(21, 22, begin=300))
    lake.do("rollback", reason="a test", approved_by="tester")
    assert set(starts(lake)) == set(range(11, 22))


def test_a_version_that_cannot_be_read_keeps_no_other_of_its_table_from_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path)
    try:
        for retention in ("10 minutes", "12 minutes"):
            lake.promote(lake.build({SALES.name: replace(ENDING, retention=retention)}))
        take(lake, minutes(0, 21))
        altered, other = opened(lake)  # in the order in which they are looked at
        spark.sql(f"ALTER TABLE delta.`{altered.path}` ADD COLUMNS (more string)")

        with pytest.raises(ChangedTableError, match="was altered"):
            lake.do("expire", table=SALES.name)

        starts = other.rows().select("window_start").distinct()
        assert starts.count() in (11, 13), "those that are shown"
    finally:
        lake.stop()


def test_another_engine_ends_them_too(lake: Lake) -> None:
    take(lake, minutes(0, 21))
    lake.do("expire")
    for table in (SALES.name, "hopping"):
        proof = lake.do("verify", table=table)["proof"]
        assert "= DuckDB" in proof and proof.endswith(f"({len(rows(lake, table))} rows)"), proof


def test_files_are_free_once_they_are_cleaned_up(lake: Lake) -> None:
    for minute in range(0, 21, 3):
        take(lake, minutes(minute, minute + 3, begin=100 * minute))
    (feed,) = (one for one in opened(lake) if one.version.table == SALES.name)
    size = sum(file.stat().st_size for file in Path(feed.path).rglob("_segment*/*.parquet"))
    lake.do("expire")
    drop_old_commits(feed.path, 0)
    feed.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    vacuum(feed.spark, feed.path, 0)
    left = sum(
        file.stat().st_size for file in Path(feed.path).rglob("*.parquet") if "_delta_log" not in str(file)
    )
    assert left < size * 0.7
    assert set(starts(lake)) == set(range(10, 21))
    for version in lake.server.lake.versions.living():
        lake.server.lake.versions.pin(version, Run(id="last"))
