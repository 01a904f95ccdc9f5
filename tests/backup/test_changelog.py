"""A changelog that was sent further than a backup: once the restored lake has caught up, who reads all of the
topic holds what the view shows, and was shown nothing in between that it never showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.changelog.reader import Reader
from tests.demo.story import CHANGED as SALES
from tests.kill.server import LakeProcess, lake_process
from tests.kill.test_changelog import MEASURES, TOPIC, Told
from tests.kill.views import Views, differences
from twinlake.backup.archive import Archive, Backup
from twinlake.backup.restore import restore
from twinlake.backup.take import take
from twinlake.base.breakpoints import Point
from twinlake.base.job import Run
from twinlake.changelog.changes import CONTENT
from twinlake.config.settings import Settings
from twinlake.difference.changed import TOUCHED

pytestmark = pytest.mark.faults
RUN = Run(id="test")
RECORDS, FURTHER, LONG_S = 500, 5, 300.0


@pytest.fixture
def told(tmp_path: Path, seed: int) -> Iterator[Told]:
    with lake_process(tmp_path / "old", seed) as server:
        server.start()
        server.produce(RECORDS)
        server.until(server.caught_up)
        server.release()
        yield Told(server, Reader(server.broker.login, server.services.registry_url, TOPIC))


@pytest.mark.parametrize(
    ("point", "is_in_backup"), [(Point.BEFORE_CHANGES, True), (Point.AFTER_CHANGES, False)]
)
def test_what_was_sent_since_the_backup_is_followed_by_what_the_restored_lake_shows(
    told: Told, point: Point, is_in_backup: bool, spark: SparkSession, tmp_path: Path
) -> None:
    """The old server is killed at a transaction, committed or not, and more records come while none runs. A
    changelog that the backup does not have is started again by hand."""
    server, archive = told.server, Archive(tmp_path / "backups")
    if is_in_backup:
        server.do("changelog", table=SALES, topic=TOPIC)
        told.until_told()
    backup = take(Settings(home=server.home), archive.folder, RUN)
    if not is_in_backup:
        server.do("changelog", table=SALES, topic=TOPIC)
    for _ in range(FURTHER):
        server.produce(RECORDS)
        told.until_told()
    server.stop_at(point)
    server.produce(RECORDS)
    server.until_stopped_at(point)
    server.kill()
    server.produce(RECORDS)
    sent, held = told.reader.positions(), told.reader.table()
    last = _batch(sent[-1])
    assert told.wrong() == {} and last > backup.logs["orders"] + 1

    _start_restored(server, archive, backup)
    server.until(server.caught_up, LONG_S)
    if not is_in_backup:
        assert server.client.status()["changelogs"] == []
        server.do("changelog", table=SALES, topic=TOPIC)
    server.until(lambda: _status(server)["error"] is not None)
    refused = _status(server)["error"]["what"]
    assert refused.endswith("is behind what its changelog has sent"), refused
    assert told.reader.positions() == sent and told.reader.table() == held, "it waits with what was sent"
    while server.client.status()["topics"][0]["batch"] < last:
        server.produce(RECORDS)
        server.until(server.caught_up)
    server.until(lambda: _status(server)["way"] == CONTENT)  # though the batch has the number that was sent
    told.until_told()

    server.produce(RECORDS)
    told.until_told()
    assert _status(server)["way"] == TOUCHED
    positions = told.reader.positions()
    assert positions[: len(sent)] == sent and len(positions) >= len(sent) + 2
    assert told.wrong(since=len(sent)) == {}
    views = Views(spark, server.lake)
    try:
        assert differences(server, views, without_cancelled=False) == {}
        shown = views.rows(f"SELECT * FROM serve.{SALES}")
    finally:
        views.close()
    assert _by_key(told.reader.table().values()) == _by_key(shown)


def _start_restored(server: LakeProcess, archive: Archive, backup: Backup) -> None:
    """In another folder, over the same Kafka."""
    server.home = server.home.with_name("again")
    server.lake, server.breakpoints = server.home / "lake", server.home / "breakpoints"
    restore(archive, backup, server.home, server.home / "lake", RUN)
    replace(server.services, lake=str(server.lake)).save(server.home / "services.json")
    server.start(LONG_S)


def _by_key(rows: Iterable[dict[str, Any]]) -> dict[tuple[str, datetime], tuple[Any, ...]]:
    return {
        (row["region"], row["window_start"].astimezone(UTC)): tuple(row[name] for name in MEASURES)
        for row in rows
    }


def _status(server: LakeProcess) -> dict[str, Any]:
    (found,) = server.client.status()["changelogs"]
    return found


def _batch(position: dict[str, Any]) -> int:
    return int(position["pin"]["position"]["orders"])
