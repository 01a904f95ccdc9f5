"""Spark's text of a type is read whole, or refused."""

from __future__ import annotations

import pytest

from twinlake.witness.database import connect
from twinlake.witness.refused import Refused
from twinlake.witness.types import INT, STRING, Type, array, decimal, mapping, simple, struct

NESTED = struct(("a b", decimal(38, 38)), ("At", array(struct(("x", INT)))), ("m", mapping(STRING, INT)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int", INT),
        ("DECIMAL( 10 , 2 )", decimal(10, 2)),
        ("decimal", decimal(10, 0)),
        ("long", simple("bigint")),
        ("struct<>", struct()),
        ("struct<`a b`:decimal(38,38),At:array<struct<x:int>>,m:map<string,int>>", NESTED),
    ],
)
def test_a_type_is_what_spark_writes(text: str, wanted: Type) -> None:
    assert Type.parse(text) == wanted
    assert Type.parse(wanted.spark) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "", "int int", "array<int", "array<int>>", "decimal(39,0)", "decimal(2,3)", "decimal(x)", "variant",
        "interval day to second", "struct<a:int,A:int>", "map<int>", "char(3)", "decimal(0,0)",
    ],
)  # fmt: skip
def test_another_type_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="does not know"):
        Type.parse(text)


def test_duckdb_makes_columns_of_every_type() -> None:
    names = ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date")
    types = [*map(simple, (*names, "timestamp", "timestamp_ntz", "void")), decimal(38, 38), array(NESTED)]

    columns = ", ".join(f'CAST(NULL AS {type_.duckdb}) AS "{place}"' for place, type_ in enumerate(types))
    found = connect().sql(f"SELECT {columns}")

    assert [str(it).replace('"', "") for it in found.types] == [it.duckdb.replace('"', "") for it in types]


def test_a_field_is_found_in_any_case() -> None:
    assert NESTED.field("AT") == ("At", array(struct(("x", INT))))
    assert NESTED.field("nothing") is None
