"""Latest of a change topic shows the mirrored table, whatever the connector and the cuts did on the way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.envelopes import AT_MS, SOURCES, as_json, contract
from tests.ingest.test_verdicts import KAFKA
from tests.laws.change_data import (
    PARTITIONS,
    START,
    Change,
    Mirror,
    Sent,
    delayed,
    first_of_each,
    history,
    undecided,
)
from twinlake.base.errors import DefinitionError
from twinlake.ingest import first_pass
from twinlake.ingest.decide import decide
from twinlake.ingest.duplicates import Duplicates, Seen
from twinlake.kinds import barriers
from twinlake.kinds.all import from_json
from twinlake.kinds.barriers import Barriers, Snapshot, SourcePlace
from twinlake.kinds.kind import ViewClock
from twinlake.kinds.latest import Latest
from twinlake.spark.prepared_plan import ArrowFile, PreparedPlan
from twinlake.topics.topic import json_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WHOLE = "CASE WHEN snapshot IN ('first', 'true', 'last') THEN string(position) END"
MIRROR = Latest(
    name="mirror",
    inputs=("changes",),
    columns={"key": "key", "value": "value", "op": "op"},
    keys=("key",),
    values=("value",),
    delete_when="op = 'd'",
    snapshot=Snapshot(of=WHOLE, last="snapshot = 'last'"),
    truncate_when="op = 't'",
    source_place=SourcePlace(of="'the log'", at="position"),
)
COLUMNS = pa.schema(
    [
        ("key", pa.int32()), ("value", pa.int32()), ("op", pa.string()), ("snapshot", pa.string()),
        ("position", pa.int64()), ("_epoch", pa.int32()), ("_partition", pa.int32()),
        ("_offset", pa.int64()), ("_timestamp", pa.timestamp("us", "UTC")),
    ]
)  # fmt: skip
SOON = datetime.fromtimestamp(AT_MS // 1000, UTC) + timedelta(minutes=1)
NOBODY = Seen(
    high=np.array([], np.int64), low=np.array([], np.int64), times=np.array([], np.int64)
)  # fmt: skip
DRAWN = (*((seed, 12) for seed in (0, 2, 5, 7)), *((seed, 30) for seed in (1, 2, 4)))
"""(seed, steps), chosen so that each part of the rule matters in one of them."""


@pytest.fixture(scope="module")
def many() -> list[Mirror]:
    return [history(seed, steps) for seed, steps in DRAWN]


def arrow(sent: Sequence[Sent]) -> pa.Table:
    rows = [
        {
            "key": one.change.key, "value": one.change.value, "op": one.change.op,
            "snapshot": one.change.snapshot, "position": one.change.position, "_epoch": one.epoch,
            "_partition": one.partition, "_offset": one.offset, "_timestamp": one.at,
        }
        for one in sent
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, COLUMNS)


def wrong(spark: SparkSession, table: Latest, many: Sequence[Mirror]) -> list[tuple[int, str]]:
    """The histories whose view is not the true table."""
    found = shown(spark, table, many)
    return [which for which, rows in found.items() if rows != many[which[0]].rows]


def shown(
    spark: SparkSession, table: Latest, many: Sequence[Mirror]
) -> dict[tuple[int, str], dict[int, int]]:
    """The view of each history, over cut and merged states and over one partial."""
    empty = spark.createDataFrame(arrow([]))
    partial = PreparedPlan(spark, empty.schema, table.partial)
    merge = PreparedPlan(spark, table.partial(empty).schema, table.merge)
    sides = {}
    for seed, mirror in enumerate(many):
        records = first_of_each(mirror.sent)
        draw = random.Random(seed)
        blocks: dict[int, list[Sent]] = {}
        for one in records:
            blocks.setdefault(draw.randrange(5), []).append(one)
        states = [partial.run(ArrowFile(spark, arrow(block))) for block in blocks.values()]
        merged = merge.run(ArrowFile(spark, pa.concat_tables(states[:2])))
        sides[seed, "cut"] = pa.concat_tables([merged, *states[2:]])
        sides[seed, "whole"] = partial.run(ArrowFile(spark, arrow(records)))
    packed = [
        state.append_column("which", pa.array([f"{seed}/{side}"] * state.num_rows))
        for (seed, side), state in sides.items()
    ]
    # in one partition, and Spark knows it: each view would be computed in ten tasks for a few rows
    spark.createDataFrame(pa.concat_tables(packed)).coalesce(1).createOrReplaceTempView("mirrors")
    texts = []
    for seed, side in sides:
        relation = f"(SELECT * FROM mirrors WHERE which = '{seed}/{side}')"
        view = table.view({table.name: relation}, ViewClock())
        texts.append(f"SELECT {seed} AS seed, '{side}' AS side, * FROM ({view})")
    found: dict[tuple[int, str], dict[int, int]] = {which: {} for which in sides}
    for row in spark.sql("\nUNION ALL\n".join(texts)).collect():
        assert row.key not in found[row.seed, row.side]
        found[row.seed, row.side][row.key] = row.value
    return found


@pytest.mark.parametrize("database", SOURCES)
def test_ingest_leaves_of_a_history_all_but_what_was_redelivered(
    spark: SparkSession, many: list[Mirror], database: str
) -> None:
    topic = json_topic("people", contract("people", database, format="json"))
    records = [
        (b"key", as_json(one.change.told(database)), "people", PARTITIONS * which + one.partition, one.offset,
         SOON, 1, None)
        for which, mirror in enumerate(many) for one in mirror.sent
    ]  # fmt: skip
    found = spark.createDataFrame(records, KAFKA)
    for expressions in first_pass.selections(topic, [], b"\1\2\3\4\5\6\7\x08"):
        found = found.selectExpr(*expressions)
    looked = found.toArrow()

    for which, mirror in enumerate(many):
        first = which * PARTITIONS
        mine = looked.filter(
            pc.is_in(looked["partition"], pa.array(range(first, first + PARTITIONS), pa.int32()))
        )
        index = Duplicates(10**12, lambda _: NOBODY)
        decision = decide(mine, {}, index, {})
        assert decision is not None
        # partitions are judged one after the other here: a record and its redelivery are in the same one
        sent = sorted(mirror.sent, key=lambda one: (one.partition, one.offset))
        valid = [one for one, code in zip(sent, decision.row_codes.tolist(), strict=True) if code == 1]
        left = sorted(first_of_each(mirror.sent), key=lambda one: (one.partition, one.offset))
        assert valid == left
        assert decision.counts["duplicate"] == len(sent) - len(left)


def test_a_mirror_is_the_true_table_whatever_crashed_was_redelivered_or_taken_anew(
    spark: SparkSession, many: list[Mirror]
) -> None:
    kinds = {(one.change.op, one.change.snapshot) for mirror in many for one in mirror.sent}
    assert {("t", "false"), ("d", "false"), ("r", "incremental"), ("r", "last")} <= kinds
    assert any(len(first_of_each(mirror.sent)) < len(mirror.sent) for mirror in many)

    assert wrong(spark, MIRROR, many) == []
    # definitions stored before there was a place are still maintained
    assert wrong(spark, replace(MIRROR, source_place=None), many) == []


@pytest.mark.parametrize(
    "table",
    [
        replace(MIRROR, snapshot=None),
        replace(MIRROR, truncate_when=None),
        replace(MIRROR, snapshot=Snapshot(of=WHOLE, last="true")),
        replace(MIRROR, snapshot=Snapshot(of="IF(op = 'r', string(position), NULL)", last="true")),
        replace(
            MIRROR, columns=MIRROR.columns | {"at": "position"}, order=("at",),
            snapshot=None, truncate_when=None, source_place=None,
        ),
    ],
    ids=["no snapshots", "no truncates", "unfinished", "incremental", "by the source's position"],
)  # fmt: skip
def test_another_rule_shows_another_table(spark: SparkSession, many: list[Mirror], table: Latest) -> None:
    """The law can fail: the histories hold what each part of the rule is for."""
    assert wrong(spark, table, many)


@pytest.fixture(scope="module")
def late_ones() -> list[Mirror]:
    """The histories with their partitions delayed against each other, and more of them."""
    return [delayed(history(seed, steps), again) for seed, steps in DRAWN for again in range(4)]


def test_partitions_that_are_delayed_hide_no_live_row_and_show_no_other_where_the_topic_can_tell(
    spark: SparkSession, late_ones: list[Mirror]
) -> None:
    right = 0
    for (which, _), rows in shown(spark, MIRROR, late_ones).items():
        mirror = late_ones[which]
        for key in {*rows, *mirror.rows}:
            live = key in mirror.rows
            if rows.get(key) == mirror.rows.get(key):
                right += 1
            else:
                assert (key in rows) is not live, (which, key)
                assert undecided(mirror, key, live=live), (which, key)
    assert right > 100


def test_by_kafka_s_time_alone_a_live_row_would_be_hidden(
    spark: SparkSession, late_ones: list[Mirror]
) -> None:
    table = replace(MIRROR, source_place=None)
    hidden = [
        key
        for (which, _), rows in shown(spark, table, late_ones).items()
        for key in late_ones[which].rows
        if key not in rows and not undecided(late_ones[which], key, live=True)
    ]

    assert hidden


def change(op: str, key: int, position: int, snapshot: str = "false") -> Change:
    return Change(key=key, value=None if op == "d" else key, op=op, snapshot=snapshot, position=position)


def at(ms: int, partition: int, offset: int, told: Change, epoch: int = 0) -> Sent:
    time = START + timedelta(milliseconds=ms)
    return Sent(change=told, partition=partition, offset=offset, at=time, epoch=epoch)


SNAPSHOT = (at(54, 1, 0, change("r", 1, 90, "first")), at(58, 2, 0, change("r", 2, 90, "last")))
OVERTAKEN = at(50, 0, 6, change("c", 40, 112))
CASES = {
    "a newer row that Kafka had first": ((OVERTAKEN, *SNAPSHOT), {1, 2, 40}),
    "an older row": ((at(50, 0, 6, change("c", 40, 80)), *SNAPSHOT), {1, 2}),
    "an older row that Kafka had last": ((at(60, 0, 6, change("c", 40, 80)), *SNAPSHOT), {1, 2, 40}),
    "of a partition with a record of the snapshot, by the offset": (
        (OVERTAKEN, *SNAPSHOT, at(56, 0, 7, change("r", 3, 90, "true"))), {1, 2, 3},
    ),
    "a failover has set places back": ((at(0, 0, 6, change("c", 40, 112)), *SNAPSHOT), {1, 2, 40}),
    "the topic was made again after it": (
        (at(0, 0, 6, change("c", 40, 112)), *(replace(one, epoch=1) for one in SNAPSHOT)), {1, 2},
    ),
    "its place cannot be compared": ((at(50, 0, 6, change("c", 40, 1_000)), *SNAPSHOT), {1, 2}),
    "a clock that was set back": (
        (*SNAPSHOT, at(10, 1, 1, change("c", 40, 80)), at(57, 1, 2, change("r", 2, 90, "true"))), {1, 2, 40},
    ),
    "a clock that was set back within a snapshot": (
        (*SNAPSHOT, *(at(9 - n, 1, 1 + n, change("r", 3 + n, 90, "true")) for n in range(4))), {*range(1, 7)},
    ),
    "an older barrier with a greater place": (
        (
            at(0, 1, 0, change("r", 1, 200, "first")), at(1, 1, 1, change("r", 1, 200, "last")),
            at(-1, 0, 0, change("c", 43, 150)), at(0, 0, 1, change("c", 40, 150)),
            at(50, 1, 2, change("r", 1, 120, "first")), at(51, 1, 3, change("r", 1, 120, "last")),
        ),
        {1, 40},
    ),
}  # fmt: skip


def test_each_case_of_a_row_beside_a_snapshot(spark: SparkSession) -> None:
    log = "IF(position < 500, 'the log', 'another')"
    table = replace(MIRROR, source_place=SourcePlace(of=log, at="position"))
    many = [Mirror(draw=random.Random(0), sent=list(sent)) for sent, _ in CASES.values()]

    found = shown(spark, table, many)

    told = {name: [set(found[which, side]) for side in ("cut", "whole")] for which, name in enumerate(CASES)}
    assert told == {name: [keys, keys] for name, (_, keys) in CASES.items()}


def test_a_merge_that_forgets_a_barrier_is_caught(
    spark: SparkSession, many: list[Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = Barriers.merged
    monkeypatch.setattr(
        Barriers, "merged",
        lambda one, keys, states: merged(one, keys, states.where(f"{barriers.BARRIER} IS NULL")),
    )  # fmt: skip

    assert wrong(spark, MIRROR, many)


def test_it_is_read_back_as_it_was_stored() -> None:
    assert from_json(MIRROR.to_json()) == MIRROR


def test_order_columns_beside_snapshots_are_refused() -> None:
    with pytest.raises(DefinitionError, match="it has order columns, but snapshots"):
        replace(MIRROR, order=("value",))
