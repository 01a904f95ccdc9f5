"""Where the log keeps what producers send, and where the newest schema's fields are read from."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.lake.log_fields import as_read, kept_as, names_kept, new_field, read_from
from jobs.topics.schema import Field

EVENT = {"id": "string", "count": "int", "count:bigint": "bigint", "price": "decimal(12,2)"}


def field(name: str, type_: str, **more: Any) -> Field:
    return Field(name=name, avro=type_, type=type_, nullable=False, **more)


def test_a_type_that_comes_second_has_a_place_of_its_own() -> None:
    assert kept_as(EVENT, "count", "int") == "count"
    assert kept_as(EVENT, "count", "bigint") == "count:bigint"
    assert kept_as(EVENT, "count", "string") is None
    assert new_field(EVENT, "note", "string") == "note"
    assert new_field(EVENT, "id", "binary") == "id:binary"
    assert new_field({"n": "bigint"}, "n", "int") == "n:int"


@pytest.mark.parametrize(
    ("name", "type_", "words"),
    [
        ("price", "decimal(13,2)", "'price' is decimal(13,2), and the log has it as decimal(12,2)"),
        ("id", "int", "'id' is int, and the log has it as string"),
        ("Id", "string", "'Id' and 'id', which the log has, differ in case only"),
    ],
)
def test_a_type_that_has_nothing_to_do_with_the_first_has_no_place(name: str, type_: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        new_field(EVENT, name, type_)

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
