"""An example's records as a broker would keep them, and its tables over them, cut and merged at random."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

import yaml
from pyspark.sql import Row

from tests.frames import frame
from tests.oracle.gallery.records import Record, Rows, valid
from tests.oracle.gallery.schemas import schema_of
from tests.oracle.topic import Records
from tests.project import GALLERY, SOURCES, example_of, sequence
from twinlake.kinds.kind import Kind, ViewClock, is_stored
from twinlake.topics.topic import load_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2026, 2, 1, 0, 0, 30, tzinfo=UTC)
PARTITIONS = 3
ABOUT = 0.0101
"""Doubles are quantiles here, which are at most 1 % off."""


def sent(example: str, topic: str, seed: int, count: int, span_ms: int = 0) -> Records:
    """The first records of a topic; a second goes by after each hundred."""
    source = sequence(example, topic, seed=seed, run="test", schema_id=7, span_ms=span_ms)
    records, ends = Records(), [0] * PARTITIONS
    for first in range(0, count, 100):
        now_ms = int(NOW.timestamp() * 1000) + first * 10
        drawn = source.draw(min(100, count - first), now_ms)
        for key, value in zip(drawn.keys, drawn.values, strict=True):
            partition = crc32(key) % PARTITIONS
            records.partitions.append(partition)
            records.offsets.append(ends[partition])
            records.timestamps_ms.append(now_ms)
            records.keys.append(key)
            records.values.append(value)
            ends[partition] += 1
    return records


def judged(example: str, topic: str, records: Records) -> list[Record]:
    """Those of them that count."""
    folder = GALLERY / example
    contract = yaml.safe_load((folder / "contracts" / f"{topic}.yaml").read_text())
    return valid(records, schema_of(folder, topic), contract)


def valid_records(example: str, seed: int, count: int, span_ms: int = 0) -> dict[str, list[Record]]:
    """By topic, so many records less those that do not count."""
    return {
        topic: judged(example, topic, sent(example, topic, seed, count, span_ms))
        for topic in SOURCES[example]
    }


def shown(
    spark: SparkSession, tables: tuple[Kind, ...], records: dict[str, list[Record]], view_clock: ViewClock,
    seed: int,
) -> dict[str, Rows]:
    """What each table's view shows; a stored table's rows were made in random steps, some of them merged."""
    draw = Random(seed)
    rows = {topic: _rows(spark, topic, held) for topic, held in records.items()}
    for topic, held in rows.items():
        held.createOrReplaceTempView(f"gallery_{topic}")
    relations = {topic: f"gallery_{topic}" for topic in records}
    known: dict[str, Kind] = {}
    views: dict[str, str] = {}
    states: dict[str, str] = {}
    found = {}
    for table in tables:
        table = known[table.name] = table.bound({name: known[name] for name in table.reads})
        if is_stored(table):
            _stored(table, rows[table.inputs[0]], draw).createOrReplaceTempView(f"state_{table.name}")
            states[table.name] = f"state_{table.name}"
        read = {name: (states if table.reads_states else views)[name] for name in table.reads}
        own = {table.name: states[table.name]} if is_stored(table) else relations
        text = table.view({**own, **read}, view_clock)
        views[table.name] = f"({text})"
        found[table.name] = _by_key(spark.sql(text), table)
    return found


def _rows(spark: SparkSession, name: str, records: list[Record]) -> DataFrame:
    topic = next(load_topic(name, example_of(one)) for one, topics in SOURCES.items() if name in topics)
    beside = {"_epoch": lambda _: 0, "_partition": lambda r: r["partition"], "_offset": lambda r: r["offset"]}
    beside["_timestamp"] = beside["_ingested_at"] = lambda r: r["timestamp"]
    taken = [beside.get(column) or (lambda r, column=column: r[column]) for column, _ in topic.columns]
    held = [tuple(take(record) for take in taken) for record in records]
    return frame(spark, held, ", ".join(f"`{column}` {type_}" for column, type_ in topic.columns))


def _stored(table: Any, rows: DataFrame, draw: Random) -> DataFrame:
    """Four partials of records in no order; two of them merged, then merged with the third."""
    cut = f"pmod(hash(_partition, _offset, {draw.randrange(1000)}), 4)"
    steps = [table.partial(rows.where(f"{cut} = {step}")) for step in range(4)]
    merged = table.merge(table.merge(steps[0].union(steps[3])).union(steps[1]))
    return merged.union(steps[2]).localCheckpoint()


def _by_key(view: DataFrame, table: Kind) -> Rows:
    found: Rows = {}
    for row in view.collect():
        values = {name: _plain(value) for name, value in row.asDict().items()}
        assert tuple(values) == table.output
        key = tuple(values[name] for name in table.view_keys)
        assert key not in found, f"two rows for {key}"
        own = set(table.view_keys) | set(table.implied) | (set(table.output) - set(table.timeless))
        found[key] = {name: value for name, value in values.items() if name not in own}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.asDict()
    if isinstance(value, list):
        return list(map(_plain, value))
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def wrong(found: dict[str, Rows], expected: dict[str, Rows]) -> dict[str, dict[tuple[Any, ...], Any]]:
    """By table that is not as expected, the keys whose rows differ, with both sides."""
    differing = {}
    for table, rows in found.items():
        sides = {
            key: (rows.get(key), expected[table].get(key)) for key in rows.keys() | expected[table].keys()
        }
        differing[table] = {key: both for key, both in sides.items() if not _alike(*both)}
    return {table: keys for table, keys in differing.items() if keys}


def _alike(one: Any, other: Any) -> bool:
    if one is None or other is None or one.keys() != other.keys():
        return False
    return all(
        abs(value - other[name]) <= ABOUT * abs(other[name])
        if isinstance(value, float)
        else value == other[name]
        for name, value in one.items()
    )
