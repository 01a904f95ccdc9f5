"""What a table tells of time that reads tables which are at different positions of one topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kill.views import Views
from tests.project import OURS
from twinlake.kinds.events import Events
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.kind import is_stored
from twinlake.kinds.store import Store
from twinlake.lake import formats
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.version import Version
from twinlake.lake.delta import delta
from twinlake.lake.log.log import Log
from twinlake.reading.watermarks import META, watermark_name
from twinlake.topics.topic import load_topic

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
EARLY, LATE = NOON + timedelta(minutes=5), NOON + timedelta(hours=9)
ASKS = Events(
    name="asks", inputs=("orders",), columns={"customer": "customer", "at": "ordered_at"},
    store=Store(keys=("customer",), on="at", cell="1 hour"),
)  # fmt: skip
HITS = replace(ASKS, name="hits", where="status = 'paid'")
NEAR = IntervalJoin(name="near", left="asks", right="hits", on=("customer",), columns={"hit_at": "right.at"})
STORED = (ASKS, HITS)


class Joined:
    """A lake with one release: two tables with a row each, and what joins them."""

    def __init__(self, spark: SparkSession, lake: Path) -> None:
        self.spark = spark
        formats.acquire(lake)
        self.views = Views(spark, lake)
        log = Log(spark, lake, load_topic("orders", OURS))
        log.open()
        event = ("e", 1, "c", "r", "paid", Decimal(1), NOON)
        row = (0, 0, 0, NOON, 1, b"k", b"v", None, 1, event, "valid", [], False, "1.0.0", False, 1, NOON)
        logged = spark.createDataFrame([row], log.ddl)
        delta.append(logged, log.path, "test", 1, {"kind": "batch", "batch": 1, "schemas": {}})
        names = {}
        for table in (*STORED, NEAR):
            version = Version(
                table=table.name, fingerprint="f" * 12, build=1, definition=table.to_json(),
                topics=("orders",), contracts={}, created_at="",
                reads={name: names[name] for name in table.reads},
            )  # fmt: skip
            version.save(lake)
            names[table.name] = version.name
        self.paths = {table.name: lake / "tables" / table.name / names[table.name] for table in STORED}
        for table in STORED:
            assert is_stored(table)
            states = table.partial(log.rows(0, 1)).selectExpr("*", "0 AS _segment")
            delta.append(states, self.paths[table.name], "rows", 1, {"kind": "rows"}, ("_segment",))
        release_log.commit(
            lake, Release(number=1, kind="initial", tables=names, created_at="", approved_by="me")
        )
        self.meta = f"{META}.{watermark_name('near', names['near'], 'orders')}"
        self._steps = 0

    def step(self, table: str, watermark: datetime | None) -> None:
        """The table's newest commit tells this watermark."""
        self._steps += 1
        none = self.spark.read.format("delta").load(str(self.paths[table])).limit(0)
        told = {"kind": "step", "watermark": watermark and int(watermark.timestamp() * 1_000_000)}
        delta.append(none, self.paths[table], "steps", self._steps, told, ("_segment",))

    def told(self) -> tuple[datetime | None, bool]:
        """The watermark of the join, and whether its row is final."""
        self.views.follow()
        ((watermark,), (final,)) = (
            self.views.rows(f"SELECT {column} AS one FROM {relation}")[0].values()
            for column, relation in (("watermark", self.meta), ("final", "serve.near"))
        )
        return watermark and watermark.astimezone(UTC), final


@pytest.fixture(scope="module")
def joined(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Joined]:
    made = Joined(spark, tmp_path_factory.mktemp("joined") / "lake")
    yield made
    made.views.close()


@pytest.mark.parametrize("first", [0, 1], ids=["the left one is ahead", "the right one is ahead"])
def test_a_joined_row_is_as_final_as_the_table_below_that_is_furthest_behind(
    joined: Joined, first: int
) -> None:
    ahead, behind = (STORED[one].name for one in (first, 1 - first))
    joined.step(ahead, LATE)

    joined.step(behind, None)
    assert joined.told() == (None, False)
    joined.step(behind, EARLY)
    assert joined.told() == (EARLY, False)
    joined.step(behind, LATE)
    assert joined.told() == (LATE, True)
