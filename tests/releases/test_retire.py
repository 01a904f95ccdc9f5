"""What no kept release uses is fed no more, cannot come back, and leaves the disk later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.base.test_disk import du
from tests.project import TABLES
from tests.releases.lake import Lake, order
from twinlake.base.disk import Walk
from twinlake.base.errors import NotFoundError
from twinlake.base.times import format_moment, parse_moment, utc_now
from twinlake.batch.maintain import KEEP_FILES_HOURS, drop_retired
from twinlake.config.sections import LONGEST_STATEMENT_S
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version, load, version_file
from twinlake.releases.disk import RETIRE, Freeable, of_lake
from twinlake.releases.retire import unused

DEFINED = {table.name: table for table in TABLES}
SALES = "sales_per_region"
CHANGED = {
    "orders": DEFINED["orders"], SALES: replace(DEFINED[SALES], where="status <> 'cancelled'"),
}  # fmt: skip
NOW = parse_moment("2026-02-10T12:00:00Z")


def version(build: int, created_at: str = "2026-01-01T00:00:00Z", table: str = "t") -> Version:
    return Version(
        table=table, fingerprint="f" * 12, build=build, definition={}, topics=("orders",), contracts={},
        created_at=created_at,
    )  # fmt: skip


def release(number: int, *versions: Version) -> Release:
    tables = {one.table: one.name for one in versions}
    return Release(number=number, kind="promote", tables=tables, created_at="", approved_by="me")


def test_what_a_kept_release_uses_lives_and_what_only_older_ones_used_does_not() -> None:
    a, b, c = version(1), version(2), version(3)
    history = [release(1, a), release(2, b), release(3, c), release(4, b)]

    assert unused([a, b, c], history, history[-2:], NOW) == [a]
    assert unused([a, b, c], history, history[-1:], NOW) == [a, c]


def test_what_was_built_and_not_released_lives_while_it_is_the_newest_or_new() -> None:
    live, old, new, newest = version(1), version(2), version(3, "2026-02-10T00:00:00Z"), version(4)
    history = [release(1, live)]

    assert unused([live, old, new, newest], history, history, NOW) == [old]


def test_a_table_that_is_no_longer_released_is_retired_with_it() -> None:
    other, live = version(1, table="other"), version(1)
    history = [release(1, other, live), release(2, live)]

    assert unused([other, live], history, history[-1:], NOW) == [other]


def test_files_outlive_every_reader() -> None:
    assert KEEP_FILES_HOURS * 3600 > LONGEST_STATEMENT_S


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Release 1 with all orders, release 2 with other sales and without latest_order; 100 orders."""
    made = Lake(spark, tmp_path_factory.mktemp("retire"))
    made.promote(made.build(DEFINED))
    made.append([order(number) for number in range(100)])
    made.promote(made.build(CHANGED))
    yield made
    made.stop()


def announced(lake: Lake, by: str) -> Freeable:
    """What `twinlake status --disk` says could be let go by this, were one release kept."""
    return next(one for one in of_lake(lake.path, Walk(), 1, utc_now()).freeable if one.by == by)


@pytest.mark.faults
def test_retired_versions_are_fed_no_more_cannot_come_back_and_their_files_go_later(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = lake.server.lake.versions
    old = {one.table: one for one in versions.living() if one.build == 1}
    assert lake.do("retire", keep=2)["retired"] == []
    latest, sales = str(old["latest_order"]), str(old[SALES])
    retired = [latest, sales]
    with versions.batch_lock(old[SALES]):  # somebody rebuilds it
        first = lake.do("retire", keep=1)
    assert (first["retired"], first["busy"]) == ([latest], [sales])
    back = lake.build({**CHANGED, SALES: DEFINED[SALES]})  # its sales are the old ones
    assert lake.do("retire", keep=1)["retired"] == []
    assert announced(lake, RETIRE).what == (), "a plan would make it live again"
    (lake.path / "plans" / f"{back}.json").unlink()
    to_retire = announced(lake, RETIRE)

    told = lake.do("retire", keep=1)

    assert (told["releases"], told["retired"], told["busy"]) == ([2], [sales], [])
    assert not {str(one) for one in versions.living()} & set(retired)
    lake.append([order(number) for number in range(100, 110)])  # the others go on
    with pytest.raises(NotFoundError, match="release 1 cannot come back"):
        lake.do("rollback", approved_by="me", to=1)
    assert lake.do("retire", keep=1)["retired"] == []
    path = old[SALES].path(lake.path)
    assert lake.do("maintain")["versions_deleted"] == [] and path.is_dir()
    later = utc_now() + timedelta(hours=KEEP_FILES_HOURS, minutes=1)
    rows = [du(one) for one in (path, old["latest_order"].path(lake.path)) if one.exists()]
    gone = [str(one) for one in drop_retired(replace(lake.server.lake, clock=lambda: later))]
    assert sorted(gone) == sorted(retired) and not path.exists()
    assert (to_retire.what, to_retire.later_bytes) == ((sales,), rows[0])
    assert load(version_file(lake.path, SALES, old[SALES].name)).state == "retired"
    assert lake.do("maintain")["versions_deleted"] == []


def test_a_retired_version_stays_retired_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    lake.promote(lake.build(DEFINED))
    (sales,) = (one for one in lake.server.lake.versions.living() if one.table == SALES)
    lake.server.lake.versions.retire(sales, format_moment(utc_now()))
    lake.stop()

    again = Lake(spark, tmp_path)

    assert SALES not in {one.table for one in again.server.lake.versions.living()}
    again.stop()
