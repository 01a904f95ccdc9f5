"""Records that are older than the contract keeps them go; no row changes by it, now or later."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.history import LATEST, SALES
from tests.project import PROJECT
from tests.reading.test_past_tables import KEPT, PAID, VISITS
from tests.releases.lake import Lake, order
from tests.world import Killed
from twinlake.backup import take as backup
from twinlake.backup.archive import Archive
from twinlake.backup.restore import restore
from twinlake.base import breakpoints
from twinlake.base.breakpoints import Point
from twinlake.base.errors import (
    BusyError,
    DifferenceError,
    LostHistoryError,
    NotFoundError,
    TwinlakeError,
    UsageError,
)
from twinlake.base.job import Run
from twinlake.base.times import format_moment, utc_now
from twinlake.base.waiting import wait_for
from twinlake.batch import retention
from twinlake.batch.due import Scope
from twinlake.batch.maintain import vacuum
from twinlake.batch.verify import verify
from twinlake.config.settings import Settings
from twinlake.kinds.derived import Derived
from twinlake.kinds.kind import Kind, ViewClock
from twinlake.kinds.windows import Windows
from twinlake.lake.catalog.maintained_version import MaintainedVersion
from twinlake.lake.catalog.version import Health
from twinlake.lake.delta.delta import relation_sql
from twinlake.lake.log.quarantine import quarantine_sql
from twinlake.reading.past_tables import PastTables
from twinlake.server.topic_watch import TopicWatch

SHARES = Derived(
    name="shares", reads=("sales_per_region",), columns=("region", "orders"), keys=("region",),
    by=("region",), sql="SELECT region, sum(orders) AS orders FROM sales_per_region GROUP BY region",
)  # fmt: skip
STORED: tuple[Any, ...] = (SALES, LATEST, VISITS, KEPT)
TABLES: dict[str, Kind] = {table.name: table for table in (*STORED, SHARES)}
RETENTION = "\nslaProperties:\n  - {property: retention, value: 30, unit: days}\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ours, whose orders are kept for 30 days."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(PROJECT / "schemas", folder / "schemas")
    contract = Path("contracts") / "orders.yaml"
    (folder / "contracts").mkdir()
    (folder / contract).write_text((PROJECT / contract).read_text() + RETENTION)
    return folder


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, project: Path) -> Iterator[Lake]:
    made = Lake(spark, tmp_path, project=project)
    made.promote(made.build(TABLES))
    yield made
    made.stop()


def some(first: int, count: int, at: datetime | None = None) -> list[dict[str, Any]]:
    """Orders, each another one; from a moment on, or those of January."""
    made = [order(number) for number in range(first, first + count)]
    if at is None:
        return made
    return [{**one, "ordered_at": at + timedelta(seconds=number)} for number, one in enumerate(made)]


def opened(lake: Lake) -> list[MaintainedVersion]:
    found = (lake.server.lake.versions.opened(one) for one in lake.server.lake.versions.living())
    return [one for one in found if isinstance(one, MaintainedVersion)]


def take(lake: Lake, *batches: list[dict[str, Any]]) -> None:
    """Batches into the log, and into every table."""
    for records in batches:
        batch = lake.append(records)
        for version in lake.server.lake.versions.living():
            lake.server.lake.versions.advance_to(version, {"orders": batch}, Run(id="take"))


def shown(lake: Lake) -> dict[str, list[str]]:
    """By table what a reader sees."""
    found = {}
    for version in lake.server.lake.versions.living():
        one = lake.server.lake.versions.opened(version)
        kind = one.definition
        rows = one.view(lake.server.lake.versions.pin(version)).select(*kind.timeless).collect()
        found[version.table] = sorted(map(repr, rows))
    return found


def stored(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Without the view kinds."""
    return {table.name: found[table.name] for table in STORED}


def made_of(
    lake: Lake, records: list[dict[str, Any]], tables: Sequence[Any] = STORED
) -> dict[str, list[str]]:
    """By table what its definition makes of these records, none of which any retention has touched."""
    log = lake.server.lake.logs["orders"]
    rows = [
        {**one, "_epoch": 0, "_partition": 0, "_offset": offset, "_timestamp": one["ordered_at"],
         "_ingested_at": None}
        for offset, one in enumerate(records)
    ]  # fmt: skip
    frame = log.spark.createDataFrame(
        [tuple(row.get(name) for name, _ in log.topic.columns) for row in rows],
        ", ".join(f"{name} {type_}" for name, type_ in log.topic.columns),
    )
    found = {}
    for table in tables:
        table.partial(frame).createOrReplaceTempView(f"made_of_{table.name}")
        view = log.spark.sql(table.view({table.name: f"made_of_{table.name}"}, ViewClock()))
        found[table.name] = sorted(map(repr, view.select(*table.timeless).collect()))
    return found


def held(lake: Lake) -> dict[str, int]:
    """The log's rows by verdict."""
    log = lake.server.lake.logs["orders"]
    rows = log.all(0, log.end()).groupBy("verdict").count().collect()
    return {row["verdict"]: row["count"] for row in rows}


def test_no_row_changes_now_or_later_and_both_layers_agree(lake: Lake) -> None:
    old, more, new = some(0, 60), some(60, 40), some(100, 30, utc_now() - timedelta(days=3))
    take(lake, old, more, new)
    before = shown(lake)
    assert stored(before) == made_of(lake, old + more + new)

    (announced,) = lake.do("expire", check=True)["topics"]
    assert (announced["batch"], announced["records"], announced["deleted"]) == (2, 100, False)
    assert len(announced["kept"]) == len(STORED) and held(lake) == {"valid": 130}

    (done,) = lake.do("expire")["topics"]

    assert done["deleted"] and {**done, "deleted": False} == announced
    assert held(lake) == {"valid": 30} and shown(lake) == before
    for table in (*STORED, SHARES):
        assert lake.do("verify", table=table.name)["equal"]
    # records for old windows and old keys, which the kept states go on with
    late = [{**one, "order_id": 1_000 + one["order_id"]} for one in some(20, 30)]
    take(lake, late)
    everything = old + more + new + late
    assert stored(shown(lake)) == made_of(lake, everything)
    for feed in opened(lake):
        rebuilt = lake.do("rebuild", table=feed.version.table)
        assert rebuilt["equal"] and rebuilt["replaced"], rebuilt
    assert stored(shown(lake)) == made_of(lake, everything)
    assert lake.do("expire")["topics"][0]["batch"] == 0, "a batch after younger ones is younger"
    ranged = lake.do(
        "rebuild", table=SALES.name, **{"from": "2026-01-31T12:00:00Z", "to": "2026-02-01T00:00:00Z"}
    )
    assert ranged["equal"] and ranged["replaced"] and ranged["rows_compared"]
    assert stored(shown(lake)) == made_of(lake, everything)


def test_what_is_lost_after_it_is_found_and_repaired_from_what_is_kept(lake: Lake) -> None:
    take(lake, some(0, 60), some(100, 20, utc_now()))
    before = shown(lake)
    assert lake.do("expire")["topics"][0]["deleted"]
    (sales,) = (feed for feed in opened(lake) if feed.version.table == SALES.name)
    sales.spark.sql(f"DELETE FROM {relation_sql(sales.path)} WHERE region = 'r1'")

    assert not lake.server.lake.versions.opened(sales.version).rows().where("region = 'r1'").count()
    with pytest.raises(Exception, match="differ"):
        lake.do("verify", table=SALES.name)
    assert lake.do("rebuild", table=SALES.name, repair=True)["replaced"]

    assert shown(lake) == before


def test_a_table_that_reads_the_records_themselves_needs_them(lake: Lake) -> None:
    lake.promote(lake.build({**TABLES, "paid": PAID}))
    take(lake, some(0, 20))

    (told,) = lake.do("expire")["topics"]

    assert not told["deleted"] and told["batch"] == 1
    assert [reason.split()[0] for reason in told["needed_by"]] == ["paid"]
    assert held(lake) == {"valid": 20}
    with pytest.raises(NotFoundError, match="there is no topic 'payments'"):
        lake.do("expire", topic="payments")


def test_quarantine_and_late_records_stay_in_reach(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    take(lake, some(0, 20))
    log = lake.server.lake.logs["orders"]
    lake.append(some(20, 3), verdict="invalid")
    lake.append(some(23, 4), late=True)
    take(lake, some(30, 5, utc_now()))
    quarantine, late = quarantine_sql(relation_sql(log.path)), log.late_sql(relation_sql(log.path))

    def listed() -> list[list[str]]:
        return [sorted(map(repr, log.spark.sql(text).collect())) for text in (quarantine, late)]

    seen = listed()
    assert list(map(len, seen)) == [3, 4]

    for left in (5, 2):
        assert lake.do("expire")["topics"][0]["deleted"]
        assert held(lake) == {"valid": left, "invalid": 3, "expired": 4}
        assert listed() == seen
        later = utc_now() + timedelta(days=31)
        monkeypatch.setattr(lake.server, "_lake", replace(lake.server.lake, clock=lambda now=later: now))
        if left == 5:
            take(lake, some(50, 2, later))
    assert lake.do("verify", table=SALES.name)["equal"]


def test_retention_again_and_again_keeps_what_it_has_kept(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = some(0, 30)
    take(lake, records)
    for day in range(3):
        lake.do("expire")
        at = utc_now() - timedelta(days=3 - day)
        records += some(100 * (day + 1), 10, at)
        take(lake, records[-10:])
        now = at + timedelta(days=31)
        monkeypatch.setattr(lake.server, "_lake", replace(lake.server.lake, clock=lambda now=now: now))
    assert lake.do("expire")["topics"][0]["deleted"]

    log = lake.server.lake.logs["orders"]
    assert log.start and log.start.rows == len(records) and log.start.number == 4
    assert sorted(path.name for path in (log.path / "_kept").iterdir()) == ["3", "4"]
    assert stored(shown(lake)) == made_of(lake, records)
    vacuum(log.spark, log.path, 0)  # Delta leaves what is kept beside the log alone
    for feed in opened(lake):
        assert lake.do("rebuild", table=feed.version.table)["equal"]


def test_a_new_build_goes_on_from_what_is_kept_of_the_same_logic_and_says_where_other_logic_begins(
    lake: Lake,
) -> None:
    take(lake, some(0, 60), some(100, 20, utc_now()))
    before = shown(lake)
    lake.do("expire")
    version = next(feed.version for feed in opened(lake) if feed.version.table == SALES.name)
    again = replace(version, build=version.build + 1)
    lake.server.lake.versions.start(again)
    lake.server.lake.versions.advance_to(again, {"orders": 2}, Run(id="again"))
    view = lake.server.lake.versions.opened(again).view(lake.server.lake.versions.pin(again))
    assert sorted(map(repr, view.select(*SALES.timeless).collect())) == before[SALES.name]

    changed = {**TABLES, SALES.name: replace(SALES, where="status <> 'cancelled'")}
    plan = lake.plan(changed)

    (change,) = (one for one in plan["changes"] if one["table"] == SALES.name)
    assert not change["reaches_back"] and "retention has deleted" in change["history"]


def test_a_restarted_server_goes_on(spark: SparkSession, tmp_path: Path, project: Path) -> None:
    lake = Lake(spark, tmp_path, project=project)
    lake.promote(lake.build(TABLES))
    old, new = some(0, 60), some(100, 20, utc_now())
    take(lake, old, new)
    lake.do("expire")
    before = shown(lake)
    lake.stop()

    again = Lake(spark, tmp_path, project=project)

    try:
        assert shown(again) == before
        more = some(200, 10, utc_now())
        take(again, more)
        found = stored(shown(again))
        assert found == made_of(again, old + new + more)
        assert again.do("rebuild", table=LATEST.name)["equal"]
    finally:
        again.stop()


def test_while_a_clock_is_known_to_be_wrong_nothing_is_deleted(lake: Lake) -> None:
    take(lake, some(0, 60), some(100, 20, utc_now()))
    watch = lake.server._watches.setdefault("orders", TopicWatch("orders", utc_now))
    watch.behind = TwinlakeError("Kafka's clock is behind this machine's", "one has jumped", "set it right")

    for only_check in (True, False):
        with pytest.raises(TwinlakeError, match="nothing of topic orders was deleted"):
            lake.do("expire", check=only_check)

    assert held(lake) == {"valid": 80}
    watch.behind = None
    assert lake.do("expire")["topics"][0]["deleted"]


def test_a_record_of_a_time_to_come_is_as_old_as_its_arrival(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(lake, some(0, 20), some(30, 1, utc_now() + timedelta(days=36_500)), some(40, 3, utc_now()))

    assert lake.do("expire")["topics"][0]["deleted"]
    assert held(lake) == {"valid": 4}, "it has just come"

    later = utc_now() + timedelta(days=31)
    monkeypatch.setattr(lake.server, "_lake", replace(lake.server.lake, clock=lambda: later))
    take(lake, some(50, 2, later))
    (told,) = lake.do("expire")["topics"]
    assert told["deleted"] and told["until"] < format_moment(later)
    assert held(lake) == {"valid": 2}
    assert lake.do("verify", table=SALES.name)["equal"]


@pytest.mark.parametrize("point", [Point.BEFORE_RETENTION, Point.AFTER_RETENTION])
def test_killed_on_either_side_of_its_commit_it_is_as_it_was_or_done(
    spark: SparkSession, tmp_path: Path, project: Path, point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, tmp_path, project=project)
    lake.promote(lake.build(TABLES))
    take(lake, some(0, 30), some(100, 20, utc_now()))
    before = shown(lake)

    def here(reached: Point, table: str = "") -> None:
        if reached is point:
            raise Killed

    monkeypatch.setattr(breakpoints, "at", here)
    with pytest.raises(Killed):
        lake.do("expire")
    monkeypatch.undo()
    lake.stop()

    again = Lake(spark, tmp_path, project=project)
    try:
        is_done = point is Point.AFTER_RETENTION
        assert held(again) == {"valid": 20 if is_done else 50} and shown(again) == before
        assert again.do("expire")["topics"][0]["deleted"] is not is_done
        assert held(again) == {"valid": 20} and shown(again) == before
        assert again.do("verify", table=SALES.name)["equal"]
    finally:
        again.stop()


def test_a_backup_has_what_is_kept(spark: SparkSession, tmp_path: Path, project: Path) -> None:
    lake = Lake(spark, tmp_path / "home", project=project)
    lake.promote(lake.build(TABLES))
    take(lake, some(0, 30), some(100, 20, utc_now()))
    lake.do("expire")
    before = shown(lake)
    made = backup.take(Settings(home=tmp_path / "home"), tmp_path / "backups", Run(id="backup"))
    lake.stop()
    home = tmp_path / "again"

    restore(Archive(tmp_path / "backups"), made, home, home / "lake", Run(id="restore"))

    again = Lake(spark, home, project=project)
    try:
        assert shown(again) == before
        assert again.do("rebuild", table=SALES.name)["equal"]
    finally:
        again.stop()


def test_as_of_reads_what_is_kept_and_says_what_is_gone(lake: Lake) -> None:
    take(lake, some(0, 40), some(40, 20), some(100, 20, utc_now()))
    lake.do("expire")
    take(lake, some(200, 20, utc_now()))
    past = PastTables(lake.server.lake.spark, lake.path, utc_now)

    def rows(as_of: str) -> tuple[list[str], bool]:
        schema, said = past._made(as_of, f"serve.{SALES.name} serve.{LATEST.name}")
        tables = [
            past.spark.table(f"{schema}.{table.name}").select(*table.timeless) for table in (SALES, LATEST)
        ]
        return sorted(repr(row) for table in tables for row in table.collect()), bool(said["computed"])

    kept = rows("position:orders=3")
    away = lake.path / "away"
    for feed in opened(lake):  # as if all their commits were cleaned up
        shutil.move(feed.path, away / feed.version.table)
    computed = rows("position:orders=3")
    for feed in opened(lake):
        shutil.move(away / feed.version.table, feed.path)

    assert (kept[1], computed) == (False, (kept[0], True))
    with pytest.raises(UsageError, match="does not reach back to position:orders=1"):
        rows("position:orders=1")


def test_what_was_not_maintained_when_records_went_is_refused_and_not_shown_in_part(lake: Lake) -> None:
    take(lake, some(0, 60), some(100, 20, utc_now()))
    before = lake.server.lake.versions.living()
    lake.promote(lake.build({**TABLES, SALES.name: replace(SALES, where="status <> 'cancelled'")}))
    (retired,) = (one for one in before if one.table == SALES.name)
    (shares,) = (one for one in before if one.table == SHARES.name)
    for one in (shares, retired):
        lake.server.lake.versions.retire(one, format_moment(utc_now()))
    assert lake.do("expire")["topics"][0]["deleted"]
    shutil.rmtree(retired.path(lake.path))
    past = PastTables(lake.server.lake.spark, lake.path, utc_now)

    with pytest.raises(LostHistoryError, match="retention has deleted records up to batch 1"):
        past._made("release:1", f"serve.{SALES.name}")


def test_a_version_that_is_built_meanwhile_keeps_the_records(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(lake, some(0, 60), some(100, 20, utc_now()))
    version = next(feed.version for feed in opened(lake) if feed.version.table == SALES.name)
    written = retention._written

    def meanwhile(*asked: Any) -> Any:
        lake.server.lake.versions.start(replace(version, build=version.build + 1))
        return written(*asked)

    monkeypatch.setattr(retention, "_written", meanwhile)
    with pytest.raises(BusyError, match="built, or opened again, meanwhile"):
        lake.do("expire")
    monkeypatch.undo()

    assert held(lake) == {"valid": 80}
    for one in lake.server.lake.versions.living():
        lake.server.lake.versions.advance_to(one, {"orders": 2}, Run(id="again"))
    assert lake.do("expire")["topics"][0]["deleted"]
    assert lake.do("verify", table=SALES.name, version=f"{version.fingerprint[:12]}-{version.build + 1}")[
        "equal"
    ]


def lost(lake: Lake) -> Health | None:
    return next((one for one in lake.server.lake.versions.health() if one.lost), None)


def test_a_version_that_is_behind_a_log_s_start_is_built_again_with_what_is_kept(
    spark: SparkSession, tmp_path: Path, project: Path
) -> None:
    """As after a backup that was taken while retention deleted."""
    lake = Lake(spark, tmp_path, project=project)
    lake.promote(lake.build(TABLES))
    take(lake, some(0, 30))
    (sales,) = (feed.path for feed in opened(lake) if feed.version.table == SALES.name)
    shutil.copytree(sales, tmp_path / "earlier")
    take(lake, some(30, 30), some(100, 20, utc_now()))
    before = shown(lake)
    lake.do("expire")
    lake.stop()
    shutil.rmtree(sales)
    shutil.move(tmp_path / "earlier", sales)

    again = Lake(spark, tmp_path, project=project)
    try:
        health = wait_for("what is lost to say so", lambda: lost(again), 60)
        assert "starts after 2" in str(health.error)
        again.promote(again.build(TABLES))
        live, versions = again.server.lake.version(SALES.name), again.server.lake.versions
        view = versions.opened(live).view(versions.pin(live))
        assert sorted(map(repr, view.select(*SALES.timeless).collect())) == before[SALES.name]
    finally:
        again.stop()


def test_a_count_of_records_that_retention_deletes_meanwhile_is_asked_for_again(lake: Lake) -> None:
    take(lake, some(0, 60))
    lake.do("verify", table=SALES.name)
    live = lake.server.lake.version(SALES.name)
    last = lake.server.lake.certificates.newest(live.table, live.name)
    assert last is not None
    take(lake, some(60, 40), some(100, 20, utc_now()))
    scope, pin = Scope(windows=Windows(()), base=last.as_base), lake.server.lake.versions.pin(live)
    sales = lake.server.lake.versions.opened(live)
    assert verify(sales, pin, Run(id="before"), "", scope).equal

    assert lake.do("expire")["topics"][0]["deleted"]

    with pytest.raises(BusyError, match="records since batch 1 of topic orders cannot be counted"):
        verify(sales, pin, Run(id="after"), "", scope)
    assert lake.do("verify", table=SALES.name, due=True)["equal"]


def test_a_difference_keeps_the_records_that_tell_of_it(lake: Lake) -> None:
    take(lake, some(0, 60), some(100, 20, utc_now()))
    (sales,) = (feed for feed in opened(lake) if feed.version.table == SALES.name)
    sales.spark.sql(f"DELETE FROM {relation_sql(sales.path)} WHERE region = 'r1'")
    with pytest.raises(DifferenceError):
        lake.do("verify", table=SALES.name)

    (one,) = lake.do("expire")["topics"]

    assert not one["deleted"] and [why.split()[0] for why in one["needed_by"]] == [SALES.name]
