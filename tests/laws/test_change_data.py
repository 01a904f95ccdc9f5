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

from jobs.errors import DefinitionError
from jobs.ingest import first_pass
from jobs.ingest.decide import decide
from jobs.ingest.duplicates import Duplicates, Seen
from jobs.kinds import barriers
from jobs.kinds.all import from_json
from jobs.kinds.barriers import Barriers, Snapshot
from jobs.kinds.kind import Moment
from jobs.kinds.latest import Latest
from jobs.lake.kept_plan import ArrowFile, KeptPlan
from jobs.topics.topic import json_topic
from tests.envelopes import AT_MS, SOURCES, as_json, contract
from tests.ingest.test_verdicts import KAFKA
from tests.laws.change_data import PARTITIONS, Mirror, Sent, first_of_each, history

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
            "snapshot": one.change.snapshot, "position": one.change.position, "_epoch": 0,
            "_partition": one.partition, "_offset": one.offset, "_timestamp": one.at,
        }
        for one in sent
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, COLUMNS)


def wrong(spark: SparkSession, table: Latest, many: Sequence[Mirror]) -> list[tuple[int, str]]:
    """The histories whose view is not the true table, over cut and merged states and over one partial."""
    empty = spark.createDataFrame(arrow([]))
    partial = KeptPlan(spark, empty.schema, table.partial)
    merge = KeptPlan(spark, table.partial(empty).schema, table.merge)
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
    spark.createDataFrame(pa.concat_tables(packed)).createOrReplaceTempView("mirrors")
    texts = []
    for seed, side in sides:
        relation = f"(SELECT * FROM mirrors WHERE which = '{seed}/{side}')"
        view = table.view({table.name: relation}, Moment())
        texts.append(f"SELECT {seed} AS seed, '{side}' AS side, * FROM ({view})")
    found: dict[tuple[int, str], dict[int, int]] = {which: {} for which in sides}
    for row in spark.sql("\nUNION ALL\n".join(texts)).collect():
        assert row.key not in found[row.seed, row.side]
        found[row.seed, row.side][row.key] = row.value
    return [which for which, rows in found.items() if rows != many[which[0]].rows]


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


@pytest.mark.parametrize(
    "table",
    [
        replace(MIRROR, snapshot=None),
        replace(MIRROR, truncate_when=None),
        replace(MIRROR, snapshot=Snapshot(of=WHOLE, last="true")),
        replace(MIRROR, snapshot=Snapshot(of="IF(op = 'r', string(position), NULL)", last="true")),
        replace(
            MIRROR, columns=MIRROR.columns | {"at": "position"}, order=("at",),
            snapshot=None, truncate_when=None,
        ),
    ],
    ids=["no snapshots", "no truncates", "unfinished", "incremental", "by the source's position"],
)  # fmt: skip
def test_another_rule_shows_another_table(spark: SparkSession, many: list[Mirror], table: Latest) -> None:
    """The law can fail: the histories hold what each part of the rule is for."""
    assert wrong(spark, table, many)


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
