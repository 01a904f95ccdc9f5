"""A published table has the rows of the view at one position, whatever other engine reads it: on real Spark
and Delta."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from prometheus_client import generate_latest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.longer import some
from tests.metrics.scraping import Scraped, parsed
from tests.published.stage import (
    CHANGED,
    DEFINED,
    EVENTS,
    HOPS,
    NONE,
    VISITS,
    Stage,
    by_deltalake,
    commits_of,
    files_of,
)
from tests.releases.lake import START
from tests.releases.table_stage import LATEST, PAID, SALES
from twinlake.base.errors import BusyError, DamagedError, NotFoundError, TwinlakeError, UsageError
from twinlake.base.waiting import wait_for
from twinlake.batch import maintain
from twinlake.difference.changed import ALL_KEYS, RECORDS, TOUCHED
from twinlake.metrics.scrape import registry_of
from twinlake.published import changes, publisher
from twinlake.published.changes import NEW
from twinlake.published.folder import STAGED, Folder, refuse_types
from twinlake.published.publisher import Publisher
from twinlake.server.serving import metrics_of


@pytest.fixture(scope="module")
def stage(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    patched = pytest.MonkeyPatch()
    patched.setattr(publisher, "WHOLE_EVERY_S", 1.0)
    patched.setattr(publisher, "EVERY_S", 0.2)
    patched.setattr(publisher, "REST", 0.1)
    found = Stage(spark, tmp_path_factory.mktemp("published"))
    found.lake.promote(found.lake.build(DEFINED))
    found.append(*range(40))
    yield found
    found.close()
    patched.undo()


def scraped(stage: Stage) -> Scraped:
    """What the lake server's metrics say now."""
    server = stage.lake.server
    return parsed(
        generate_latest(registry_of(metrics_of(server, server.settings, lambda: stage.spark))).decode()
    )


@pytest.fixture(autouse=True)
def _stopped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing is published when the next test begins."""
    yield
    if "stage" in request.fixturenames:
        stage: Stage = request.getfixturevalue("stage")
        stage.end_all("publish")


@pytest.mark.parametrize(
    ("table", "way"),
    some([(SALES, TOUCHED), (HOPS, TOUCHED), (LATEST, TOUCHED), (VISITS, TOUCHED), (EVENTS, RECORDS),
          (PAID, ALL_KEYS), (NONE, TOUCHED)]),
)  # fmt: skip
def test_three_engines_read_the_rows_of_the_view_at_each_position(stage: Stage, table: str, way: str) -> None:
    path = stage.publish(table)
    assert stage.until_published(table)["way"] == NEW
    assert stage.rows(table) == stage.view(table)
    first = 100 * stage.batches
    for numbers in (range(first, first + 30), range(first + 3, first + 9)):
        stage.append(*numbers)

        found = stage.until_published(table)

        assert (found["way"], found["state"], found["error"], found["behind"]) == (way, "published", None, {})
        assert stage.rows(table) == stage.view(table)
    delta = DeltaTable(str(path))
    assert delta.transaction_version("twinlake:orders") == stage.batches
    assert delta.transaction_version("twinlake.release") == 1
    assert (delta.protocol().min_reader_version, delta.protocol().reader_features) == (1, None)


def test_only_the_files_of_touched_windows_are_written_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "FILE_BYTES", 4_000)
    monkeypatch.setattr(changes, "SMALL_BYTES", 100)  # else so many small ones are written together
    stage.append(*range(0, 40_000, 40))  # 667 minutes
    path = stage.publish(SALES)
    stage.until_published(SALES)
    before = files_of(path)

    stage.append(7)
    stage.until_published(SALES)

    after = files_of(path)
    gone, came = before.keys() - after.keys(), after.keys() - before.keys()
    assert len(before) >= 4 and len(gone) == 1 and len(came) <= 2, (before, after)
    assert sum(after[name] for name in came) < sum(before.values()) / 2
    assert commits_of(path)[-1]["changed"] == 1
    assert stage.rows(SALES) == stage.view(SALES)


@pytest.mark.faults
def test_rows_that_the_watermark_has_passed_become_final_and_late_ones_amend_them(stage: Stage) -> None:
    stage.publish(SALES)
    stage.publish(VISITS)
    stage.until_published(SALES)
    stage.append(9_000, ordered_at=START + timedelta(days=2))
    for table in (SALES, VISITS):
        assert stage.until_published(table)["way"] == TOUCHED
        shown = stage.rows(table)
        assert {dict(row)["final"] for row in shown} == {True, False}
        assert shown == stage.view(table)

    stage.append(9_001, ordered_at=START)

    for table in (SALES, VISITS):
        assert stage.until_published(table)["way"] == TOUCHED
        assert stage.rows(table) == stage.view(table)


@pytest.mark.faults
def test_it_is_stopped_and_goes_on_and_a_restart_goes_on_too(stage: Stage) -> None:
    path = stage.publish(LATEST)
    stage.until_published(LATEST)
    assert stage.lake.do("publish", table=LATEST, stop=True)["state"] == "stopped"
    had = len(commits_of(path))
    stage.append(*range(10_000, 10_007))
    time.sleep(1)
    assert len(commits_of(path)) == had

    stage.publish(LATEST)
    assert stage.until_published(LATEST)["way"] == TOUCHED
    stage.restart()
    stage.append(*range(10_007, 10_009))

    assert stage.until_published(LATEST)["way"] == TOUCHED
    assert stage.rows(LATEST) == stage.view(LATEST)
    with pytest.raises(NotFoundError):
        stage.lake.do("publish", table=SALES, stop=True)
    with pytest.raises(NotFoundError):
        stage.lake.do("publish", table="unknown")


def delete_rows(path: Path) -> None:
    DeltaTable(str(path)).delete("customer = 'c1'")


def test_what_somebody_else_has_changed_is_put_right_and_a_deleted_folder_is_made_again(stage: Stage) -> None:
    path = stage.publish(LATEST)
    stage.until_published(LATEST)
    had = len(commits_of(path))
    delete_rows(path)
    stage.append(11_001)
    stage.until_published(LATEST)
    assert commits_of(path)[had]["way"] == ALL_KEYS
    assert stage.rows(LATEST) == stage.view(LATEST)

    shutil.rmtree(path)

    stage.append(11_002)
    assert stage.until_published(LATEST)["way"] == NEW
    assert stage.rows(LATEST) == stage.view(LATEST)


@pytest.mark.parametrize("meddle", [shutil.rmtree, delete_rows])
def test_what_somebody_else_changes_while_changes_are_computed_is_put_right(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[Path], None]
) -> None:
    path = stage.publish(LATEST)
    stage.until_published(LATEST)
    compute, meddled = Publisher._staged, list[int]()

    def computed(self: Publisher, *given: Any) -> Any:
        found = compute(self, *given)
        if self.table == LATEST and not meddled:
            meddled.append(1)
            meddle(path)
        return found

    monkeypatch.setattr(Publisher, "_staged", computed)
    stage.append(11_010 + stage.batches, customer="c2")

    wait_for("meddling", lambda: meddled or None, 60)
    wait_for("the rows of the view", lambda: put_right(stage) or None, 60)
    assert stage.until_published(LATEST)["error"] is None


def put_right(stage: Stage) -> bool:
    try:
        return stage.rows(LATEST) == stage.view(LATEST)
    except Exception:  # the engines have each their own, of a folder that is not there now
        return False


def test_new_records_do_not_wait_after_the_first_commit_as_changes_of_views_do(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "WHOLE_EVERY_S", 600.0)
    path = stage.publish(EVENTS)
    stage.until_published(EVENTS)
    shutil.rmtree(path)
    wait_for("the first commit", lambda: commits_of(path) or None, 60)
    assert commits_of(path)[-1]["way"] == NEW

    stage.append(11_100 + stage.batches)

    assert stage.until_published(EVENTS)["way"] == RECORDS


@pytest.mark.faults
def test_a_damaged_file_is_named_and_others_go_on(stage: Stage) -> None:
    path = stage.publish(LATEST)
    stage.publish(SALES)
    stage.until_published(LATEST)
    for name in files_of(path):
        (path / name).unlink()
    stage.append(12_001)

    error = stage.until_error(LATEST, DamagedError)

    assert error["file"].startswith(f"{path}/") and f"delete the folder {path}" in error["remedy"]
    assert stage.until_published(SALES)["error"] is None
    shutil.rmtree(path)
    stage.until_published(LATEST)
    assert stage.rows(LATEST) == stage.view(LATEST)


def test_what_fails_is_tried_again_by_itself_once_its_cause_is_gone(stage: Stage) -> None:
    path = stage.publish(LATEST)
    stage.until_published(LATEST)
    in_the_way = path / STAGED
    in_the_way.write_text("")
    stage.append(13_001)
    error = stage.until_error(LATEST, TwinlakeError)
    assert str(in_the_way) in error["why"]
    of = {"output": "published", "table": LATEST}
    batch = stage.batches - 1
    failing = scraped(stage)
    assert failing.value("twinlake_output_error", **of) == 1
    assert failing.value("twinlake_output_position", topic="orders", **of) == batch

    in_the_way.unlink()

    assert stage.until_published(LATEST)["state"] == "published"
    well = scraped(stage)
    assert well.value("twinlake_output_error", **of) == 0
    assert well.value("twinlake_output_position", topic="orders", **of) == batch + 1
    at = "twinlake_output_timestamp_seconds"
    assert (well.value(at, **of) or 0) > (failing.value(at, **of) or 0) > 0
    assert stage.rows(LATEST) == stage.view(LATEST)


def test_the_hourly_clean_up_deletes_what_commits_have_replaced_once_no_reader_can_need_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stage.publish(LATEST)
    stage.until_published(LATEST)
    stage.append(14_001, customer="c1")
    stage.append(14_002, customer="c1")
    stage.until_published(LATEST)
    needed, there = files_of(path), {one.name for one in path.glob("*.parquet")}
    replaced = there - {name.rpartition("/")[2] for name in needed}
    assert replaced
    stage.lake.do("maintain")
    assert {one.name for one in path.glob("*.parquet")} == there

    monkeypatch.setattr(maintain, "KEEP_COMMITS_S", 0)
    monkeypatch.setattr(maintain, "KEEP_FILES_HOURS", 0)
    stage.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    stage.lake.do("maintain")

    assert {one.name for one in path.glob("*.parquet")} == there - replaced
    assert stage.rows(LATEST) == stage.view(LATEST)


@pytest.mark.parametrize(
    "ahead", [{"release": 1_000}, {"position": {"orders": 1_000_000}}], ids=["release", "batch"]
)
def test_what_is_published_is_never_followed_by_what_was_before_it(
    stage: Stage, ahead: dict[str, Any]
) -> None:
    path = stage.publish(LATEST)
    stage.until_published(LATEST)
    stage.lake.do("publish", table=LATEST, stop=True)
    folder = Folder(path, LATEST)
    at = folder.position()
    assert at
    columns = folder.columns()
    further = replace(at, after=folder.newest, **ahead)
    folder.take([], further, removed=(), columns=columns, keys=(), breakpoint=lambda: None)
    had = len(commits_of(path))

    stage.publish(LATEST)
    error = stage.until_error(LATEST, BusyError)

    assert len(commits_of(path)) == had and f"delete {path}" in error["remedy"]
    shutil.rmtree(path)
    stage.until_published(LATEST)
    assert stage.rows(LATEST) == stage.view(LATEST)


@pytest.mark.faults
def test_a_swap_and_a_rollback_are_one_commit_each_and_no_reader_goes_back_or_sees_a_mixture(
    stage: Stage,
) -> None:
    path = stage.publish(SALES)
    stage.until_published(SALES)
    blue = stage.view(SALES)
    commits = len(commits_of(path))
    seen, ended = [], threading.Event()

    def read() -> None:
        while not ended.is_set():
            table = DeltaTable(str(path))
            at = (table.transaction_version("twinlake.release"), table.transaction_version("twinlake:orders"))
            seen.append((at, by_deltalake(path, table.version())))

    reader = threading.Thread(target=read)
    reader.start()
    release = stage.lake.promote(stage.lake.build(CHANGED))["release"]
    swapped = stage.until_published(SALES)
    green = stage.view(SALES)
    stage.lake.do("rollback", approved_by="tester")
    back = stage.until_published(SALES)
    ended.set()
    reader.join()

    assert (swapped["way"], back["way"]) == (ALL_KEYS, ALL_KEYS)
    assert [one["release"] for one in commits_of(path)[commits:]] == [release, release + 1]
    assert green != blue and stage.rows(SALES) == stage.view(SALES) == blue
    assert [at for at, _ in seen] == sorted(at for at, _ in seen)
    assert all(rows == (green if at[0] == release else blue) for at, rows in seen)


def test_a_column_that_not_every_engine_knows_is_refused_by_name() -> None:
    columns = StructType.fromDDL("a int, b array<struct<c: timestamp_ntz>>")

    with pytest.raises(UsageError, match="column b has the type timestamp_ntz"):
        refuse_types("t", columns)
