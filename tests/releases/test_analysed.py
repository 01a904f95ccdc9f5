"""A plan analyses what changed and what reads it, and knows the rest, over restarts too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.project import OURS
from tests.releases.lake import Lake
from tests.releases.promised import project_of
from tests.releases.test_derived import BEST, BUYERS, NEWEST, PAID, PROMISED, SPENT
from tests.written_log import write_batch
from twinlake.kinds.kind import Kind
from twinlake.lake.log.log import Log
from twinlake.releases import analysed, history
from twinlake.topics.topic import load_topic

TABLES: dict[str, Kind] = {one.name: one for one in (SPENT, NEWEST, BUYERS, BEST)}


class Plans:
    """A lake server, and what its last plan did: the tables that were analysed."""

    def __init__(self, spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark, self._folder = spark, folder
        self.project = project_of(folder / "project", PROMISED)
        self.analysed: list[str] = []
        analyse = analysed.analyse

        def noted(table: Kind, *given: Any) -> None:
            self.analysed.append(table.name)
            analyse(table, *given)

        monkeypatch.setattr(analysed, "analyse", noted)

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        made = Lake(self._spark, self._folder / "home", project=self.project)
        try:
            yield made
        finally:
            made.stop()

    def plan(self, lake: Lake, tables: dict[str, Kind]) -> list[str]:
        """What was analysed for it."""
        self.analysed = []
        lake.plan(tables)
        return self.analysed


def test_only_what_is_new_to_the_lake_is_analysed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans, paid = Plans(spark, tmp_path, monkeypatch), {**TABLES, "spent": PAID}
    with plans.lake() as lake:
        assert sorted(plans.plan(lake, TABLES)) == sorted(TABLES)
        assert plans.plan(lake, TABLES) == []
        assert plans.plan(lake, paid) == ["spent", "buyers", "best"]
        best = replace(BEST, sql=f"{BEST.sql} AND place > 0")
        assert plans.plan(lake, {**TABLES, "best": best}) == ["best"]
        assert plans.plan(lake, paid) == []
    contract = plans.project / "contracts" / "orders.yaml"
    text = contract.read_text()
    contract.write_text(text.replace("value: 3 hours", "value: 4 hours"))
    with plans.lake() as lake:
        assert sorted(plans.plan(lake, TABLES)) == sorted(TABLES)
    contract.write_text(text)
    with plans.lake() as lake:
        assert plans.plan(lake, paid) == []


def test_how_far_a_log_reaches_back_is_found_in_the_first_batches_that_have_every_partition(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(spark, tmp_path / "lake", load_topic("orders", OURS))
    log.open()
    empty = history.history(log)
    for batch in range(1, 5):
        beside = {"offset": f"{5 * batch} + id"}
        if batch == 4:
            beside = {"partition": "1", "offset": "12 + id"}
        write_batch(log, 5, beside)
    told, all_batches, read = log.metadata(), log.all, list[int]()
    monkeypatch.setattr(log, "all", lambda after, to: read.append(to) or all_batches(after, to))

    def with_ends(**ends: int) -> history.History:
        read.clear()
        monkeypatch.setattr(log, "metadata", lambda: {**told, "ends": {"0": ends}})
        return history.history(log)

    one, two = with_ends(**{"0": 20}), (with_ends(**{"0": 20, "1": 17}), read.copy())

    assert (empty.records, empty.why) == (0, "the log is empty")
    assert (one.records, one.complete) == (20, False) and one.bytes > 0
    assert one.why == "the log begins later than the topic: partition 0 from offset 5"
    assert two[1] == [1, 4]
    assert two[0].why == (
        "the log begins later than the topic: partition 0 from offset 5, partition 1 from offset 12"
    )
