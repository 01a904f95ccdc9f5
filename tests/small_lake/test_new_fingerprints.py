"""Versions of an older lake get the fingerprints of today's formula, and keep their names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.project import project_in
from tests.small_lake.small import unpack
from tests.small_lake.test_small_lake import CHANGED_SINCE
from tests.world import Killed
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.made_with import store_schemas
from twinlake.lake.catalog.new_fingerprints import store_fingerprints
from twinlake.lake.catalog.version import Version, stored_versions
from twinlake.lake.log.log import Log
from twinlake.lake.storage import store
from twinlake.topics.topic import load_topic, topic_names

pytestmark = [pytest.mark.services, pytest.mark.faults]

Named = dict[tuple[str, str], Version]


def versions(lake: Path) -> Named:
    return {(one.table, one.name): one for one in stored_versions(lake)}


def killed_after(writes: int, write: Callable[..., None]) -> Callable[..., None]:
    def counted(*given: object) -> None:
        nonlocal writes
        if not writes:
            raise Killed
        writes -= 1
        write(*given)

    return counted


def test_versions_get_new_fingerprints_over_any_kill_and_lose_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = unpack(0, tmp_path)
    formats.acquire(lake)
    sources = Settings(home=tmp_path, in_project=project_in(tmp_path / "project")).sources
    logs = {name: Log(spark, lake, load_topic(name, *sources)) for name in topic_names(*sources)}
    for log in logs.values():
        log.open()
    store_schemas(lake, logs)
    before = versions(lake)
    assert {one.formula for one in before.values()} == {1}

    with monkeypatch.context() as killing:
        killing.setattr(store, "replace", killed_after(3, store.replace))
        with pytest.raises(Killed):
            store_fingerprints(lake, logs)
    half = versions(lake)
    store_fingerprints(lake, logs)
    after = versions(lake)

    assert half.keys() == after.keys() == before.keys()
    assert sorted(one.formula for one in half.values()) == [1] * (len(before) - 3) + [2] * 3
    assert {one.formula for one in after.values()} == {2}
    live = release_log.live(lake)
    assert live
    renamed = {key for key, one in after.items() if one.fingerprint != before[key].fingerprint}
    assert {(table, name) for table, name in live.tables.items() if table not in CHANGED_SINCE} <= renamed
    assert not [key for key in renamed if key[0] in CHANGED_SINCE]  # what they mean is another thing now
    files = sorted(path.name for path in (lake / "tables").glob("*/*.json"))
    assert files == sorted(f"{name}.json" for _, name in before)
    stored = json.loads(next((lake / "tables").glob("*/*.json")).read_text())
    assert stored["version"] == stored["first_name"]
