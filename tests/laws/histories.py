"""Generated histories: records of one topic, and how they were cut into partials and merged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as how
from hypothesis import strategies as st

from tests.frames import frame
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEVELS = ("block", "merged", "base")
"""A record is first in a partial (`block`), blocks are merged, merged segments are merged again."""
START = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = Decimal(10) ** 36
"""Sums in decimal(38, 2) stay below it."""
WIDES = tuple(
    (None, Decimal("0.00"), Decimal(size), Decimal("-" + size))
    for size in ("0.01", "1.50", "25" + "0" * 34 + ".00", "9" * 36 + ".00", "33" + "3" * 34 + ".33")
)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One valid record; every field but the record id may be NULL."""

    record_id: tuple[int, int, int]
    key: str | None
    at: datetime | None
    amount: Decimal | None
    wide: Decimal | None
    ratio: float | None
    words: str | None
    gone: bool | None


@dataclass(frozen=True, kw_only=True)
class History:
    """`places[i]` says in which block, merged segment and base record i ended up."""

    records: tuple[Record, ...]
    places: tuple[tuple[int, int, int], ...]


_FIELDS = [
    {"name": "history", "type": "string"},
    *({"name": level, "type": "int"} for level in LEVELS),
    {"name": "key", "type": ["null", "string"]},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    {
        "name": "amount",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}],
    },
    {
        "name": "wide",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}],
    },
    {"name": "ratio", "type": ["null", "double"]},
    {"name": "words", "type": ["null", "string"]},
    {"name": "gone", "type": ["null", "boolean"]},
]
SCHEMA = parse_schema(
    {"type": "record", "name": "Made", "fields": _FIELDS}, topic="made", number=1, file="made.v1.avsc"
)


def made_topic() -> Topic:
    """The topic that generated records belong to."""
    document = {
        "apiVersion": "v3.2.0", "kind": "DataContract", "id": "made", "name": "made", "version": "1.0.0",
        "status": "active", "description": {"purpose": "Made up."},
        "schema": [{
            "name": "made",
            "properties": [{"name": "history", "logicalType": "string", "physicalType": "string"}],
        }],
    }  # fmt: skip
    contract = replace(parse_contract(document, name="made", file="made.yaml"), late_after=timedelta(hours=3))
    return Topic(name="made", contract=contract, schemas=(SCHEMA,))


@st.composite
def histories(draw: st.DrawFn, most_records: int = 12) -> History:
    """Few keys, times and values, so that ties, NULLs and shared windows are common."""
    count = draw(st.integers(0, most_records))
    wides = draw(st.sampled_from(WIDES))
    records = [
        Record(
            record_id=(draw(st.integers(0, 1)), draw(st.integers(0, 1)), offset),
            key=draw(st.sampled_from(["a", "a", "b", "", None])),
            at=draw(st.none() | st.integers(-4, 4).map(lambda n: START + timedelta(seconds=37 * n))),
            amount=draw(st.none() | st.integers(-300, 300).map(lambda n: Decimal(n) / 100)),
            wide=draw(st.sampled_from(wides)),
            ratio=draw(st.none() | st.sampled_from([0.1, -0.1, 1e15, -1e15, 3.3])),
            words=draw(st.sampled_from([None, "", "x", "x y", "y y z"])),
            gone=draw(st.sampled_from([None, False, False, True])),
        )
        for offset in range(count)
    ]
    places = []
    merged_of: dict[int, int] = {}
    base_of: dict[int, int] = {}
    for _ in records:
        block = draw(st.integers(0, 4))
        merged = merged_of.setdefault(block, draw(st.integers(0, 2)))
        base = base_of.setdefault(merged, draw(st.integers(0, 1)))
        places.append((block, merged, base))
    return History(records=tuple(records), places=tuple(places))


MOST = 300
"""A Spark job costs a second, so one asks about all of so many histories; to draw them costs two."""


def generated(count: int = MOST) -> list[History]:
    """The first `count` of this run's different histories, which are at most MOST."""
    return list(_drawn()[:count])


@cache
def _drawn() -> tuple[History, ...]:
    """Once in a process: by its seed a run draws the same ones each time."""
    found: list[History] = []

    @how(max_examples=MOST, deadline=None, database=None, phases=[Phase.generate],
         suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(history=histories())
    def collect(history: History) -> None:
        found.append(history)

    collect()
    return tuple(found)


def packed(spark: SparkSession, many: list[History]) -> DataFrame:
    """All histories in one relation; two sides per history: cut as generated, and uncut (block 0 only)."""
    columns = [(field.name, field.type) for field in SCHEMA.fields]
    columns += [("_epoch", "int"), ("_partition", "int"), ("_offset", "bigint"), ("_timestamp", "timestamp")]
    rows = [
        (
            f"{index}/{side}", *(place if side == "cut" else (0, 0, 0)),
            r.key, r.at, r.amount, r.wide, r.ratio, r.words, r.gone, *r.record_id, START,
        )
        for index, history in enumerate(many)
        for r, place in zip(history.records, history.places, strict=True)
        for side in ("cut", "whole")
    ]  # fmt: skip
    return frame(spark, rows, ", ".join(f"`{name}` {type_}" for name, type_ in columns))
