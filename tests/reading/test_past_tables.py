"""Tables as they were: of every kind, at every position of a drawn history, pinned and from the log."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.history import LATEST, SALES, latest, sales, version_of
from tests.project import OURS
from tests.written_log import write_batch
from twinlake.base.errors import NotFoundError, UsageError
from twinlake.kinds.derived import Derived
from twinlake.kinds.events import Events
from twinlake.kinds.kind import Kind, is_stored
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.sessions import Sessions
from twinlake.kinds.store import Store
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.maintained_version import MaintainedVersion, open_version
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.log.log import Log
from twinlake.reading.past_tables import PastTables
from twinlake.speed.advance import Standing, advance
from twinlake.topics.topic import load_topic

BATCHES = 4
ADDED = datetime(2026, 1, 31, 12, 0, 2, tzinfo=UTC)
"""Batch n was added n minutes later."""
NOW = datetime(2026, 2, 1, tzinfo=UTC)
COLUMNS = {"customer": "customer", "at": "ordered_at", "amount": "amount"}
VISITS = Sessions(
    name="visits", inputs=("orders",), columns=COLUMNS, keys=("customer",), on="at", gap="2 minutes",
    measures={"n": Count()},
)  # fmt: skip
KEPT = Events(
    name="kept", inputs=("orders",), columns=COLUMNS, store=Store(keys=("customer",), on="at", cell="1 hour")
)
PAID = Events(name="paid", inputs=("orders",), columns=COLUMNS, where="status = 'paid'")
SHARES = Derived(
    name="shares", reads=("sales_per_region", "paid"), columns=("region", "orders", "paid"), keys=("region",),
    by=("region",),
    sql="SELECT region, sum(orders) AS orders, max((SELECT count(*) FROM paid)) AS paid "
    "FROM sales_per_region GROUP BY region",
)  # fmt: skip
LATELY = Rolling(name="lately", of="sales_per_region", last=("3 minutes",))
TABLES: tuple[Kind, ...] = (SALES, LATEST, VISITS, KEPT, PAID, SHARES, LATELY)


class History:
    """A lake with a log of a few batches, a release of every kind, its versions advanced in drawn steps."""

    def __init__(self, spark: SparkSession, lake: Path, seed: int, tables: Sequence[Kind] = TABLES) -> None:
        self.spark, self.lake, draw = spark, lake, random.Random(seed)
        formats.acquire(lake)
        self.log = Log(spark, lake, load_topic("orders", OURS))
        for batch in range(BATCHES):
            salt = draw.randrange(1, 10**6)
            write_batch(
                self.log, draw.randrange(5, 30),
                customer=f"concat('c', pmod(hash(id, {salt}), 6))",
                region=f"element_at(array('north', 'south', 'east'), pmod(hash(id, {salt + 1}), 3) + 1)",
                status=f"element_at(array('paid', 'pending'), pmod(hash(id, {salt + 2}), 2) + 1)",
                ordered_at=f"timestamp_seconds(1769860800 + 60 * {batch} - pmod(hash(id, {salt + 3}), 300))",
            )  # fmt: skip
        self.versions: dict[str, Version] = {}
        self.stood: dict[str, set[int]] = {}
        for table in tables:
            version = replace(
                version_of(table), topics=("orders",),
                reads={name: self.versions[name].name for name in table.reads},
            )  # fmt: skip
            version.save(lake)
            self.versions[table.name] = version
            if is_stored(table):
                self.stood[table.name] = self._advanced(version, draw)
        self.past = PastTables(spark, lake, lambda: NOW)
        self.release(1, "2026-01-31T12:00:30Z")

    def _advanced(self, version: Version, draw: random.Random) -> set[int]:
        """The positions at which it stood, some of them left out by longer steps."""
        feed = open_version(self.lake, version, {"orders": self.log})
        assert isinstance(feed, MaintainedVersion)
        at, stood = Standing(), set()
        for to in sorted({*draw.sample(range(1, BATCHES), 2), BATCHES}):
            at = advance(feed, at, to)
            stood.add(to)
        return stood

    def release(self, number: int, created_at: str, **position: int) -> None:
        release_log.commit(self.lake, Release(
            number=number, kind="promote", created_at=created_at, approved_by="me",
            tables={name: version.name for name, version in self.versions.items()},
            positions={name: position for name in self.versions if position},
        ))  # fmt: skip

    def told(self, as_of: str, *tables: str) -> dict[str, Any]:
        _, told = self.past._made(as_of, " ".join(f"serve.{name}" for name in tables or self.versions))
        return told

    def rows(self, as_of: str, table: str) -> tuple[list[Any], bool]:
        """What the view shows, all but what follows clocks, and whether it was computed from the log."""
        schema, told = self.past._made(as_of, f"serve.{table}")
        kind = next(one for one in TABLES if one.name == table)
        bound = kind.bound({one.name: one for one in TABLES})
        found = self.spark.table(f"{schema}.{table}").select(*bound.timeless).collect()
        return sorted(map(repr, found)), bool(told["computed"])

    def records(self, to: int) -> list[dict[str, Any]]:
        rows = self.log.rows(0, to).collect()
        return [{**row.asDict(), "ordered_at": row["ordered_at"].astimezone(UTC)} for row in rows]


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[History]:
    yield History(spark, tmp_path_factory.mktemp("past") / "lake", seed)


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> History:
    """Of a table that stores nothing, and one that does."""
    return History(spark, tmp_path_factory.mktemp("small") / "lake", 1, (PAID, LATEST))


@pytest.mark.faults
def test_a_table_of_every_kind_is_the_same_pinned_and_computed_from_the_log(history: History) -> None:
    positions = [f"position:orders={batch}" for batch in range(1, BATCHES + 1)]
    kept = {(table, at): history.rows(at, table) for table in history.versions for at in positions}
    away = history.lake / "tables_away"
    for table in history.stood:  # as if all their commits, and files, were gone
        path = history.versions[table].path(history.lake)
        shutil.move(path, away / table)

    try:
        computed = {(table, at): history.rows(at, table) for table in history.versions for at in positions}
    finally:
        for table in history.stood:
            shutil.move(away / table, history.versions[table].path(history.lake))

    for key, (rows, _) in kept.items():
        assert rows == computed[key][0], key
    for table, stood in history.stood.items():
        pinned = {at for at in range(1, BATCHES + 1) if not kept[table, f"position:orders={at}"][1]}
        assert pinned == stood
        assert all(computed[table, at][1] for at in positions)


@pytest.mark.faults
def test_every_position_shows_what_the_oracle_makes_of_the_records_up_to_it(history: History) -> None:
    for batch in range(1, BATCHES + 1):
        schema, _ = history.past._made(
            f"position:orders={batch}", "serve.sales_per_region, serve.latest_order"
        )
        records = history.records(batch)
        regions = {
            (row["region"], row["window_start"].astimezone(UTC)): (
                row["sales"], row["orders"], row["smallest"], row["largest"], row["customers"]
            )
            for row in history.spark.table(f"{schema}.sales_per_region").collect()
        }  # fmt: skip
        newest = {
            row["customer"]: (row["order_id"], row["status"])
            for row in history.spark.table(f"{schema}.latest_order").collect()
        }

        assert regions == sales(records) and newest == latest(records)


def test_a_time_is_the_last_batch_that_had_been_added_and_the_release_that_was_live(small: History) -> None:
    just, before = ADDED + timedelta(minutes=3), ADDED + timedelta(minutes=3, seconds=-1)

    found = [small.told(moment.isoformat(), "paid") for moment in (just, before)]

    assert [one["position"] for one in found] == [{"orders": 3}, {"orders": 2}]
    assert [one["release"] for one in found] == [1, 1]


def test_the_live_release_is_where_all_of_its_tables_are(small: History) -> None:
    assert small.told("release:1") == {"release": 1, "position": {"orders": BATCHES}, "computed": []}


@pytest.mark.parametrize(
    ("as_of", "error", "says"),
    [
        ("release:9", NotFoundError, "there is no release 9"),
        ("release:0", UsageError, "is not a point in time"),
        ("position:orders=5", UsageError, "no batch 5 yet"),
        ("position:orders=1,orders=2", UsageError, "names a topic once"),
        ("position:payments=1", UsageError, "tells no position of orders"),
        ("position:orders=0", UsageError, "is not a point in time"),
        ("", UsageError, "is not a point in time"),
        ("2026-02-01T00:00:01Z", UsageError, "in the future"),
        ("2026-01-31T12:00:29Z", UsageError, "nothing had been released"),
        ("2026-01-31T12:00:31Z", UsageError, "was empty"),
        ("yesterday", UsageError, "is not a point in time"),
    ],
)
def test_a_moment_that_is_none_or_was_not_is_refused_in_words(
    small: History, as_of: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as raised:
        small.told(as_of, "paid")

    assert says in str(raised.value) and "Do:" in str(raised.value)


def test_a_release_is_read_where_the_next_one_superseded_it(spark: SparkSession, tmp_path: Path) -> None:
    history = History(spark, tmp_path / "lake", 1, (PAID,))
    history.release(2, "2026-01-31T12:03:00Z", orders=3)

    assert history.told("release:1", "paid") == {"release": 1, "position": {"orders": 3}, "computed": []}
    assert history.told("2026-01-31T12:03:30Z", "paid")["release"] == 2


def test_a_moment_that_is_looked_for_holds_up_no_other(
    small: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, found = threading.Event(), threading.Event()

    def clock() -> datetime:
        if not looking.is_set():
            looking.set()
            assert found.wait(60)
        return NOW

    monkeypatch.setattr(small.past, "clock", clock)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(small.told, "position:orders=2", "paid")
        assert looking.wait(60)
        quick = threads.submit(small.told, "position:orders=3", "paid")
        try:
            told = quick.result(60)
        finally:
            found.set()

    assert told["position"] == {"orders": 3}
    assert slow.result()["position"] == {"orders": 2}
