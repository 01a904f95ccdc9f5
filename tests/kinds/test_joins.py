"""What kept rows and the kinds over them promise beside their rows, which the laws ask about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.definitions.test_without_spark import typed
from tests.history import START, MemoryLog, Orders
from tests.world import World
from twinlake.base.errors import DefinitionError
from twinlake.kinds.aggregate import Aggregate
from twinlake.kinds.as_of_join import AsOfJoin
from twinlake.kinds.definition import Definition
from twinlake.kinds.dependencies import unknown
from twinlake.kinds.events import Events
from twinlake.kinds.evidence import SEGMENT
from twinlake.kinds.interval_join import IntervalJoin
from twinlake.kinds.join import Join
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.measures.counts import Count
from twinlake.kinds.measures.extremes import Max
from twinlake.kinds.rolling import Rolling
from twinlake.kinds.row_local import refused
from twinlake.kinds.store import Store
from twinlake.kinds.windows import Tumbling, Windows
from twinlake.spark.prepared_plan import ArrowFile, PreparedPlan, computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOUR = timedelta(hours=1)
COLUMNS = {"customer": "customer", "at": "ordered_at", "amount": "amount", "status": "status"}
STORE = Store(keys=("customer",), on="at", cell="1 hour")
ASKS = Events(name="asks", inputs=("orders",), columns=COLUMNS, store=STORE)
HITS = replace(ASKS, name="hits", where="amount > 10", store=replace(STORE, back="20 minutes"))
NEAR = IntervalJoin(
    name="near", left="asks", right="hits", on=("customer",), how="left", after="20 minutes",
    columns={"asked_at": "left.at", "hit_at": "right.at", "amount": "right.amount"},
)  # fmt: skip
AS_OF = AsOfJoin(
    name="as_of", left="asks", right="hits", on=("customer",), delete_when="status = 'cancelled'",
    columns={"asked_at": "left.at", "amount": "right.amount"},
)  # fmt: skip
SUMS = Aggregate(
    name="sums", inputs=("orders",), columns=COLUMNS, keys=("customer",),
    window=Tumbling(on="at", size="1 minute"), measures={"n": Count()},
)  # fmt: skip
ROLLING = Rolling(name="rolling", of="sums", last=("5 minutes",))
TABLES: dict[str, Definition] = {table.name: table for table in (ASKS, HITS, SUMS)}


def hours(world: World, count: int) -> None:
    """A step for each hour, of the first ten minutes of it."""
    for hour in range(count):
        world.log.append(
            [one | {"ordered_at": one["ordered_at"] + hour * HOUR} for one in world.orders.batch(20)]
        )
        world.step()


def sides(spark: SparkSession, lake: Path, asks: Events) -> tuple[World, World]:
    """The tables of both sides of the joins, without a record."""
    left, right = (World(spark=spark, lake=lake, table=table) for table in (asks, HITS))
    return left, right


def relations(left: World, right: World) -> dict[str, str]:
    """What follows FROM to read their states."""
    return {"asks": f"delta.`{left.feed.path}`", "hits": f"delta.`{right.feed.path}`"}


def files_read(frame: DataFrame) -> dict[str, int]:
    """By table, the files that its scans read."""
    frame.collect()
    found: Counter[str] = Counter()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    for number in range(leaves.size()):
        scan = leaves.apply(number)
        path = Path(str(scan.relation().location().rootPaths().head()))
        found[path.parent.name] += int(scan.metrics().apply("numFiles").value())
    return dict(found)


@pytest.mark.parametrize("how", IntervalJoin.hows)
@pytest.mark.faults
def test_a_filter_on_the_cell_reads_the_files_of_both_sides_with_that_cell_only(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    asks = replace(ASKS, store=replace(STORE, ahead="20 minutes"))
    left, right = sides(spark, tmp_path, asks)
    for world in (left, right):
        hours(world, 4)
    join = replace(NEAR, how=how).bound({"asks": asks, "hits": HITS})

    shown = spark.sql(join.view(relations(left, right), ViewClock()))

    times = 2 if how == "full" else 1  # the rows of each side are looked for in those of the other
    assert files_read(shown) == {"asks": 4 * times, "hits": 4 * times}
    one_cell = shown.where(f"_cell = TIMESTAMP '{(START + HOUR).isoformat()}'")
    assert files_read(one_cell) == {"asks": times, "hits": 2 * times}
    hour = f"date_trunc('HOUR', coalesce(asked_at, hit_at)) = TIMESTAMP '{(START + HOUR).isoformat()}'"
    assert one_cell.count() == shown.where(hour).count() > 0
    if how != "full":
        late = shown.where(f"asked_at >= TIMESTAMP '{(START + 3 * HOUR).isoformat()}'")
        assert files_read(late) == {"asks": 1, "hits": 4}


def test_a_filter_on_keys_and_time_reaches_the_scans_of_an_as_of_join(
    spark: SparkSession, tmp_path: Path
) -> None:
    left, right = sides(spark, tmp_path, ASKS)
    hours(left, 2)
    for customer in ("c1", "c2", "c3"):
        right.log.append([{**one, "customer": customer} for one in right.orders.batch(10)])
        right.step()

    shown = spark.sql(AS_OF.bound(TABLES).view(relations(left, right), ViewClock()))

    asked = shown.where(f"customer = 'c2' AND asked_at >= TIMESTAMP '{(START + HOUR).isoformat()}'")
    assert files_read(asked) == {"asks": 1, "hits": 1}


@pytest.mark.parametrize("join", [NEAR, replace(NEAR, how="inner"), replace(NEAR, how="full"), AS_OF])
def test_a_filter_on_the_key_alone_reads_the_files_of_both_sides_with_it_only(
    spark: SparkSession, tmp_path: Path, join: Join
) -> None:
    asks = replace(ASKS, store=replace(STORE, ahead="20 minutes"))
    left, right = sides(spark, tmp_path, asks)
    for world in (left, right):
        for customer in ("c1", "c2", "c3"):
            world.log.append([{**one, "customer": customer} for one in world.orders.batch(10)])
            world.step()

    shown = spark.sql(join.bound({"asks": asks, "hits": HITS}).view(relations(left, right), ViewClock()))

    times = 2 if join.how == "full" else 1  # the rows of each side are looked for in those of the other
    assert files_read(shown) == {"asks": 3 * times, "hits": 3 * times}
    assert files_read(shown.where("customer = 'c2'")) == {"asks": times, "hits": times}


def test_any_interleaving_of_steps_merges_and_rebuilds_keeps_each_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark=spark, lake=tmp_path, table=HITS)
    for _ in range(3):
        world.produce()
        world.step()
        world.close()
    world.merge()
    hours(world, 3)
    world.restart()
    whole = world.rebuild()
    world.produce()
    world.step()
    part = world.rebuild(windows=Windows.between(START + HOUR, START + 2 * HOUR))

    records = [record for batch in world.log.batches for record in batch if record["amount"] > 10]
    assert whole.certificate.equal and part.certificate.equal and part.replaced and world.verify().equal
    shown = world.feed.view(world.pin()).select("_partition", "_offset", "amount").collect()
    assert sorted(map(tuple, shown)) == sorted(
        (one["_partition"], one["_offset"], one["amount"]) for one in records
    )


@pytest.mark.parametrize("where", ["_home", "NOT _home"])
def test_a_row_that_is_lost_from_one_cell_is_found(spark: SparkSession, tmp_path: Path, where: str) -> None:
    world = World(spark=spark, lake=tmp_path, table=HITS)
    hours(world, 1)
    lost = world.feed.rows().where(where).first()
    assert lost is not None
    spark.sql(
        f"DELETE FROM delta.`{world.feed.path}` WHERE {where} AND _offset = {lost['_offset']}"
        f" AND _partition = {lost['_partition']}"
    )

    found = world.verify()

    assert [(one["cause"], one["key"]["_offset"]) for one in found.differences] == [
        ("only_in_batch", lost["_offset"])
    ]


def test_rows_are_kept_and_merged_by_kept_plans(spark: SparkSession, tmp_path: Path) -> None:
    log, orders = MemoryLog(spark, tmp_path), Orders(1)
    for count in (5, 30):
        log.append(orders.batch(count))
    partial = PreparedPlan(spark, log.no_rows().schema, HITS.partial)
    merge = PreparedPlan(spark, HITS.partial(log.no_rows()).schema, HITS.merge)

    for after, to in ((0, 1), (1, 2), (2, 2)):
        rows = log.rows(after, to)
        states = partial.run(ArrowFile(spark, computed(rows)))
        merged = merge.run(ArrowFile(spark, states))

        fresh = computed(HITS.partial(rows.coalesce(1)))
        assert sorted(map(repr, states.to_pylist())) == sorted(map(repr, fresh.to_pylist()))
        assert sorted(map(repr, merged.to_pylist())) == sorted(map(repr, states.to_pylist()))


@pytest.mark.parametrize("how", IntervalJoin.hows)
def test_a_joined_row_is_final_when_nothing_that_is_not_late_can_join_any_more(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    asks = replace(ASKS, store=replace(STORE, ahead="20 minutes"))
    hits = replace(HITS, inputs=("returns",), store=replace(STORE, back="20 minutes"))
    logs = [MemoryLog(spark, tmp_path), MemoryLog(spark, tmp_path)]
    for seed, log in enumerate(logs):
        log.append(Orders(seed).batch(30))
    for log, table in zip(logs, (asks, hits), strict=True):
        table.partial(log.rows(0, 1)).createOrReplaceTempView(f"final_{table.name}")
    join = replace(NEAR, how=how, after="2 minutes").bound({"asks": asks, "hits": hits})
    late = {"orders": timedelta(minutes=1), "returns": timedelta(minutes=2)}
    # a row that is settled at the very watermark can still change: what comes at its last moment is in time
    edge = 2 * timedelta(minutes=1) + late["returns"]
    asked = (row.at for row in spark.table("final_asks").where("_home").collect() if row.at is not None)
    watermarks = {"orders": START + timedelta(hours=2), "returns": sorted(asked)[-15].astimezone(UTC) + edge}

    def finals(**view_clock: Any) -> list[Any]:
        relations = {name: f"final_{name}" for name in ("asks", "hits")}
        return spark.sql(join.view(relations, ViewClock(**view_clock))).collect()

    told = {topic: f"TIMESTAMP '{at.isoformat()}'" for topic, at in watermarks.items()}
    found = finals(watermarks=told, late_after=late)
    for row in found:
        asked, hit = (row[name] and row[name].astimezone(UTC) for name in ("asked_at", "hit_at"))
        settled: datetime = asked + timedelta(minutes=2) if asked else hit
        assert row["final"] == all(settled + late[topic] < watermarks[topic] for topic in late), row
    assert {row["final"] for row in found} == {True, False}
    assert {row["final"] for row in finals(late_after=late)} == {False}
    assert {row["final"] for row in finals(watermarks=told, late_after={"orders": HOUR})} == {None}


def problems(spark: SparkSession, table: Any, tables: dict[str, Definition]) -> list[str]:
    """What is said of the table, as `twinlake check` asks: what it reads, expressions, then the rest."""
    if unfit := list(unknown(table, tables)):
        return [f"{said(one)} | {one.remedy}" for one in unfit]
    log = MemoryLog(spark, Path("/nowhere"))
    bound = table.bound(tables)
    rows = {name: tables[name].partial(log.no_rows()) for name in table.reads}  # type: ignore[attr-defined]
    found = list(refused(bound, rows)) or list(bound.problems(rows))
    return [f"{said(one)} | {one.remedy}" for one in found]


def said(error: DefinitionError) -> str:
    """Without the place."""
    return error.what.split(": ", 2)[2]


CHANGED = dict[str, Definition]
WRONG: list[tuple[Any, CHANGED, list[str]]] = [
    (NEAR, {}, []),
    (AS_OF, {}, []),
    (ROLLING, {}, []),
    (replace(NEAR, right="asks", after="0 seconds"), {}, []),
    (NEAR, {"hits": replace(HITS, store=None)},
     ["it reads hits, which does not keep its rows where a join looks for them"
      " | make hits a table of Events with a store, or join its view in the SQL of a Derived"]),
    (AS_OF, {"hits": SUMS},
     ["it reads hits, which does not keep its rows where a join looks for them"
      " | make hits a table of Events with a store, or join its view in the SQL of a Derived"]),
    (replace(NEAR, on=("status",)), {},
     ["it joins on status, which is not a key of the store of asks | those are: customer",
      "it joins on status, which is not a key of the store of hits | those are: customer"]),
    (NEAR, {"hits": replace(HITS, store=replace(STORE, cell="2 hours", back="1 hour"))},
     ["the cells of asks are 1 hour long, those of hits 2 hours | rows meet in cells: make both equal"]),
    (replace(NEAR, after="21 minutes", before="1 second"), {},
     ['the store of hits reaches 20 minutes back, rows are looked for 21 minutes | let it have back="21 mi',
      'the store of hits reaches 0 seconds ahead, rows are looked for 1 second | let it have ahead="1 sec']),
    (replace(NEAR, how="full"), {},
     ["the store of asks reaches 0 seconds ahead, rows are looked for 20 minutes"]),
    (NEAR, {"hits": replace(HITS, columns={**COLUMNS, "customer": "order_id"})},
     ["customer is string in asks and bigint in hits | cast one of them in its table"]),
    (replace(NEAR, columns={"y": "left.nothing"}), {}, ["column y: "]),
    (replace(NEAR, columns={"y": "amount"}), {}, ["column y: "]),
    (replace(NEAR, columns={"y": "left._home"}), {}, ["column y: "]),
    (replace(NEAR, columns={"y": "sum(left.amount)"}), {}, ["column y: sum() is an aggregate"]),
    (replace(NEAR, columns={"y": "NULL"}), {}, ["column y: it has no type; cast it"]),
    (replace(NEAR, columns={"y": "map('a', left.amount)"}), {}, ["column y: map<string,decimal(12,2)> c"]),
    (ROLLING, {"sums": replace(SUMS, columns={"Last": "amount"} | COLUMNS, measures={"m": Max("Last")})},
     ["sums has a column last, and so has every table of kind rolling"]),
    (ROLLING, {"sums": replace(SUMS, columns={"Last": "amount"} | COLUMNS)}, []),
    (replace(AS_OF, delete_when="amount"), {}, ["delete_when: it is decimal"]),
    (replace(AS_OF, delete_when="nothing"), {}, ["delete_when: "]),
    (ROLLING, {"sums": replace(SUMS, window=None)}, ["it reads sums, which is no Aggregate in tumbling win"]),
    (ROLLING, {"sums": ASKS}, ["it reads sums, which is no Aggregate in tumbling windows"]),
    (replace(ROLLING, last=("90 seconds",)), {},
     ["90 seconds is not made of whole windows of sums, which are 1 minute long"]),
    (ROLLING, {"sums": replace(SUMS, measures={"last": Count()})},
     ["sums has a column last, and so has every table of kind rolling"]),
]  # fmt: skip


def test_what_keeps_tables_from_being_read_together_is_said(spark: SparkSession) -> None:
    for table, changed, expected in WRONG:
        found = problems(spark, table, {**TABLES, **changed})

        assert len(found) == len(expected), (table, found)
        for one, beginning in zip(found, expected, strict=True):
            assert one.startswith(beginning), table


@pytest.mark.parametrize(
    ("delete_when", "why"),
    [
        ("status = 'cancelled'", []),
        ("amount", ["delete_when: it is decimal(12,2), not a condition"]),
        ("nothing", ["delete_when: "]),
        ("right.status = 'cancelled'", ["delete_when: "]),
    ],
)
def test_with_and_without_spark_the_same_is_said_of_what_ends_a_row(
    spark: SparkSession, delete_when: str, why: list[str]
) -> None:
    table = replace(AS_OF, delete_when=delete_when)
    without = typed(ASKS, HITS, table)
    found = problems(spark, table, TABLES), [said(one) for one in without.wrong]

    assert without.left == () and [len(one) for one in found] == [len(why)] * 2
    assert all(one.startswith(tuple(why)) for one in (*found[0], *found[1]))


def test_a_store_is_on_a_time_and_keeps_what_can_be_compared(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"orders": MemoryLog(spark, tmp_path).no_rows()}
    wrong = replace(HITS, columns={**COLUMNS, "at": "status", "tags": "map('a', amount)"})

    assert [said(one) for one in wrong.problems(rows)] == [
        "column tags: map<string,decimal(12,2)> cannot be compared",
        "the store is on at, which is string, not timestamp",
    ]
    assert list(HITS.problems(rows)) == []


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: replace(HITS, store=replace(STORE, keys=())), "its store has no keys"),
    (lambda: replace(HITS, store=replace(STORE, keys=("nobody",))), "store key 'nobody' is not one of"),
    (lambda: replace(HITS, store=replace(STORE, on="nobody")), "store time 'nobody' is not one of"),
    (lambda: replace(HITS, store=replace(STORE, on="customer")), "'customer' is given twice"),
    (lambda: replace(HITS, store=replace(STORE, cell="0 seconds")), "store cell: '0 seconds' is not a dur"),
    (lambda: replace(HITS, store=replace(STORE, cell="PT0.5S")), "is not made of whole seconds"),
    (lambda: replace(HITS, store=replace(STORE, back="soon")), "store back: 'soon' is not a duration"),
    (lambda: replace(HITS, store=replace(STORE, ahead="64 hours")), "up to 65 cells of 1 hour, at most 64"),
    (lambda: replace(NEAR, how="outer"), "how is 'outer', which is none of: inner, left, full"),
    (lambda: replace(AS_OF, how="full"), "how is 'full', which is none of: inner, left"),
    (lambda: replace(NEAR, on=()), "it joins on nothing"),
    (lambda: replace(NEAR, before="a while"), "before: 'a while' is not a duration"),
    (lambda: replace(NEAR, inputs=("orders",)), "it reads tables, not topics: orders"),
    (lambda: replace(NEAR, columns={"customer": "left.customer"}), "'customer' is given twice"),
    (lambda: replace(ROLLING, last=()), "it is over no time"),
    (lambda: replace(ROLLING, last=("0 seconds",)), "last: '0 seconds' is not a duration"),
    (lambda: replace(ROLLING, last=("1 hour", "60 minutes")), "last '1 hour' is given twice"),
    (lambda: ROLLING.output, "it is not known what sums measures"),
    (
        lambda: replace(SUMS, columns={**COLUMNS, "Window_Start": "at"}),
        "'Window_Start' has the name of the win",
    ),
]


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_a_definition_that_cannot_be_meant_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()

    assert words in caught.value.what


def test_files_are_sorted_by_cell_then_key_then_time(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark=spark, lake=tmp_path, table=HITS)
    hours(world, 1)

    held = world.feed.rows().drop(SEGMENT).collect()

    assert [(row["_cell"], row["customer"]) for row in held] == sorted(
        (row["_cell"], row["customer"]) for row in held
    )
    assert len({row["_cell"] for row in held}) == 2
