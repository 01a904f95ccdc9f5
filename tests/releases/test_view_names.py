"""No table has the name of a view that readers have without a definition, and no new topic takes one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.tables import latest_order, sales_per_region
from tests.history import version_of
from tests.ingest.fed import contract_of
from tests.project import OURS
from twinlake.definitions.loader import Loaded
from twinlake.kinds.aggregate import Aggregate
from twinlake.lake.log import active_topics
from twinlake.releases import check as module
from twinlake.releases.check import check
from twinlake.releases.stranded import stranded
from twinlake.topics.topic import json_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES: Aggregate = sales_per_region.TABLE
SHAPE = contract_of(
    "shop", [{"name": "at", "logicalType": "timestamp", "physicalType": "timestamp", "required": True}],
    format="json",
)  # fmt: skip


@pytest.mark.parametrize(
    ("table", "refused"),
    [(SALES, True), (replace(SALES, window=None), False), (latest_order.TABLE, False)],
    ids=["with windows", "without", "of another kind"],
)
def test_a_table_named_like_the_view_of_what_came_late_is_refused_at_its_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: Aggregate, refused: bool
) -> None:
    other = replace(SALES, name=f"{table.name}_LATE", window=None, place=SALES.place)
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=(table, other)))

    found = [str(problem) for problem in check([OURS], lambda: spark).problems]

    why = f"it has the name of the view of what came late for {table.name}"
    assert [problem.split(": ")[0] for problem in found if why in problem] == (
        [f"jobs/tables/sales_per_region.py:{SALES.place.line}"] if refused and SALES.place else []
    )


@pytest.mark.parametrize("view", ["orders_valid", "orders_quarantine", "ORDERS_replayed"])
def test_a_table_named_like_a_view_of_a_topic_is_refused_at_its_line(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    other = replace(SALES, name=view, window=None, place=SALES.place)
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=(SALES, other)))

    found = [str(problem) for problem in check([OURS], lambda: spark).problems]

    why = f"it has the name of a view that every release has of topic orders, {view.lower()}"
    assert SALES.place and [problem.split(": ")[0] for problem in found if why in problem] == [
        f"jobs/tables/sales_per_region.py:{SALES.place.line}"
    ]  # fmt: skip


def test_a_table_named_like_a_view_of_a_topic_that_the_lake_alone_knows_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    active_topics.publish(tmp_path, json_topic("shop.events", SHAPE))
    other = replace(SALES, name="shop_events_valid", window=None, place=SALES.place)
    monkeypatch.setattr(module, "load", lambda *_: Loaded(tables=(other,)))

    found = [str(problem) for problem in check([OURS], lambda: spark, lake=tmp_path).problems]

    assert any("a view that every release has of topic shop.events" in problem for problem in found)


def no_spark() -> SparkSession:
    raise AssertionError("nothing is worth analysing")


def test_a_new_topic_whose_views_have_the_names_of_others_is_refused(tmp_path: Path) -> None:
    active_topics.publish(tmp_path, json_topic("shop_events", SHAPE))
    topics = {name: json_topic(name, SHAPE) for name in ("shop_events", "shop.events", "New-a", "new.a", "b")}

    found = list(stranded(tmp_path, topics, no_spark))

    why = "its views would be {0}_valid, {0}_quarantine, {0}_replayed, which are those of topic {1}"
    assert [(one.topic, one.why) for one in found] == [
        ("new.a", why.format("new_a", "New-a")), ("shop.events", why.format("shop_events", "shop_events"))
    ]  # fmt: skip


def test_a_new_topic_whose_view_has_the_name_of_a_live_table_is_refused_with_an_order_of_steps(
    tmp_path: Path,
) -> None:
    version = version_of(replace(SALES, name="shop_VALID"))
    version.save(tmp_path)
    topics = {"shop": json_topic("shop", SHAPE)}

    (found,) = stranded(tmp_path, topics, no_spark)

    assert (
        found.why == "its view would be shop_valid, the name of table shop_VALID (built, in no release yet)"
    )
    assert found.steps.index("release the rows of shop_VALID") < found.steps.index("twinlake retire --keep 1")
    active_topics.publish(tmp_path, topics["shop"])  # a lake of before: the topic goes on
    assert list(stranded(tmp_path, topics, no_spark)) == []
