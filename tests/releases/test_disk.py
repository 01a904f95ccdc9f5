"""What a small real lake takes on the disk, without Spark: what it is, who keeps it, and what could go."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.base.test_disk import du
from tests.small_lake.small import unpack
from twinlake.base.disk import Walk
from twinlake.base.job import Job
from twinlake.base.times import format_moment, utc_now
from twinlake.lake.catalog.runs import Runs
from twinlake.lake.catalog.version import Version, stored_versions, version_file
from twinlake.lake.disk import needed
from twinlake.releases.disk import CLEAN_UP, RETIRE, Freeable, OfLake, Part, of_lake

NOW = utc_now()
RELEASED_AGAIN = {"habits", "latest_order", "orders", "sales_per_region", "totals"}
"""Of these, release 1 has other versions than release 2."""


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two releases; nobody writes to it."""
    return unpack(0, tmp_path)


def found(lake: Path, keep: int = 3, now: datetime = NOW) -> OfLake:
    return of_lake(lake, Walk(), keep, now)


def freeable(lake: Path, by: str, keep: int = 3, now: datetime = NOW) -> Freeable:
    return next(one for one in found(lake, keep, now).freeable if one.by == by)


def total(made: OfLake) -> int:
    return sum(one.bytes for one in made.parts)


def part(made: OfLake, version: Version) -> Part:
    return next(one for one in made.parts if (one.name, one.version) == (version.table, version.name))


def stored(lake: Path, table: str, build: int) -> Version:
    return next(one for one in stored_versions(lake) if (one.table, one.build) == (table, build))


def test_the_parts_are_all_that_is_there_and_each_is_what_du_says(lake: Path) -> None:
    made = found(lake)

    assert total(made) == du(lake) and made.unknown == []
    for one in made.parts:
        if one.kind == "log":
            assert one.bytes == du(lake / "logs" / one.name)
        elif one.kind == "table":
            places = [lake / "tables" / one.name / f"{one.version}{end}" for end in ("", ".json")]
            assert one.bytes == sum(du(place) for place in places if place.exists())
    assert {one.name for one in made.parts if one.kind == "log"} == {*os.listdir(lake / "logs")}
    assert sum(one.files for one in made.parts) == sum(file.is_file() for file in lake.rglob("*"))


def test_each_version_is_named_with_who_keeps_it(lake: Path) -> None:
    made = found(lake)
    states = {(one.name, one.version): one for one in made.parts if one.kind == "table"}

    assert {one.state for one in states.values()} == {"live", "kept"}
    kept = {name for (name, _), one in states.items() if one.state == "kept"}
    assert kept == RELEASED_AGAIN and all(one.releases for one in states.values())
    assert {one.releases for one in states.values() if one.state == "kept"} == {(1,)}


def test_what_only_older_releases_use_could_be_retired_and_is_not_counted_twice(lake: Path) -> None:
    retire, clean_up = freeable(lake, RETIRE, keep=1), freeable(lake, CLEAN_UP, keep=1)
    old = [stored(lake, table, 1) for table in sorted(RELEASED_AGAIN)]

    assert sorted(retire.what) == [str(one) for one in old] and retire.command == "twinlake retire --keep 1"
    rows = [one.path(lake) for one in old]
    assert retire.later_bytes == sum(du(place) for place in rows if place.exists()) > 0
    assert retire.bytes == 0 and not set(retire.what) & set(clean_up.what)
    assert freeable(lake, RETIRE).what == ()


@pytest.mark.parametrize(("hours", "is_now"), [(7, True), (1, False)])
def test_the_files_of_retired_versions_go_six_hours_later(lake: Path, hours: int, is_now: bool) -> None:
    version, before = stored(lake, "latest_order", 1), freeable(lake, CLEAN_UP)
    rows = du(version.path(lake))
    version.retired(format_moment(NOW - timedelta(hours=hours))).save(lake)

    after = freeable(lake, CLEAN_UP)

    assert part(found(lake), version).state == "retired"
    grown = (after.bytes - before.bytes, after.later_bytes - before.later_bytes)
    assert grown == ((rows, 0) if is_now else (0, rows))
    at_first = total(found(lake))
    shutil.rmtree(version.path(lake))
    assert at_first - total(found(lake)) == rows
    assert freeable(lake, CLEAN_UP) == before, "its definition stays"


def test_replaced_files_are_those_that_another_implementation_of_delta_would_delete(lake: Path) -> None:
    """All are older than six hours; so are their commits, by the times that stand in them."""
    made, others = found(lake), 0
    for one in made.parts:
        place = lake / ("logs" if one.kind == "log" else "tables") / one.name / one.version
        if one.kind not in ("log", "table") or not (place / "_delta_log").exists():
            continue
        vacuumed = DeltaTable(str(place)).vacuum(6, dry_run=True, enforce_retention_duration=False, full=True)
        bytes_ = sum(du(place / name) for name in vacuumed)
        assert one.spare_bytes == bytes_, str(one)
        others += bytes_

    assert freeable(lake, CLEAN_UP).bytes == others > 0


def test_a_file_that_was_replaced_a_moment_ago_goes_later(lake: Path) -> None:
    """Whatever its own age is, readers may still use it."""
    spare = next(one for one in found(lake).parts if one.spare_bytes)
    place = lake / "tables" / spare.name / spare.version
    before, (held, _) = freeable(lake, CLEAN_UP), needed(place)
    DeltaTable(str(place)).optimize.compact()
    gone = held - needed(place)[0]
    assert gone

    after = freeable(lake, CLEAN_UP, now=utc_now())

    bytes_ = sum(du(place / file) for file in gone)
    assert (after.bytes, after.later_bytes) == (before.bytes, before.later_bytes + bytes_)
    DeltaTable(str(place)).create_checkpoint()
    assert freeable(lake, CLEAN_UP, now=utc_now()) == after, "a checkpoint says the same as its commits"


def test_while_a_long_job_runs_nothing_goes_and_what_it_stages_is_its_own(lake: Path) -> None:
    before = freeable(lake, CLEAN_UP)
    (lake / "staging" / "old").mkdir(parents=True)
    (lake / "staging" / "old" / "rows").write_bytes(b"x" * 50_000)
    (lake / "staging" / "j").mkdir()
    staged = freeable(lake, CLEAN_UP)
    began = format_moment(NOW - timedelta(hours=7))
    Runs(lake).put(Job(id="j", kind="build", params={}, state="running", created_at=began, started_at=began))

    during = freeable(lake, CLEAN_UP)

    rows = sum(du(lake / "staging" / name) for name in ("old", "j"))
    assert staged.bytes - before.bytes == rows and "staged by job old" in staged.what
    assert during.bytes == du(lake / "staging" / "old")
    assert during.later_bytes == before.bytes + before.later_bytes


def test_without_a_lake_there_is_nothing_and_nothing_is_made(tmp_path: Path) -> None:
    made = found(tmp_path / "none")

    assert (made.parts, made.unknown) == ([], [])
    assert [(one.bytes, one.later_bytes, one.what) for one in made.freeable] == [(0, 0, ())] * 2
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_read_is_named_and_all_is_counted(lake: Path) -> None:
    version = stored(lake, "totals", 2)
    version_file(lake, version.table, version.name).write_text("{")
    table = stored(lake, "orders_now", 1)
    newest = max((table.path(lake) / "_delta_log").glob("*.json"))
    newest.write_text("{")

    made = found(lake)

    assert total(made) == du(lake)
    assert part(made, version).state == "left" and part(made, table).state == "live"
    assert {str(error) for error in made.unknown if str(newest) in str(error)}
    assert {str(error) for error in made.unknown if version.name in str(error)}


def test_of_a_lake_of_a_newer_twinlake_the_bytes_alone_are_known(lake: Path) -> None:
    (lake / "lake.json").write_text('{"id": "x", "format": 1000, "needs": "9.0"}')

    made = found(lake)

    assert total(made) == du(lake) and {one.state for one in made.parts} == {""}
    assert "has format 1000" in made.unknown[0].what
