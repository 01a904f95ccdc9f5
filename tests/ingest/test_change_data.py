"""Envelopes of Debezium through ingest: redeliveries are known, what is not a change says why."""

from __future__ import annotations

import base64
import time
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import expr

from tests.envelopes import (
    AT_MS,
    ROW,
    SOURCES,
    as_json,
    avro,
    contract,
    document,
    envelope,
    properties,
    row,
)
from tests.ingest.change_cases import (
    ALIKE,
    ANNA,
    ANNE,
    BEN,
    REFUSED,
    SOUND,
    UNAVAILABLE,
    change,
)
from tests.ingest.fed import Fed, renamed
from tests.ingest.stage import Stage, frame
from tests.ingest.test_json import NOW
from tests.ingest.test_verdicts import KAFKA
from tests.laws.change_data import history
from tests.longer import some
from twinlake.ingest import first_pass
from twinlake.kinds.latest import Latest, mirror
from twinlake.lake.log.clock_fold import LogClock
from twinlake.lake.log.log_clock import fold_at
from twinlake.topics.change_data import place
from twinlake.topics.contract_file import parse_contract
from twinlake.topics.earlier import made_with
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic, json_topic

MARK = b"\1\2\3\4\5\6\7\x08"
PEOPLE = {database: json_topic("people", contract("people", database, format="json")) for database in SOURCES}


def looked(spark: SparkSession, topic: Topic, values: list[bytes], keys: list[bytes | None]) -> list[Row]:
    """What ingest's first look says of them, in their order."""
    rows = [
        (key, value, topic.name, 0, at, NOW, 1, None)
        for at, (key, value) in enumerate(zip(keys, values, strict=True))
    ]
    found = spark.createDataFrame(rows, KAFKA)
    event = {field.name: field.type for field in topic.newest.fields}
    for expressions in first_pass.selections(topic, [], MARK, event):
        found = found.selectExpr(*expressions)
    return sorted(found.collect(), key=lambda one: one.offset)


@pytest.fixture(scope="module")
def cases(spark: SparkSession) -> dict[str, Row]:
    """All of them, plain and wrapped."""
    named = {**SOUND, **REFUSED}
    values = [as_json(one, wrapped=wrapped) for wrapped in (False, True) for one in named.values()]
    names = [f"{name}{wrapped}" for wrapped in ("", " wrapped") for name in named]
    found = looked(spark, PEOPLE["postgresql"], values, [b"{}"] * len(values))
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("wrapped", ["", " wrapped"])
@pytest.mark.parametrize("name", SOUND)
def test_an_envelope_is_sound_and_its_time_is_the_database_s(
    cases: dict[str, Row], name: str, wrapped: str
) -> None:
    found = cases[name + wrapped]

    assert (found.reasons, found.event_micros) == (None, AT_MS * 1000)
    assert (found.event.op, found.event.after) == (SOUND[name]["op"], _row(SOUND[name]["after"]))


@pytest.mark.parametrize("wrapped", ["", " wrapped"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_change_says_why(cases: dict[str, Row], name: str, wrapped: str) -> None:
    assert name in cases[name + wrapped].reasons.split(",")


def _row(value: Any) -> Row | None:
    return None if value is None else Row(**value)


@pytest.fixture(scope="module")
def pairs(spark: SparkSession) -> dict[str, bool]:
    """Whether the identities of the two of a pair are one."""
    values = [as_json(one) for first, second, _ in ALIKE.values() for one in (first, second)]
    found = looked(spark, PEOPLE["postgresql"], values, [b"{}"] * len(values))
    ids = [(one.high, one.low) for one in found]
    return {name: ids[2 * at] == ids[2 * at + 1] for at, name in enumerate(ALIKE)}


@pytest.mark.parametrize("name", ALIKE)
def test_only_a_redelivery_has_the_identity_of_a_change(pairs: dict[str, bool], name: str) -> None:
    assert pairs[name] is ALIKE[name][2]


def test_rows_that_differ_only_in_the_key_or_in_mysql_s_row_are_two(spark: SparkSession) -> None:
    at = {"file": "binlog.000003", "pos": 4, "row": 0}
    values = [
        as_json(envelope("mysql", "u", one, after=ANNA))
        for one in (at, at, {**at, "row": 1}, {**at, "pos": 5}, {**at, "file": "binlog.000004"})
    ]

    found = looked(spark, PEOPLE["mysql"], values, [b"1", b"2", b"1", b"1", b"1"])

    assert len({(one.high, one.low) for one in found}) == 5
    assert {one.reasons for one in found} == {None}


def test_a_value_that_is_unavailable_is_found_in_bytes_and_in_lists(spark: SparkSession) -> None:
    promised = properties("postgresql", {"id": "int", "photo": "binary"})
    texts = {"logicalType": "string", "physicalType": "string"}
    tags = {"name": "tags", "logicalType": "array", "physicalType": "array", "items": texts}
    for one in promised[:2]:
        one["properties"].append(tags)
    found = parse_contract(
        document("people", "postgresql", promised, format="json"), name="people", file="people.yaml"
    )
    sentinel = base64.b64encode(UNAVAILABLE.encode()).decode()
    rows: list[dict[str, Any]] = [
        {"id": 1, "photo": "AP8=", "tags": ["a"]},
        {"id": 1, "photo": sentinel, "tags": ["a"]},
        {"id": 1, "photo": None, "tags": ["a", UNAVAILABLE]},
    ]

    values = [as_json(change("u", {"lsn": 7}, after=one)) for one in rows]
    looks = looked(spark, json_topic("people", found), values, [None] * 3)

    assert [one.reasons for one in looks] == [None, *["unavailable_value:after"] * 2]


def of_json(stage: Stage, database: str) -> None:
    """The stage's topic is one of envelopes in JSON."""
    name = renamed(stage)
    stage.topic = json_topic(name, contract(name, database, format="json"))


def of_avro(stage: Stage, database: str) -> None:
    """The stage's topic is one of envelopes in Avro, with the schema that Debezium would register."""
    name = renamed(stage)
    stage.schema = avro(database)
    file = parse_schema(stage.schema, topic=name, number=1, file=f"schemas/{name}.v1.avsc")
    stage.topic = replace(stage.topic, contract=contract(name, database), schemas=(file,))
    stage.schema_id = stage.registry.register(stage.subject, stage.schema)


GREW = {"city": "string", **{name: kind for name, kind in ROW.items() if name != "amount"}}
"""The columns of people after one was added, and one dropped."""


def people(stage: Stage, database: str) -> Latest:
    return Latest(
        name="people_now", inputs=(stage.topic.name,),
        **mirror(database, keys=("id",), values=("name", "amount")),
    )  # fmt: skip


@pytest.mark.usefixtures("way")
def test_json_of_postgresql_is_mirrored_with_its_tombstones_and_redeliveries(stage: Stage) -> None:
    of_json(stage, "postgresql")
    stage.create(partitions=1)
    fed = Fed(stage, people(stage, "postgresql"))
    first = [
        change("r", {"lsn": 5}, after=ANNA, snapshot="first"),
        change("r", {"lsn": 5}, after=BEN, snapshot="last"),
        change("c", {"lsn": 6}, after=row(3, "Cleo")),
        change("u", {"lsn": 7}, before=ANNA, after=ANNE),
        change("d", {"lsn": 8}, before=row(2, None)),
    ]
    stage.produce(*map(as_json, first), None)
    fed.run()
    shown = fed.shows()

    # a new process: what was seen is read from the log
    again = [{**one, "ts_ms": one["ts_ms"] + 1} for one in first[2:]]
    stage.produce(*(as_json(one) for one in again), None, as_json(change("c", {"lsn": 9}, after=BEN)))
    log = fed.run()

    assert shown == {(1, "Anne", "12.50"), (3, "Cleo", None)}
    assert fed.shows() == shown | {(2, "Ben", None)}
    assert [one[3] for one in stage.verdicts(log)] == [
        *["valid"] * 5, "ignored", *["duplicate"] * 3, "ignored", "valid",
    ]  # fmt: skip
    metadata = log.metadata()
    clock = LogClock(watermark=metadata["watermark"], clocks=metadata["clocks"])
    assert clock.watermark == AT_MS * 1000 and fold_at(log, log.end()).clock == clock


@pytest.mark.usefixtures("way")
def test_avro_of_mysql_is_mirrored_with_a_snapshot_taken_anew_and_a_truncate(stage: Stage) -> None:
    of_avro(stage, "mysql")
    stage.create(partitions=1)
    fed = Fed(stage, people(stage, "mysql"))

    def told(op: str, pos: int, **more: Any) -> bytes:
        return stage.framed(envelope("mysql", op, {"file": "binlog.000001", "pos": pos, "row": 0}, **more))

    stage.produce(
        told("r", 4, after=ANNA, snapshot="first_in_data_collection"),
        told("r", 4, after=BEN, snapshot="last_in_data_collection"),
        told("c", 5, after=row(3, "Cleo")),
        told("u", 6, before=ANNA, after=ANNE),
        told("c", 5, after=row(3, "Cleo")),
        told("u", 6, before=ANNA, after=ANNE),
    )
    fed.run()
    shown = [fed.shows()]
    stage.produce(told("r", 9, after=BEN, snapshot="first"), told("r", 9, after=ANNE, snapshot="last"))
    fed.run()
    shown.append(fed.shows())
    stage.produce(told("r", 9, after=row(1, "Ann"), snapshot="incremental"))
    fed.run()
    shown.append(fed.shows())
    stage.produce(told("t", 11), told("c", 12, after=row(4, "Dora")))
    log = fed.run()

    anne, ben = (1, "Anne", "12.50"), (2, "Ben", None)
    assert shown == [{anne, ben, (3, "Cleo", None)}, {anne, ben}, {(1, "Ann", None), ben}]
    assert fed.shows() == {(4, "Dora", None)}
    assert [one[3] for one in stage.verdicts(log)] == [
        *["valid"] * 4, "duplicate", "duplicate", *["valid"] * 5,
    ]  # fmt: skip


def test_a_row_that_kafka_had_before_an_older_snapshot_is_not_hidden(stage: Stage) -> None:
    of_json(stage, "postgresql")
    stage.create(partitions=3)
    fed = Fed(stage, people(stage, "postgresql"))
    first, last = (change("r", {"lsn": 90}, after=after, snapshot=name) for after, name in
                   ((ANNA, "first"), (BEN, "last")))  # fmt: skip
    newer, older = (change("c", {"lsn": lsn}, after=row(lsn, "Cleo")) for lsn in (112, 80))
    stage.produce(as_json(older), as_json(newer), partition=0)
    time.sleep(0.05)  # Kafka has the others later, for whatever reason

    stage.produce(as_json(first), partition=1)
    stage.produce(as_json(last), partition=2)
    fed.run()

    assert {one[0] for one in fed.shows()} == {ANNA["id"], BEN["id"], 112}


def test_places_of_mysql_go_on_over_files_and_are_compared_within_one_log(spark: SparkSession) -> None:
    of, at = place("mysql")
    places = [
        ("binlog.000009", 9, 0), ("binlog.000010", 4, 0), ("binlog.000010", 4, 1), ("binlog.999999", 1, 0),
        ("binlog.1000000", 0, 0),
    ]  # fmt: skip
    rows = [(file, {"file": file, "pos": pos, "row": number}) for file, pos, number in places]
    told = spark.createDataFrame(rows, "file STRING, source STRUCT<file: STRING, pos: BIGINT, row: INT>")

    ordered = [one.source.asDict() for one in told.orderBy(expr(at)).collect()]

    assert ordered == [source for _, source in rows]
    assert {one[0] for one in told.selectExpr(of).collect()} == {"binlog."}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("written", "database"),
    some([("json", "postgresql"), ("avro", "mysql"), ("avro", "postgresql"), ("json", "mysql")]),
)
def test_a_table_gains_and_loses_columns_without_a_stop_of_its_topic(
    stage: Stage, written: str, database: str
) -> None:
    (of_json if written == "json" else of_avro)(stage, database)
    stage.create(partitions=1)
    fed = Fed(stage, people(stage, database))
    before = Fed(stage, people(stage, database), made_with=made_with(stage.topic))
    before.version = replace(before.version, build=2)  # one that is made now, and goes on to the end
    old, newer = stage.schema, avro(database, GREW)
    newer_id = stage.registry.register(stage.subject, newer)

    def told(schema: dict[str, Any], at: int, op: str, before: Any, after: Any) -> bytes:
        where = {"lsn": at} if database == "postgresql" else {"file": "binlog.000001", "pos": at}
        value = envelope(database, op, where, before, after)
        if written == "json":
            return as_json(value)
        return frame(newer_id if schema is newer else stage.schema_id, schema, value)

    bonn = {"id": 2, "name": "Ben", "city": "Bonn"}
    stage.produce(told(old, 6, "c", None, ANNA))
    fed.run()
    stage.produce(told(newer, 7, "c", None, bonn))
    log = fed.run()
    shown = fed.shows()
    early = [row.after for row in log.rows(0, log.end()).orderBy("_offset").collect()]
    # only then the project is told
    if written == "json":
        grown = contract(stage.topic.name, database, columns=GREW, format="json")
        stage.topic = json_topic(stage.topic.name, grown)
    else:
        file = parse_schema(newer, topic=stage.topic.name, number=2, file="schemas/people.v2.avsc")
        grown = contract(stage.topic.name, database, columns=GREW)
        stage.topic = replace(stage.topic, contract=grown, schemas=(*stage.topic.schemas, file))
    cities = Latest(
        name="cities", inputs=(stage.topic.name,),
        **mirror(database, keys=("id",), values=("name", "city")),
    )  # fmt: skip
    fed = Fed(stage, cities)
    stage.produce(
        told(newer, 8, "u", bonn, {**bonn, "city": "Lyon"}),
        told(old, 9, "u", None, ANNE),
        told(newer, 10, "c", None, {**bonn, "id": 3}),
    )
    log = fed.run()

    assert shown == {(1, "Anna", "12.50"), (2, "Ben", None)}
    assert early == [Row(**ANNA), Row(id=2, name="Ben", amount=None)]
    before.run()
    assert before.shows() == {(1, "Anne", "12.50"), (2, "Ben", None), (3, "Ben", None)}
    assert fed.shows() == {(1, "Anne", None), (2, "Ben", "Lyon"), (3, "Ben", "Bonn")}
    rows = (log.rows(0, log.end()), log.spark.sql(log.rows_sql(log.end())))
    # what no contract has named yet stays in the raw value
    kept = None if written == "json" else "Bonn"
    for found in rows:
        cities_told = [row.after.city for row in found.orderBy("_offset").collect()]
        assert cities_told == [None, kept, "Lyon", None, "Bonn"]
    assert {one[3] for one in stage.verdicts(log)} == {"valid"}


@pytest.mark.faults
@pytest.mark.parametrize(("database", "written"), [("postgresql", "json"), ("mysql", "avro")])
def test_a_random_history_of_a_database_is_mirrored_through_ingest(
    stage: Stage, database: str, written: str, seed: int
) -> None:
    (of_json if written == "json" else of_avro)(stage, database)
    stage.create(partitions=1)
    fed = Fed(stage, people(stage, database))
    told = history(seed, 40)
    values = [one.change.told(database) for one in told.sent]
    encoded = [as_json(one) if written == "json" else stage.framed(one) for one in values]
    cut = len(encoded) // 2
    stage.produce(*encoded[:cut])
    fed.run()
    stage.produce(*encoded[cut:])

    log = fed.run()

    assert fed.shows() == {(key, str(value), None) for key, value in told.rows.items()}
    assert log.metadata()["counts"]["invalid"] == 0
