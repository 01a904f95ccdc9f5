"""A decimal that cannot be kept is named, whatever its length, at any depth; no bytes are not a number."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.ingest.fed import contract_of
from tests.ingest.stage import Stage, frame, order
from tests.ingest.test_avro_types import AVRO, made, promised
from tests.oracle.judge import decode, parse_schema, physical
from tests.project import OURS
from twinlake.ingest import nested
from twinlake.ingest.decode_avro import decoded_type
from twinlake.ingest.decoding import decoding
from twinlake.ingest.writer_schema import Writer, learn, meant
from twinlake.topics.schema import parse_schema as parsed
from twinlake.topics.topic import Topic, load_topic

ID, MARKER = 7, b"8 random"
BEYOND = "decimal_out_of_range"


def reasons(spark: SparkSession, topic: Topic, writer: Writer, values: list[bytes]) -> list[str | None]:
    """Of each value, why it is not an event."""
    how = decoding(topic, [writer], [], MARKER, closely=True)
    frame_ = spark.createDataFrame([(at, value) for at, value in enumerate(values)], "at int, value binary")
    frame_ = frame_.selectExpr("*", f"{how.schema_id} AS schema_id")
    for columns in how.columns:
        frame_ = frame_.selectExpr("*", *columns)
    rows = frame_.selectExpr("at", f"{how.undecodable} AS why").collect()
    return [row.why for row in sorted(rows, key=lambda row: row.at)]


def learnt(spark: SparkSession, topic: Topic) -> Writer:
    return learn(topic, ID, meant(dict(topic.newest.avro)), partial(decoded_type, spark))


def sent(unscaled: int, padding: int = 0) -> bytes:
    """A decimal as Avro's bytes, with so many more in front that mean nothing."""
    size = (unscaled.bit_length() + 8) // 8 + padding
    length, prefix = size << 1, b""
    while length >= 128:
        prefix, length = prefix + bytes([length & 127 | 128]), length >> 7
    return prefix + bytes([length]) + unscaled.to_bytes(size, "big", signed=True)


def test_the_digits_of_any_bytes_are_counted_as_of_a_number(spark: SparkSession, seed: int) -> None:
    draw, numbers = random.Random(seed), []
    for precision in (1, 2, 9, 12, 37, 38):
        edge = 10**precision
        near = [edge - 1, edge, edge + 1, 0, 1, 255, 256, draw.randrange(edge), draw.randrange(edge, edge**3)]
        numbers += [(precision, sign * one) for one in near for sign in (1, -1)]
    rows = [
        (
            precision, one.to_bytes((one.bit_length() + 8) // 8 + padding, "big", signed=True),
            abs(one) >= 10**precision,
        )
        for precision, one in numbers
        for padding in (0, 1, 30)
    ]  # fmt: skip
    cases = " ".join(
        f"WHEN p = {precision} THEN {nested.decimal_is_beyond('v', precision)}"
        for precision in {precision for precision, _ in numbers}
    )

    found = spark.createDataFrame(rows, "p int, v binary, expected boolean").selectExpr(
        "*", f"CASE {cases} END AS found"
    )

    assert found.where("found <> expected OR found IS NULL").collect() == []


def test_every_order_has_the_reasons_that_the_oracle_gives(spark: SparkSession, seed: int) -> None:
    topic, draw = load_topic("orders", OURS), random.Random(seed)
    writer, schema = learnt(spark, topic), dict(topic.newest.avro)
    good = frame(ID, schema, order("a"))
    old = sent(1250)
    assert good.count(old) == 1
    numbers = [
        *(
            sign * 10**digits - less
            for digits in (11, 12, 18, 37, 38, 39, 400)
            for sign in (1, -1)
            for less in (0, 1)
        ),
        *(draw.randrange(-(10**60), 10**60) for _ in range(20)),
    ]  # fmt: skip
    decimals = [b"\0", *(sent(one, padding) for one in numbers for padding in (0, 1, 40))]
    values = [good, *(good.replace(old, one) for one in decimals)]
    values += [value.replace(b"anna", b"a\xff\xfea") for value in values]
    values += [value[:-1] for value in values[:20]] + [value + b"\0" for value in values[:20]]
    reader = {ID: parse_schema(physical(schema))}
    expected = [decode(value, reader)[1] for value in values]

    found = reasons(spark, topic, writer, values)

    assert [sorted((why or "").split(",")) for why in found] == [sorted(why or [""]) for why in expected]
    assert found[1] == "malformed_body"


def test_a_decimal_inside_is_named_by_its_field(spark: SparkSession) -> None:
    schema = parsed(AVRO, topic="things", number=1, file="schemas/things.v1.avsc")
    contract = contract_of("things", [promised(one.name, one.type) for one in schema.fields])
    topic = Topic(name="things", contract=contract, schemas=(schema,))
    writer = learnt(spark, topic)
    good = frame(ID, json.loads(json.dumps(AVRO)), made("a"))
    old, worth = sent(70050), (-12345678901234).to_bytes(16, "big", signed=True)
    assert (good.count(old), good.count(worth)) == (2, 1)  # of the address, then of the one before

    def changed(to: bytes, which: tuple[int, ...], wide: int | None = None) -> bytes:
        parts = good.split(old)
        made_ = parts[0] + (to if 0 in which else old) + parts[1] + (to if 1 in which else old) + parts[2]
        return made_.replace(worth, wide.to_bytes(16, "big", signed=True)) if wide is not None else made_

    cases: list[tuple[bytes, list[str] | None]] = [
        (good, None),
        (changed(sent(10**9), (0,)), [f"{BEYOND}:address"]),
        (changed(sent(10**50), (0,)), [f"{BEYOND}:address"]),
        (changed(sent(-(10**50)), (1,)), [f"{BEYOND}:before"]),
        (changed(sent(10**50), (0, 1)), [f"{BEYOND}:address", f"{BEYOND}:before"]),
        (changed(sent(5, padding=50), (0, 1)), None),
        (changed(b"\0", (0,)), ["malformed_body"]),
        (changed(b"\0", (1,)), ["malformed_body"]),
        (changed(b"\0", (1,), wide=10**38), ["malformed_body"]),
        (changed(old, (), wide=10**38), [f"{BEYOND}:worth"]),
        (changed(old, (), wide=-(10**38)), [f"{BEYOND}:worth"]),
        (changed(old, (), wide=10**38 - 1), None),
        (changed(sent(10**50), (1,), wide=10**38), [f"{BEYOND}:before", f"{BEYOND}:worth"]),
        (
            changed(sent(10**50), (1,)).replace("Köln".encode(), b"\xff\xffln\xff"),
            [f"{BEYOND}:before", "invalid_utf8:before"],
        ),
    ]  # fmt: skip

    found = reasons(spark, topic, writer, [value for value, _ in cases])

    told: list[Any] = [None if why is None else sorted(why.split(",")) for why in found]
    assert told == [None if why is None else sorted(why) for _, why in cases]


@pytest.mark.usefixtures("way")
def test_a_long_decimal_is_named_beside_bodies_that_are_malformed(stage: Stage) -> None:
    stage.create(partitions=1)
    good = stage.framed(order("a"))
    stage.produce(good, good.replace(sent(1250), sent(10**50)), good[:-1])
    stage.orders("b")

    log = stage.run()

    found = log.all(0, log.end()).orderBy("offset").collect()
    assert [[*row.reasons] for row in found] == [[], [f"{BEYOND}:amount"], ["malformed_body"], []]
    assert [row.event is not None for row in found] == [True, False, False, True]
