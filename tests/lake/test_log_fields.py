"""Where the log keeps what producers send, and where the newest schema's fields are read from."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.lake.log.log_fields import as_read, kept_as, names_kept, new_fields, read_from
from twinlake.topics.schema import Field

EVENT = {
    "id": "string", "count": "int", "count:bigint": "bigint", "price": "decimal(12,2)",
    "in": "struct<a:int>",
}  # fmt: skip


def field(name: str, type_: str, **more: Any) -> Field:
    return Field(name=name, avro=type_, type=type_, nullable=False, **more)


def test_a_type_that_comes_second_has_a_place_of_its_own() -> None:
    assert kept_as(EVENT, "count", "int") == "count"
    assert kept_as(EVENT, "count", "bigint") == "count:bigint"
    assert kept_as(EVENT, "count", "string") is None
    assert new_fields(EVENT, "note", "string") == {("note",): "string"}
    assert new_fields(EVENT, "id", "binary") == {("id:binary",): "binary"}
    assert new_fields({"n": "bigint"}, "n", "int") == {("n:int",): "int"}


def test_a_record_gains_the_fields_that_it_lacks_and_keeps_those_that_it_has() -> None:
    event = {"after": "struct<id:int,in:struct<a:int>>"}
    sent = "struct<id:int,in:struct<b:array<int>,a:int>,city:string>"

    assert kept_as(event, "after", sent) is None
    assert new_fields(event, "after", sent) == {
        ("after", "in", "b"): "array<int>", ("after", "city"): "string",
    }  # fmt: skip
    assert kept_as(event, "after", "struct<in:struct<a:int>>") == "after"
    assert kept_as(event, "after", "struct<id:bigint>") is None


def test_a_record_is_read_by_the_names_of_its_fields() -> None:
    address = field("address", "struct<city:string,zip:int>")

    found = as_read(address, {}, {"address": "struct<zip:int,street:string>"})

    assert found == (
        "CASE WHEN event.`address` IS NOT NULL THEN "
        "named_struct('city', CAST(NULL AS string), 'zip', event.`address`.`zip`) END"
    )
    assert as_read(address, {}, {"address": address.type}) == "event.`address`"


def test_a_field_of_json_is_read_from_each_place_that_it_has() -> None:
    kept = {"n": "int", "n:bigint": "bigint"}

    assert as_read(field("n", "bigint"), {}, kept) == (
        "coalesce(CAST(event.`n` AS bigint), CAST(event.`n:bigint` AS bigint))"
    )


@pytest.mark.parametrize(
    ("name", "type_", "words"),
    [
        ("price", "decimal(13,2)", "'price' is decimal(13,2), and the log has it as decimal(12,2)"),
        ("id", "int", "'id' is int, and the log has it as string"),
        ("in", "struct<A:int>", "a field keeps its type"),
        ("in", "struct<a:bigint>", "'in' is struct<a:bigint>, and the log has it as struct<a:int>"),
        ("Id", "string", "'Id' and 'id', which the log has, differ in case only"),
    ],
)
def test_a_type_that_has_nothing_to_do_with_the_first_has_no_place(name: str, type_: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        new_fields(EVENT, name, type_)

    assert words in str(refused.value)


def test_a_commit_tells_what_a_writer_s_fields_are_called_in_the_log() -> None:
    stored = {"id": "string", "count": "bigint"}

    assert names_kept(EVENT, stored, ["id", "nothing", "count"]) == ["id", "nothing", "count:bigint"]


def test_readers_need_every_place_of_their_fields_under_every_name() -> None:
    fields = [field("total", "bigint", aliases=("count",)), field("price", "decimal(12,2)")]

    assert read_from(EVENT, fields) == {name: EVENT[name] for name in ("count", "count:bigint", "price")}


def test_a_field_is_read_by_schema_from_its_name_its_alias_or_its_default() -> None:
    renamed = field("total", "bigint", aliases=("count",), has_default=True, default=7)
    schemas = {"1": ["id", "count"], "3": ["id", "count:bigint"], "4": ["id"], "2": ["total"]}

    assert as_read(renamed, schemas) == (
        "CASE WHEN schema_id IN (1) THEN CAST(event.`count` AS bigint) "
        "WHEN schema_id IN (3) THEN CAST(event.`count:bigint` AS bigint) "
        "WHEN schema_id IN (4) THEN CAST('7' AS bigint) ELSE CAST(event.`total` AS bigint) END"
    )
    assert as_read(field("price", "decimal(12,2)"), {"1": ["price"]}) == "event.`price`"
