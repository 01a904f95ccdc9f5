"""For any pair of positions of its logs a Derived shows what the oracle does, stored or from the logs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.history import MemoryLog, Orders, version_of
from tests.laws.derived import BALANCE, ORDERS, PAID, RANKED, RETURNED, RETURNS, SPENT, balance, ranked
from tests.longer import some
from twinlake.base.job import Run
from twinlake.batch.merge import merge_small
from twinlake.batch.verify import verify
from twinlake.kinds.derived import Derived
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.maintained_version import LogView, MaintainedVersion, open_version
from twinlake.lake.catalog.version import Pin
from twinlake.lake.delta import delta
from twinlake.speed.advance import advance, close, standing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES, PAIRS = 6, 3


@dataclass
class Fed:
    """A stored version advanced by random cuts, its segments merged now and then, with its pins."""

    feed: MaintainedVersion
    pins: dict[int, Pin] = field(default_factory=dict)

    def advance(self, draw: random.Random) -> None:
        at = standing(self.feed)
        while at.position < self.feed.log.end():
            at = advance(self.feed, at, draw.randint(at.position + 1, self.feed.log.end()))
            if draw.random() < 0.5:
                at = close(self.feed, at)
                merge_small(self.feed, at.segment)
            self.pins[at.position] = Pin(
                version=self.feed.version, position={self.feed.topic: at.position},
                delta_version=delta.newest_version(self.feed.path),
            )  # fmt: skip


@dataclass
class Twin:
    """Two topics, a stored table of each, and views over both."""

    logs: dict[str, Any]
    fed: dict[str, Fed]
    views: dict[str, LogView]

    def records(self, topic: str, to: int) -> list[dict[str, Any]]:
        return [record for batch in self.logs[topic].batches[:to] for record in batch]

    def pin(self, table: Derived, orders: int, returns: int) -> Pin:
        at = {"orders": orders, "returns": returns}
        reads = {
            "spent": self.fed["spent"].pins[orders],
            "returned": self.fed["returned"].pins[returns],
            "paid": Pin(version=version_of(PAID), position={"orders": orders}),
        }
        if table is RANKED:
            reads["balance"] = self.pin(BALANCE, orders, returns)
        return Pin(version=self.views[table.name].version, position=at, reads=reads)

    def pairs(self, draw: random.Random) -> list[tuple[int, int]]:
        known = [sorted(self.fed[name].pins) for name in ("spent", "returned")]
        drawn = [(draw.choice(known[0]), draw.choice(known[1])) for _ in range(PAIRS)]
        return [*drawn, (known[0][0], known[1][-1])]


@pytest.fixture(scope="module")
def draw(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture(scope="module")
def twin(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, draw: random.Random) -> Twin:
    lake = tmp_path_factory.mktemp("derived")
    logs: dict[str, Any] = {topic.name: MemoryLog(spark, lake, topic) for topic in (ORDERS, RETURNS)}
    for number, log in enumerate(logs.values()):
        orders = Orders(draw.randrange(10**6) + number)
        for _ in range(BATCHES):
            log.append(orders.batch(draw.randint(1, 12)))
    fed = {table.name: Fed(feed_of(lake, table, logs)) for table in (SPENT, RETURNED)}
    for one in fed.values():
        one.advance(draw)
    reads: dict[str, Any] = {name: one.feed for name, one in fed.items()}
    for table in (PAID, BALANCE, RANKED):
        version = version_of(table)
        topics = table.inputs or tuple(logs)
        mine = {name: reads[name] for name in table.reads}
        view = LogView(
            version=version, definition=table, logs={name: logs[name] for name in topics}, reads=mine
        )
        reads[table.name] = view
    views = {name: one for name, one in reads.items() if isinstance(one, LogView)}
    return Twin(logs=logs, fed=fed, views=views)


def feed_of(lake: Path, table: Any, logs: dict[str, Any]) -> MaintainedVersion:
    opened = open_version(lake, version_of(table), logs)
    assert isinstance(opened, MaintainedVersion)
    return opened


@pytest.mark.parametrize("computed", some([False, True]), ids=["stored", "from the logs"])
def test_at_any_pair_of_positions_it_shows_what_the_oracle_does(
    twin: Twin, draw: random.Random, computed: bool
) -> None:
    for orders, returns in twin.pairs(draw)[-2 if computed else 0 :]:
        records = twin.records("orders", orders), twin.records("returns", returns)
        for table, oracle in ((BALANCE, balance), (RANKED, ranked)):
            view = twin.views[table.name]
            shown = (view.computed if computed else view).view(twin.pin(table, orders, returns)).collect()

            assert {row[0]: tuple(row[1:]) for row in shown} == oracle(*records), (
                table.name,
                orders,
                returns,
            )


@pytest.mark.faults
def test_its_certificate_is_equal_and_a_changed_table_below_makes_it_unequal(
    spark: SparkSession, twin: Twin
) -> None:
    """Two levels up, too; what is told are rows of the view."""
    spent = twin.fed["spent"]
    end, ends = max(spent.pins), max(twin.fed["returned"].pins)
    before = verify(twin.views["ranked"], twin.pin(RANKED, end, ends), Run(id="v"), "2026")
    some = next(iter(balance(twin.records("orders", end), [])))
    assert before.equal and before.rows_compared == len(
        balance(twin.records("orders", end), twin.records("returns", ends))
    )
    feed = spent.feed
    spark.sql(f"UPDATE delta.`{feed.path}` SET spent__sum = spent__sum + 0.01 WHERE customer = '{some}'")
    spent.pins[end] = Pin(
        version=feed.version, position={"orders": end}, delta_version=delta.newest_version(feed.path)
    )

    found = {
        table.name: verify(twin.views[table.name], twin.pin(table, end, ends), Run(id="v"), "2026")
        for table in (BALANCE, RANKED)
    }

    assert [one.equal for one in found.values()] == [False, False]
    (told,) = found["balance"].differences
    assert (told["key"], told["cause"], told["columns"]) == ({"customer": some}, "inputs_differ", ["rest"])
    assert told["speed"]["rest"] != told["batch"]["rest"]


@pytest.mark.parametrize(
    ("columns", "sql"),
    [
        (("customer", "of_all"), "SELECT customer, (SELECT count(*) FROM spent) AS of_all FROM spent"),
        (("customer", "share"), "SELECT customer, spent / sum(spent) OVER () AS share FROM spent"),
    ],
    ids=["a count of all", "a share of all"],
)
def test_rows_that_depend_on_others_than_by_says_make_its_certificate_unequal(
    twin: Twin, columns: tuple[str, ...], sql: str
) -> None:
    """They change with rows of the others, for which a changelog would not look at them."""
    end, ends = max(twin.fed["spent"].pins), max(twin.fed["returned"].pins)
    promised = Derived(
        name="promised", reads=("spent",), columns=columns, keys=("customer",), by=("customer",), sql=sql
    )

    def certificate(table: Derived) -> Certificate:
        view = LogView(
            version=version_of(table), definition=table, logs=twin.views["balance"].logs,
            reads={"spent": twin.fed["spent"].feed},
        )  # fmt: skip
        reads = {"spent": twin.fed["spent"].pins[end]}
        pin = Pin(version=view.version, position={"orders": end, "returns": ends}, reads=reads)
        return verify(view, pin, Run(id="v"), "2026")

    wrong, right = certificate(promised), certificate(replace(promised, by=()))

    assert (wrong.equal, right.equal, wrong.rows_compared) == (False, True, right.rows_compared)
    assert {told["cause"] for told in wrong.differences} == {"depends_on_others"}
    assert {tuple(told["columns"]) for told in wrong.differences} == {columns[1:]}


def test_keys_that_do_not_identify_a_row_make_its_certificate_unequal(twin: Twin) -> None:
    end, ends = max(twin.fed["spent"].pins), max(twin.fed["returned"].pins)
    wrong = Derived(
        name="wrong", reads=("spent",), columns=("one", "customer"), keys=("one",), by=(),
        sql="SELECT 1 AS one, customer FROM spent",
    )  # fmt: skip
    view = LogView(
        version=version_of(wrong), definition=wrong, logs=twin.views["balance"].logs,
        reads={"spent": twin.fed["spent"].feed},
    )  # fmt: skip
    reads = {"spent": twin.fed["spent"].pins[end]}
    pin = Pin(version=view.version, position={"orders": end, "returns": ends}, reads=reads)

    found = verify(view, pin, Run(id="v"), "2026")

    customers = len(balance(twin.records("orders", end), []))
    assert (found.equal, found.differing, found.rows_compared) == (False, 1, customers)
    assert found.differences[0]["key"] == {"one": 1}
    assert (found.differences[0]["cause"], found.differences[0]["speed"]) == (
        "key_given_twice", {"rows": customers},
    )  # fmt: skip
