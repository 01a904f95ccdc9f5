"""A topic's schema changes while its records go on: every version is read, and nothing is written anew."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ingest.fed import Fed, contract_of, renamed
from tests.ingest.stage import Stage, frame
from twinlake.kinds.latest import Latest
from twinlake.lake.log.log import Log
from twinlake.topics.schema import parse_schema
from twinlake.topics.topic import Topic

AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
MOMENT = 1_769_860_800_000


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Thing", "fields": [AT, *fields]}


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


FIRST = record(
    field("id", "string"), field("count", "int"), field("size", "float"), field("text", "string"),
    field("raw", "bytes"), field("who", "string"), field("gone", "int"),
)  # fmt: skip
SECOND = record(
    field("id", "string"), field("count", "long"), field("size", "double"), field("text", "bytes"),
    field("raw", "string"), field("customer", "string", aliases=["who"]),
    field("note", "string", default="-"),
)  # fmt: skip
OLD = {
    "at": MOMENT,
    "id": "old",
    "count": 1,
    "size": 0.5,
    "text": "é",
    "raw": b"abc",
    "who": "anna",
    "gone": 7,
}
NEW = {
    "at": MOMENT, "id": "new", "count": 2**40, "size": 0.1, "text": b"\xff", "raw": "ü", "customer": "ben",
    "note": "hi",
}  # fmt: skip


def read_with(stage: Stage, *versions: dict[str, Any], **custom: str) -> None:
    """The stage's topic has these schema files, and a contract that promises the newest's fields."""
    name = stage.topic.name
    schemas = tuple(
        parse_schema(one, topic=name, number=number, file=f"schemas/{name}.v{number}.avsc")
        for number, one in enumerate(versions, start=1)
    )
    logical = {"string": "string", "binary": "string", "timestamp": "timestamp"}
    numbers = {"int": "integer", "bigint": "integer", "float": "number", "double": "number"}
    properties = [
        {"name": one.name, "physicalType": one.type, "logicalType": {**logical, **numbers}[one.type],
         "required": True}
        for one in schemas[-1].fields
    ]  # fmt: skip
    stage.topic = Topic(name=name, contract=contract_of(name, properties, **custom), schemas=schemas)


def send(stage: Stage, schema: dict[str, Any], **values: Any) -> None:
    """A record of this schema, which the registry has under some id."""
    plain = {**schema, "fields": [{**one, "type": "long"} if one is AT else one for one in schema["fields"]]}
    schema_id = stage.registry.register(stage.subject, schema)
    stage.produce(frame(schema_id, plain, values))


def rows(log: Log) -> dict[str, tuple[Any, ...]]:
    names = ("count", "size", "text", "raw", "customer", "note")
    found = log.rows(0, 99).collect()
    assert found == log.spark.sql(log.rows_sql(99)).collect()
    return {
        row.id: tuple(bytes(row[one]) if isinstance(row[one], bytearray) else row[one] for one in names)
        for row in found
    }


EXPECTED = {
    "old": (1, 0.5, "é".encode(), "abc", "anna", "-"),
    "new": (2**40, 0.1, b"\xff", "ü", "ben", "hi"),
}


def files(log: Log) -> set[str]:
    return set(log.appender.files())


def test_all_versions_are_read_as_the_newest_whichever_came_first(stage: Stage, way: str) -> None:
    renamed(stage)
    stage.create(partitions=1)
    table = Latest(
        name="things", inputs=(stage.topic.name,),
        columns={"id": "id", "count": "count", "size": "size", "text": "text", "customer": "customer"},
        keys=("id",), values=("count", "size", "text", "customer"),
    )  # fmt: skip
    read_with(stage, FIRST)
    send(stage, FIRST, **OLD)
    before = files(stage.run())
    read_with(stage, FIRST, SECOND)
    send(stage, SECOND, **NEW)
    fed = Fed(stage, table)
    fed.run()
    send(stage, FIRST, **{**OLD, "id": "late", "count": 3})
    log = fed.run()

    assert rows(log) == {**EXPECTED, "late": (3, *EXPECTED["old"][1:])}
    assert {row[:3] for row in fed.shows()} == {("old", 1, 0.5), ("new", 2**40, 0.1), ("late", 3, 0.5)}
    assert before <= files(log)
    event = log.event()
    assert (event["count"], event["count:bigint"], event["gone"]) == ("int", "bigint", "int")


@pytest.mark.parametrize("way", ["large"], indirect=True)
@pytest.mark.usefixtures("way")
def test_a_table_takes_large_batches_by_the_schema_that_it_was_made_with(faked: Stage) -> None:
    renamed(faked)
    faked.create(partitions=1)
    read_with(faked, FIRST)
    first = Latest(
        name="things", inputs=(faked.topic.name,), columns={"id": "id", "count": "count", "who": "who"},
        keys=("id",), values=("count", "who"),
    )  # fmt: skip
    fed = Fed(faked, first, made_with=1)
    send(faked, FIRST, **OLD)
    fed.run()
    read_with(faked, FIRST, SECOND)
    send(faked, SECOND, **{**NEW, "count": 2})
    send(faked, FIRST, **{**OLD, "id": "late", "count": 3})
    fed.run()

    assert {row[:3] for row in fed.shows()} == {("old", 1, "anna"), ("new", 2, "ben"), ("late", 3, "anna")}
    assert not any(fed.fresh)


def test_what_was_wider_first_is_read_with_what_is_narrower(faked: Stage) -> None:
    renamed(faked)
    faked.create(partitions=1)
    read_with(faked, FIRST, SECOND)
    send(faked, SECOND, **NEW)
    send(faked, FIRST, **OLD)

    log = faked.run()

    assert rows(log) == EXPECTED
    assert [row[3] for row in faked.verdicts(log)] == ["valid", "valid"]


def test_bytes_that_are_no_text_are_invalid_where_text_is_read(faked: Stage) -> None:
    renamed(faked)
    faked.create(partitions=1)
    read_with(faked, FIRST, SECOND)
    send(faked, FIRST, **{**OLD, "raw": b"\xff"})

    log = faked.run()

    assert [row[3:] for row in faked.verdicts(log)] == [("invalid", ("invalid_utf8:raw",))]
